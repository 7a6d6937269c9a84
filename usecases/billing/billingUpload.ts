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

/** Facts about an upload that are known only after its last byte. */
export type UploadedBill = Omit<NewBillingSource, 'id'>;

/**
 * Stores a bill chunk by chunk while it arrives. Then one transaction stores the import's row and the message that
 * starts its workflow. Each chunk is its own transaction, since one as long as a slow upload would delay every total
 * (docs/decisions/0009); the chunks of a failed upload are removed. `receive` gets the function that stores a chunk,
 * and returns the facts about the file. An identical file returns its existing import; `record` is called only for a
 * new one, at the end of the transaction. With a `limit`, an organization with that many open imports is refused before
 * any data is received. Errors: those of `receive`; account_required; rate_limited.
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
      // Refused early: the bill's account is unknown, and the organization has several accounts.
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
    // If this fails too, the sweeper removes chunks without an import.
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

/** The function that writes a new import's row to the audit log, at the end of its transaction. */
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
