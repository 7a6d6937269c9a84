import { listRematchable } from '../../db/invoices/comparedInvoices.js';
import { type OrgDb, readClock } from '../../db/orgDb.js';
import type { Provider } from '../../domain/providers.js';
import { rematchInvoice } from './reviewInvoice.js';

/** Most invoices that are compared again after one change of a bill. */
const REMATCHED_MAX = 200;

/**
 * Queues another comparison of a provider's invoices that charge for one of these days (both inclusive), because their
 * bill has changed. Call it in the transaction of the change.
 */
export async function rematchInvoicesOf(
  inside: OrgDb,
  changed: { provider: Provider; fromDay: string; toDay: string; exceptId?: string },
): Promise<void> {
  const invoices = await listRematchable(inside, { ...changed, limit: REMATCHED_MAX });
  if (invoices.length === 0) return;
  const nowMicros = await readClock(inside);
  for (const invoice of invoices) await rematchInvoice(inside, invoice, { requestedBy: 'system', nowMicros });
}
