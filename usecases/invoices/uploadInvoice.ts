import { PassThrough } from 'node:stream';
import { INVOICE_RUNS } from '../../db/invoices/invoiceRuns.js';
import {
  findInvoiceOfFile,
  insertInvoice,
  type NewInvoice,
  type StoredInvoice,
} from '../../db/invoices/invoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import { DomainError } from '../../domain/errors.js';
import { newUuid, publicId } from '../../domain/ids.js';
import { looksLikePdf } from '../../domain/invoices/looksLikePdf.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { insertWithinLimit, type OpenRunLimit, queueRun } from '../runs/openRun.js';
import { INVOICE_BYTES_MAX, type InvoiceDeps, invoiceFolder } from './invoiceDeps.js';

/** The fields of an upload, known only once all of it has arrived. */
export type UploadedInvoice = Omit<NewInvoice, 'id' | 'blobKey' | 'uploadedBy'>;

/** Receives an upload: passes its bytes to `store` as they arrive; returns the fields of the upload at its end. */
export type ReceiveInvoice = (store: (chunk: Buffer) => Promise<void>) => Promise<UploadedInvoice>;

const RETRY_AFTER_SECONDS = 2;

export interface UploadOptions {
  author: RequestAuthor;
  limit: OpenRunLimit | undefined;
  nowMicros: bigint;
}

/**
 * Stores an invoice while it arrives; its row, its first run and the message that starts it follow in one transaction
 * when the file is whole. A repeated file returns the stored invoice. A file whose row is not stored is deleted, by
 * the retention at the latest. The limit of open runs is checked last, because only the hash of the whole file shows
 * whether it is a repeat. Errors: those of `receive`, not_a_pdf, rate_limited, and those of the blob store.
 */
export async function uploadInvoice(
  { blobs }: InvoiceDeps,
  orgDb: OrgDb,
  receive: ReceiveInvoice,
  { author, limit, nowMicros }: UploadOptions,
): Promise<{ invoice: StoredInvoice; existing: boolean }> {
  const id = newUuid(nowMicros);
  const blobKey = `${invoiceFolder(orgDb.orgId, id)}document.pdf`;
  let isKept = false;
  try {
    const file = await storeBytes(blobs, blobKey, receive);
    const wanted: NewInvoice = { ...file, id, blobKey, uploadedBy: author.caller.keyId };
    const stored = await insertUpload(orgDb, wanted, { author, limit, nowMicros });
    isKept = stored !== undefined;
    const invoice = stored ?? (await findInvoiceOfFile(orgDb, file.provider, file.sha256));
    if (invoice) return { invoice, existing: !isKept };
    throw new DomainError(
      'service_unavailable',
      'the invoice of the same file was deleted just now; upload it again',
      { retryAfterSeconds: RETRY_AFTER_SECONDS },
    );
  } finally {
    if (!isKept) await blobs.delete(blobKey).catch(() => undefined);
  }
}

/** Stores the invoice and its first run; undefined: the same file is stored already. */
function insertUpload(
  orgDb: OrgDb,
  wanted: NewInvoice,
  { author, limit, nowMicros }: UploadOptions,
): Promise<StoredInvoice | undefined> {
  const run = {
    id: newUuid(nowMicros),
    invoiceId: wanted.id,
    cause: 'upload' as const,
    engines: null,
    requestedBy: wanted.uploadedBy,
    statusBefore: 'received' as const,
  };
  return orgDb.transaction(async (inside) => {
    const invoice = await insertWithinLimit(inside, limit, async () => {
      const inserted = await insertInvoice(inside, wanted);
      if (inserted) await queueRun(inside, INVOICE_RUNS, run);
      return inserted;
    });
    const { provider, filename, sha256 } = wanted;
    if (invoice)
      await recordAction(
        inside,
        author,
        'invoice.uploaded',
        { type: 'invoice', id: publicId('inv', invoice.id) },
        { provider, filename, sha256 },
      );
    return invoice;
  });
}

async function storeBytes(
  blobs: InvoiceDeps['blobs'],
  blobKey: string,
  receive: ReceiveInvoice,
): Promise<UploadedInvoice> {
  const bytes = new PassThrough();
  // Its failure reaches the reader; there may be no reader yet.
  bytes.on('error', () => undefined);
  let failure: unknown;
  const stored = blobs.put(blobKey, bytes, { bytesMax: INVOICE_BYTES_MAX }).catch((error: unknown) => {
    failure ??= error;
    bytes.destroy();
  });
  let isFirst = true;
  try {
    const file = await receive(async (chunk) => {
      if (isFirst) assertPdf(chunk);
      isFirst = false;
      await new Promise<void>((resolve, reject) => {
        bytes.write(chunk, (error) => (error ? reject(error) : resolve()));
      });
    });
    bytes.end();
    await stored;
    if (failure) throw failure;
    return file;
  } catch (error) {
    // A failure of the store breaks the stream and is the reason of the stream's error.
    failure ??= error;
    bytes.destroy(failure instanceof Error ? failure : undefined);
    await stored;
    throw failure;
  }
}

function assertPdf(head: Buffer): void {
  if (!looksLikePdf(head))
    throw new DomainError(
      'not_a_pdf',
      'the file is no PDF: upload the invoice as the provider issued it, as a PDF',
    );
}
