import { BILLING_IMPORTS } from '../../db/billing/billingSources.js';
import { SYNC_RUNS } from '../../db/billing/syncRuns.js';
import { INVOICE_RUNS } from '../../db/invoices/invoiceRuns.js';
import { SAVINGS_RUNS } from '../../db/policies/savingsRuns.js';
import { REPRICE_RUNS } from '../../db/pricing/repriceRuns.js';
import { GAP_RUNS } from '../../db/reconciliation/gapRuns.js';
import { REPORTS } from '../../db/reports/reports.js';

/** The tables of all kinds of runs, for folders that may not import tables. */
const RUN_TABLES = {
  gap_run: GAP_RUNS,
  billing_import: BILLING_IMPORTS,
  billing_sync: SYNC_RUNS,
  reprice: REPRICE_RUNS,
  savings_run: SAVINGS_RUNS,
  invoice_run: INVOICE_RUNS,
  report: REPORTS,
} as const;

export function runTableOf<K extends keyof typeof RUN_TABLES>(kind: K): (typeof RUN_TABLES)[K] {
  return RUN_TABLES[kind];
}
