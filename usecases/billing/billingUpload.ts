import { createHash } from 'node:crypto';
import {
  BILLING_IMPORTS,
  type BillingSource,
  deleteBillingPages,
  findSameBillingSource,
  insertBillingPage,
  listKnownAccounts,
  type NewBillingSource,
} from '../../db/billing/billingSources.js';
import type { OrgDb } from '../../db/orgDb.js';
import { assertAccountIn } from '../../domain/billing/billedRow.js';
import { DomainError } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { assertRoomForRun, insertWithinLimit, type OpenRunLimit, queueRun } from '../runs/openRun.js';

/** Bytes of a stored chunk. */
export const BILLING_PAGE_BYTES = 1_048_576;
const RETRY_AFTER_SECONDS = 2;

/** What an upload says of itself, known only once all of it has arrived. */
export type UploadedBill = Omit<NewBillingSource, 'id'>;

/**
 * Stores a bill while it arrives, chunk by chunk; the import's row and the message that starts its workflow follow in
 * one transaction when the whole of it is there. Chunks are committed one by one, since a transaction as long as a
 * slow upload would hold back every total (docs/decisions/0009); those of an upload that breaks are removed again.
 * `receive` is given the function that stores a chunk, and says at its end what the file is. The same file again
 * returns its existing import; `record` is called, as the last of the transaction, for a new one alone. With a
 * `limit`, an organization that has as many imports open is refused before anything is received. Errors: those of
 * `receive`; account_required; rate_limited.
 */
export async function storeBillingUpload(
  orgDb: OrgDb,
  importId: string,
  receive: (store: (chunk: Buffer) => Promise<void>) => Promise<UploadedBill>,
  limit?: OpenRunLimit | undefined,
  record?: (inside: OrgDb, source: BillingSource) => Promise<void>,
): Promise<{ source: BillingSource; existing: boolean }> {
  await assertRoomForRun(orgDb, limit);
  let kept = false;
  try {
    const { bill, head } = await storeChunks(orgDb, importId, receive);
    const wanted: NewBillingSource = { ...bill, id: importId };
    const stored = await orgDb.transaction(async (inside) => {
      // Refused at once rather than later: nothing says whose bill it is, and several accounts are known.
      if (bill.declaredAccount === null)
        assertAccountIn(head, await listKnownAccounts(inside, bill.provider));
      const source = await insertWithinLimit(inside, limit, () => queueRun(inside, BILLING_IMPORTS, wanted));
      if (source) await record?.(inside, source);
      return source;
    });
    kept = stored !== undefined;
    const source = stored ?? (await findSameBillingSource(orgDb, wanted));
    if (source) return { source, existing: !kept };
    throw new DomainError(
      'service_unavailable',
      'the import of the same file failed just now; upload it again',
      {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      },
    );
  } finally {
    // Where even this fails, the sweeper removes what belongs to no import.
    if (!kept) await deleteBillingPages(orgDb, importId).catch(() => undefined);
  }
}

async function storeChunks(
  orgDb: OrgDb,
  importId: string,
  receive: (store: (chunk: Buffer) => Promise<void>) => Promise<UploadedBill>,
): Promise<{ bill: UploadedBill; head: string }> {
  let pageNo = 0;
  let head = '';
  const bill = await receive(async (body) => {
    if (pageNo === 0) head = body.toString('latin1');
    const sha256 = createHash('sha256').update(body).digest('hex');
    await insertBillingPage(orgDb, { sourceId: importId, pageNo, sha256, body });
    pageNo += 1;
  });
  return { bill, head };
}

/** The row of a new import in the audit log, as the last of its transaction. */
export function recordImport(author: RequestAuthor) {
  return (inside: OrgDb, { id, provider, filename, sha256 }: BillingSource): Promise<void> =>
    recordAction(
      inside,
      author,
      'billing_import.created',
      { type: 'billing_import', id: publicId('imp', id) },
      { provider, filename, sha256 },
    );
}
