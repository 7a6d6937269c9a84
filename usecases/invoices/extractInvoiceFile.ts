import type { LongExtraction } from '../../adapters/invoices/documentAi.js';
import type { ExtractOptions, InvoiceExtractor } from '../../adapters/invoices/extractor.js';
import {
  INVOICE_RUNS,
  type InvoiceRun,
  leaveExtractionPlace,
  type PageTurns,
  PLACE_SECONDS,
  recordExtraction,
  takeExtractionPlace,
} from '../../db/invoices/invoiceRuns.js';
import { findInvoice } from '../../db/invoices/invoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import { findRun } from '../../db/runs/runTable.js';
import { DomainError } from '../../domain/errors.js';
import type { InvoiceExtraction } from '../../domain/invoices/pageWords.js';
import { RUN_TERMINAL_STATUSES } from '../../domain/runs/runKinds.js';
import { type InvoiceDeps, invoiceFolder, readBlob } from './invoiceDeps.js';
import { chunksOf } from './invoiceFiles.js';

/** Words of 200 full pages with their boxes. */
const EXTRACTION_BYTES_MAX = 268_435_456;
const MS_PER_SECOND = 1_000;

export interface ExtractionDeps extends InvoiceDeps {
  /** Reads a PDF in processes of its own: adapters/invoices/extractor.ts. */
  extractInvoice: InvoiceExtractor['extract'];
}

/** The run while it is open. Error not_found, also for one that has ended or whose invoice was deleted. */
export async function getOpenInvoiceRun(orgDb: OrgDb, runId: string): Promise<InvoiceRun> {
  const run = await findRun(orgDb, INVOICE_RUNS, runId);
  if (run && !RUN_TERMINAL_STATUSES.has(run.status)) return run;
  throw new DomainError('not_found', `the run ${runId} has ended`);
}

/**
 * Reads the pages of an invoice's file into words and stores them in the blob store; what is stored already is not
 * extracted again. False where the organization has all of its places taken. Errors: those of the extractor, and
 * not_found for a run that has ended.
 */
export async function extractInvoiceFile(
  { blobs, extractInvoice }: ExtractionDeps,
  orgDb: OrgDb,
  runId: string,
  {
    operation,
    ...options
  }: Pick<ExtractOptions, 'signal' | 'onOperation'> & { operation: LongExtraction | undefined },
): Promise<boolean> {
  const run = await getOpenInvoiceRun(orgDb, runId);
  if (run.extractionKey !== null) return true;
  const invoice = await findInvoice(orgDb, run.invoiceId);
  if (!invoice) throw new DomainError('not_found', 'the invoice was deleted');
  const takePlace = () => orgDb.transaction((inside) => takeExtractionPlace(inside, runId));
  if (!(await takePlace())) return false;
  const keeping = setInterval(() => takePlace().catch(() => undefined), (PLACE_SECONDS * MS_PER_SECOND) / 3);
  try {
    // A Buffer would reach the reader as one, which takes plain bytes alone.
    const pdf = new Uint8Array(await readBlob(blobs, invoice.blobKey));
    const extraction = await extractInvoice(pdf, {
      ...options,
      ...(run.engines ? { engines: run.engines } : {}),
      ...(operation ? { operation } : {}),
    });
    const key = `${invoiceFolder(orgDb.orgId, invoice.id)}words-${runId}.json`;
    const bytes = Buffer.from(JSON.stringify(extraction));
    await blobs.put(key, chunksOf(bytes), { bytesMax: EXTRACTION_BYTES_MAX });
    await recordExtraction(orgDb, runId, { key, turns: turnsOf(extraction) });
    return true;
  } finally {
    clearInterval(keeping);
    // A place that cannot be given back is free when its time is over.
    await leaveExtractionPlace(orgDb, runId).catch(() => undefined);
  }
}

function turnsOf({ pages }: InvoiceExtraction): PageTurns {
  return Object.fromEntries(pages.flatMap(({ page, turn }) => (turn ? [[page, turn]] : [])));
}
