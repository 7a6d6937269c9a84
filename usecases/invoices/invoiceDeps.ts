import type { BlobStore } from '../../adapters/blobs/blobStore.js';

/** Largest file of an invoice, bytes. */
export const INVOICE_BYTES_MAX = 20_971_520;

/** The dependencies of work on invoices. */
export interface InvoiceDeps {
  blobs: BlobStore;
}

/** `invoices/<organization>/<invoice>/`: all files of an invoice. */
export const invoiceFolder = (orgId: string, invoiceId: string): string => `invoices/${orgId}/${invoiceId}/`;

/** All bytes of a stored file. Error: not_found. */
export async function readBlob(blobs: BlobStore, key: string): Promise<Buffer> {
  const { stream } = await blobs.get(key);
  const parts: Buffer[] = [];
  for await (const part of stream as AsyncIterable<Buffer>) parts.push(part);
  return Buffer.concat(parts);
}

/** Deletes all files of an invoice. */
export async function deleteInvoiceFiles(blobs: BlobStore, orgId: string, invoiceId: string): Promise<void> {
  const keys: string[] = [];
  for await (const { key } of blobs.stream(invoiceFolder(orgId, invoiceId))) keys.push(key);
  for (const key of keys) await blobs.delete(key);
}
