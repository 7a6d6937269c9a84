import { INVOICE_RUNS } from '../../db/invoices/invoiceRuns.js';
import {
  deleteInvoice,
  isInvoiceCited,
  listReferring,
  lockInvoiceNumber,
  recordSameNumber,
  type StoredInvoice,
} from '../../db/invoices/invoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import { findOpenRun } from '../../db/runs/runTable.js';
import { DomainError } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import { INVOICE_OPEN_STATUSES } from '../../domain/invoices/invoice.js';
import { runMessage } from '../../domain/runs/runKinds.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { lockInvoiceById, rematchInvoice } from './reviewInvoice.js';
import { getInvoice } from './storedInvoice.js';

/**
 * Deletes an invoice with its lines and runs; the caller deletes its files afterwards. The first of its duplicates counts
 * in its place. Errors: not_found, invoice_cited.
 */
export async function removeInvoice(
  orgDb: OrgDb,
  id: string,
  author: RequestAuthor,
  nowMicros: bigint,
): Promise<StoredInvoice> {
  return orgDb.transaction(async (inside) => {
    await lockInvoiceNumber(inside, (await getInvoice(inside, id)).provider);
    const invoice = await lockInvoiceById(inside, id);
    if (await isInvoiceCited(inside, invoice.id))
      throw new DomainError(
        'invoice_cited',
        'a claim cites the invoice as evidence: discard the claim first, or keep the invoice',
      );
    const open = await findOpenRun(inside, INVOICE_RUNS, { invoiceId: invoice.id });
    if (open) await insertOutboxMessage(inside, runMessage('invoice_run', 'cancel'), open.id);
    await releaseReferring(inside, invoice.id, author, nowMicros);
    await deleteInvoice(inside, invoice.id);
    const { provider, filename, sha256, number } = invoice;
    const subject = { type: 'invoice', id: publicId('inv', invoice.id) };
    await recordAction(inside, author, 'invoice.deleted', subject, { provider, filename, sha256, number });
    return invoice;
  });
}

/** Releases the invoices that refer to a deleted one: its first duplicate counts from now on and is compared. */
async function releaseReferring(
  inside: OrgDb,
  id: string,
  author: RequestAuthor,
  nowMicros: bigint,
): Promise<void> {
  const referring = await listReferring(inside, id);
  const heir = referring.find(({ duplicateOf }) => duplicateOf === id);
  for (const one of referring) {
    const duplicateOf = one.duplicateOf === id ? (one === heir ? null : (heir?.id ?? null)) : one.duplicateOf;
    await recordSameNumber(inside, one.id, {
      duplicateOf,
      replaces: one.replaces === id ? null : one.replaces,
    });
  }
  if (heir && !INVOICE_OPEN_STATUSES.has(heir.status) && heir.status !== 'failed')
    await rematchInvoice(inside, heir, { requestedBy: author.caller.keyId, nowMicros });
}
