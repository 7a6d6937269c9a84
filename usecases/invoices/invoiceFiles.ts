import type { Readable } from 'node:stream';
import type { InvoiceExtractor } from '../../adapters/invoices/extractor.js';
import { findPageTurns } from '../../db/invoices/invoiceRuns.js';
import type { StoredInvoice } from '../../db/invoices/invoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import { DomainError, type ErrorCode } from '../../domain/errors.js';
import { INVOICE_BYTES_MAX, type InvoiceDeps, invoiceFolder, readBlob } from './invoiceDeps.js';
import { getInvoice } from './storedInvoice.js';

/** The file as it was uploaded. Error: not_found. */
export async function openInvoiceFile(
  { blobs }: InvoiceDeps,
  orgDb: OrgDb,
  id: string,
): Promise<{ invoice: StoredInvoice; sizeBytes: number; stream: Readable }> {
  const invoice = await getInvoice(orgDb, id);
  return { invoice, ...(await blobs.get(invoice.blobKey)) };
}

/** The dependencies of drawing pages. */
export interface InvoicePageDeps extends InvoiceDeps {
  /** Draws a page in a process of its own: adapters/invoices/extractor.ts. */
  renderInvoicePage: InvoiceExtractor['renderPage'];
}

/** Codes of failures that make a page not_found instead of an error of the service. */
const UNDRAWABLE: ReadonlySet<ErrorCode> = new Set([
  'not_found',
  'invalid_pdf',
  'invoice_encrypted',
  'too_many_pages',
  'resource_limit',
]);

/**
 * An image of a page, drawn at the first request and then stored. Errors: not_found, also for a page that cannot be
 * drawn; service_unavailable when too many pages wait to be drawn.
 */
export async function getInvoicePage(
  { blobs, renderInvoicePage }: InvoicePageDeps,
  orgDb: OrgDb,
  { id, page }: { id: string; page: number },
): Promise<Buffer> {
  const invoice = await getInvoice(orgDb, id);
  if (invoice.pages !== null && page > invoice.pages)
    throw new DomainError('not_found', `the invoice has ${invoice.pages} pages`);
  const turn = (await findPageTurns(orgDb, invoice.id))[page];
  const key = `${invoiceFolder(orgDb.orgId, invoice.id)}page-${page}-${turn ?? 0}.png`;
  const kept = await readBlob(blobs, key).catch(ifMissing);
  if (kept) return kept;
  const pdf = new Uint8Array(await readBlob(blobs, invoice.blobKey));
  const png = await renderInvoicePage(pdf, page, { turn }).catch((error: unknown) => {
    if (!(error instanceof DomainError) || !UNDRAWABLE.has(error.code)) throw error;
    throw new DomainError('not_found', `page ${page} cannot be drawn: ${error.message}`, { cause: error });
  });
  await blobs.put(key, chunksOf(png), { bytesMax: INVOICE_BYTES_MAX });
  return png;
}

export function ifMissing(error: unknown): undefined {
  if (!(error instanceof DomainError) || error.code !== 'not_found') throw error;
}

export async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
