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
import { chunksOf, ifMissing } from './invoiceFiles.js';

/** Words of 200 full pages with their boxes. */
const EXTRACTION_BYTES_MAX = 268_435_456;
/** The name of an operation and the sizes of 200 pages. */
const OPERATION_BYTES_MAX = 65_536;
const MS_PER_SECOND = 1_000;

export interface ExtractionDeps extends InvoiceDeps {
  /** Reads a PDF in processes of its own: adapters/invoices/extractor.ts. */
  extractInvoice: InvoiceExtractor['extract'];
}

/** The open run with this id. Error: not_found, also for a run that has ended or whose invoice was deleted. */
export async function getOpenInvoiceRun(orgDb: OrgDb, runId: string): Promise<InvoiceRun> {
  const run = await findRun(orgDb, INVOICE_RUNS, runId);
  if (run && !RUN_TERMINAL_STATUSES.has(run.status)) return run;
  throw new DomainError('not_found', `the run ${runId} has ended`);
}

/**
 * Reads the pages of an invoice's file into words and stores them in the blob store; stored words are not extracted
 * again. Returns false when the organization already has its maximum of extractions at work. Errors: those of the
 * extractor, and not_found for a run that has ended.
 */
export async function extractInvoiceFile(
  { blobs, extractInvoice }: ExtractionDeps,
  orgDb: OrgDb,
  runId: string,
  options: Pick<ExtractOptions, 'signal'>,
): Promise<boolean> {
  const run = await getOpenInvoiceRun(orgDb, runId);
  if (run.extractionKey !== null) return true;
  const invoice = await findInvoice(orgDb, run.invoiceId);
  if (!invoice) throw new DomainError('not_found', 'the invoice was deleted');
  const takePlace = () => orgDb.transaction((inside) => takeExtractionPlace(inside, runId));
  if (!(await takePlace())) return false;
  const keeping = setInterval(() => takePlace().catch(() => undefined), (PLACE_SECONDS * MS_PER_SECOND) / 3);
  try {
    // The reader takes plain bytes alone and would receive a Buffer as a Buffer.
    const pdf = new Uint8Array(await readBlob(blobs, invoice.blobKey));
    const folder = invoiceFolder(orgDb.orgId, invoice.id);
    const operationKey = `${folder}operation-${runId}.json`;
    const operation = await readBlob(blobs, operationKey).catch(ifMissing);
    const extraction = await extractInvoice(pdf, {
      ...options,
      ...(run.engines ? { engines: run.engines } : {}),
      ...(operation ? { operation: JSON.parse(operation.toString('utf8')) as LongExtraction } : {}),
      onOperation: async (started) => {
        if (!started) return blobs.delete(operationKey);
        const bytes = Buffer.from(JSON.stringify(started));
        await blobs.put(operationKey, chunksOf(bytes), { bytesMax: OPERATION_BYTES_MAX });
      },
    });
    const key = `${folder}words-${runId}.json`;
    const bytes = Buffer.from(JSON.stringify(extraction));
    await blobs.put(key, chunksOf(bytes), { bytesMax: EXTRACTION_BYTES_MAX });
    await recordExtraction(orgDb, runId, { key, turns: turnsOf(extraction) });
    return true;
  } finally {
    clearInterval(keeping);
    // A place that cannot be released becomes free when its lease expires.
    await leaveExtractionPlace(orgDb, runId).catch(() => undefined);
  }
}

function turnsOf({ pages }: InvoiceExtraction): PageTurns {
  return Object.fromEntries(pages.flatMap(({ page, turn }) => (turn ? [[page, turn]] : [])));
}
