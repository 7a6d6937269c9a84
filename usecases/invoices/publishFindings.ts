import { createHash } from 'node:crypto';
import type { StoredInvoice } from '../../db/invoices/invoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import {
  type IdentifiedFinding,
  listFindingsOfInvoice,
  writeFindings,
} from '../../db/reconciliation/findings.js';
import { currentWeights } from '../../db/reconciliation/weightSets.js';
import { formatUuid } from '../../domain/ids.js';
import { findingsOfInvoice } from '../../domain/invoices/invoiceFindings.js';
import { restoreCheck } from '../../domain/invoices/storedReading.js';
import { PICO_PER_USD, picoFromDecimal } from '../../domain/money.js';
import type { Finding } from '../../domain/reconciliation/engine/index.js';
import { type ComparableInvoice, type InvoiceComparison, numberOf } from './tieOut.js';

/**
 * Replaces the findings of an invoice, in the transaction that ends its run. Only a confirmed invoice has findings. A
 * finding keeps its id from run to run. One that the invoice no longer has is deleted, or marked as gone if a person has
 * decided on it.
 */
export async function publishInvoiceFindings(
  inside: OrgDb,
  runId: string,
  invoice: StoredInvoice,
  comparison: InvoiceComparison | null,
): Promise<void> {
  const found = comparison ? await findingsOf(inside, invoice, comparison) : [];
  const published = await listFindingsOfInvoice(inside, invoice.id);
  const findings = found.map(
    (finding): IdentifiedFinding => ({
      ...{ id: idOf(inside.orgId, invoice.id, finding), finding, decisionOf: null, heldBy: null },
    }),
  );
  const kept = new Set(findings.map(({ id }) => id));
  const left = published.filter(({ id }) => !kept.has(id));
  await writeFindings(
    inside,
    { invoiceId: invoice.id, invoiceRunId: runId },
    {
      findings,
      removed: left.filter(({ status }) => status === 'open').map(({ id }) => id),
      gone: left.filter(({ status }) => status === 'confirmed' || status === 'dismissed').map(({ id }) => id),
    },
  );
}

async function findingsOf(
  inside: OrgDb,
  invoice: StoredInvoice,
  { tieOut, comparedRate, isProvisional }: InvoiceComparison,
): Promise<Finding[]> {
  if (invoice.confirmedAtMicros === null || !tieOut || !isComparable(invoice)) return [];
  const { provider, providerAccountId, periodEnd, currency, declaredFxRate } = invoice;
  const ownRate = currency === 'USD' ? PICO_PER_USD : (picoFromDecimal(declaredFxRate ?? '') ?? comparedRate);
  return findingsOfInvoice({
    ...{ provider, tieOut, comparedRate, ownRate, isProvisional },
    accountId: providerAccountId,
    number: numberOf(invoice),
    day: periodEnd,
    checks: invoice.checks.map(restoreCheck),
    weightSet: (await currentWeights(inside)).version,
  });
}

/** Whether its account and its period are known. */
export function isComparable(invoice: StoredInvoice): invoice is ComparableInvoice {
  return invoice.providerAccountId !== null && invoice.periodStart !== null && invoice.periodEnd !== null;
}

/** The id of a finding: equal for the same contradiction of the same invoice, whichever run finds it. */
function idOf(orgId: string, invoiceId: string, { kind, variant, direction }: Finding): string {
  const name = JSON.stringify([orgId, invoiceId, kind, variant, direction]);
  return formatUuid(createHash('sha256').update(name).digest('hex').slice(0, 32));
}
