import type { BlobStore } from '../../adapters/blobs/blobStore.js';
import { fileBlobStore } from '../../adapters/blobs/fileBlobStore.js';
import { createInvoiceExtractor, type InvoiceExtractor } from '../../adapters/invoices/extractor.js';
import { makeTestFolder } from './testFolder.js';

let folder: string | undefined;
let extractor: InvoiceExtractor | undefined;

/** The folder of uploaded files of this test process: its API and its workers share it. */
export function testBlobFolder(): string {
  folder ??= makeTestFolder('blobs');
  return folder;
}

export function testBlobs(): BlobStore {
  return fileBlobStore(testBlobFolder());
}

/** Reads the text layer alone. */
export function testExtractor(): InvoiceExtractor {
  extractor ??= createInvoiceExtractor({ engines: ['text'] });
  return extractor;
}

/** The page reader that evidence of claims uses for invoices. */
export function testInvoicePages() {
  return { blobs: testBlobs(), renderInvoicePage: testExtractor().renderPage };
}
