import { createHash } from 'node:crypto';
import { findAccountIn } from '../domain/billing/account.js';
import { DomainError } from '../domain/errors.js';
import type { OrgDb } from './orgDb.js';
import {
  type BillingSource,
  findSameBillingSource,
  insertBillingPage,
  insertBillingSource,
  listKnownAccounts,
  type NewBillingSource,
} from './queries/billingSources.js';
import { insertOutboxMessage } from './queries/outbox.js';

/** Bytes of a stored chunk. */
export const BILLING_PAGE_BYTES = 1_048_576;

/** What an upload says of itself, known only once all of it has arrived. */
export type UploadedBill = Omit<NewBillingSource, 'id'>;

/** Thrown to undo the transaction when the same file is there already. */
class SameFile extends Error {
  readonly source: NewBillingSource;

  constructor(source: NewBillingSource) {
    super('the same file is there already');
    this.source = source;
  }
}

/**
 * Stores a bill while it arrives: chunks, the import's row and the message that starts its workflow are one
 * transaction, so nothing is kept of an upload that breaks. `receive` is given the function that stores a chunk, and
 * says at its end what the file is. The same file again gives the import that it already has.
 * Errors: those of `receive`; account_required.
 */
export async function storeBillingUpload(
  orgDb: OrgDb,
  importId: string,
  receive: (store: (chunk: Buffer) => Promise<void>) => Promise<UploadedBill>,
): Promise<{ source: BillingSource; existing: boolean }> {
  try {
    return await orgDb.transaction(async (inside) => {
      let pageNo = 0;
      let head = '';
      const bill = await receive(async (body) => {
        if (pageNo === 0) head = body.toString('latin1');
        const sha256 = createHash('sha256').update(body).digest('hex');
        await insertBillingPage(inside, { sourceId: importId, pageNo, sha256, body });
        pageNo += 1;
      });
      await assertAccountKnown(inside, bill, head);
      const source = await insertBillingSource(inside, { ...bill, id: importId });
      if (!source) throw new SameFile({ ...bill, id: importId });
      await insertOutboxMessage(inside, 'billing_import.start', importId);
      return { source, existing: false };
    });
  } catch (error) {
    if (!(error instanceof SameFile)) throw error;
    const source = await findSameBillingSource(orgDb, error.source);
    // It failed between the two looks: then this file is a new import after all.
    if (!source) {
      throw new DomainError(
        'service_unavailable',
        'the import of the same file failed just now; upload it again',
        {
          retryAfterSeconds: 2,
        },
      );
    }
    return { source, existing: true };
  }
}

/** Refuses at once what would fail later: nothing says whose bill it is, and several accounts are known. */
async function assertAccountKnown(inside: OrgDb, bill: UploadedBill, head: string): Promise<void> {
  if (bill.declaredAccount !== null) return;
  findAccountIn(head, await listKnownAccounts(inside, bill.provider));
}
