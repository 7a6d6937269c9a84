import type { InvoiceRunCause, InvoiceStatus } from '../../domain/invoices/invoice.js';
import type { InvoiceEngine } from '../../domain/invoices/pageWords.js';
import { column } from '../entity.js';
import type { OrgDb } from '../orgDb.js';
import { defineRun, type Run } from '../runs/runTable.js';

export interface NewInvoiceRun {
  id: string;
  invoiceId: string;
  cause: InvoiceRunCause;
  /** In which order they try; null: as the settings say. */
  engines: InvoiceEngine[] | null;
  requestedBy: string;
  /** Where the invoice goes back to when a retry fails. */
  statusBefore: InvoiceStatus;
}

/** What a run found. */
export interface InvoiceRunResult {
  status: 'reconciled' | 'needs_review';
  pages: number | null;
  engine: InvoiceEngine | null;
  lines: number;
}

export interface InvoiceRun extends Run, NewInvoiceRun {
  /** Where the blob store holds what was extracted. */
  extractionKey: string | null;
  result: InvoiceRunResult | null;
}

export const INVOICE_RUNS = defineRun<InvoiceRun, NewInvoiceRun>('invoice_run', {
  invoiceId: column(),
  cause: column(),
  engines: column(),
  requestedBy: column(),
  statusBefore: column(),
  extractionKey: column(),
  result: column(),
});

/** The newest run of each of these invoices. */
export async function listNewestInvoiceRuns(
  orgDb: OrgDb,
  invoiceIds: readonly string[],
): Promise<InvoiceRun[]> {
  const rows = await orgDb.rows<InvoiceRun>(
    `select distinct on (invoice_id) ${INVOICE_RUNS.columns} from invoice_runs
     where org_id = $1 and invoice_id = any($2::uuid[]) order by invoice_id, created_at desc, id desc`,
    [orgDb.orgId, [...invoiceIds]],
  );
  return INVOICE_RUNS.read(rows);
}

/** Notes what an open run is doing, as a sign of life too. */
export async function recordRunStage(orgDb: OrgDb, id: string, stage: string): Promise<void> {
  await orgDb.run(
    `update invoice_runs set stage = $3, heartbeat_at = now() where org_id = $1 and id = $2 and status = 'running'`,
    [orgDb.orgId, id, stage],
  );
}

/** Notes where an open run's extraction is stored. */
export async function recordExtraction(orgDb: OrgDb, id: string, extractionKey: string): Promise<void> {
  await orgDb.run(
    `update invoice_runs set extraction_key = $3, extracting_until = null, heartbeat_at = now() where org_id = $1 and id = $2 and status = 'running'`,
    [orgDb.orgId, id, extractionKey],
  );
}
