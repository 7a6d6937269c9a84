/**
 * A process of its own that reads one PDF under limits and ends. It takes one message, the job, and has neither
 * settings nor secrets.
 */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { PDFDocumentProxy } from 'pdfjs-dist/legacy/build/pdf.mjs';
import { DomainError, type ErrorCode } from '../../domain/errors.js';
import type { PageTurn, PageWords } from '../../domain/invoices/pageWords.js';
import type { ReadyMessage } from './limitedChild.js';
import { type OcrProgram, openLocalOcr } from './localOcr.js';
import {
  asPdfFailure,
  blankPage,
  drawGrey,
  drawPage,
  hasPictures,
  OCR_DPI,
  openPdf,
  type PdfSource,
  readTextLayer,
  recognizePage,
} from './pdf.js';

export type ExtractJob =
  | {
      kind: 'words';
      pdf: PdfSource;
      /** Null: all. */
      pages: readonly number[] | null;
      /** Whether to take the text layer where it is usable. */
      useText: boolean;
      /** Engine for the other pages; null leaves them unread. */
      ocr: OcrProgram | null;
      /** No other engine follows: a page without text may be blank. */
      isLast: boolean;
    }
  /** A PDF of some of the pages, in this order. */
  | { kind: 'part'; pdf: PdfSource; pages: readonly number[] }
  | { kind: 'image'; pdf: PdfSource; page: number; dpi: number; turn?: PageTurn | undefined };

export type ExtractMessage =
  /** Sizes in points, in the order of the pages. */
  | { is: 'opened'; sizes: { width: number; height: number }[] }
  | { is: 'part'; pdf: Uint8Array }
  | { is: 'page'; page: PageWords; pages: number }
  | { is: 'read'; pages: number; unread: number[]; peakMegabytes: number }
  | { is: 'image'; png: Uint8Array }
  | { is: 'failed'; code: ErrorCode; sentence: string; detail: string };

// The parent has ended and sends no signals any more. Ends this process's group, with all its children.
process.once('disconnect', () => process.kill(-process.pid, 'SIGKILL'));

process.once('message', async (job: ExtractJob) => {
  try {
    // A failed allocation must not look like an empty page, so the first reading is strict. The second one tolerates
    // small faults of the file, such as an unknown operator.
    await work(job, true).catch((error: unknown) => {
      if (asPdfFailure(error)?.code !== 'invalid_pdf') throw error;
      return work(job, false);
    });
  } catch (error) {
    const failure = asPdfFailure(error);
    // Without a last message the parent reports resource_limit.
    if (failure) {
      const detail = String((error as Error).stack);
      await say({ is: 'failed', code: failure.code, sentence: failure.message, detail });
    }
  }
  process.exit(0);
});
await say({ is: 'ready' });

async function work(job: ExtractJob, isStrict: boolean): Promise<void> {
  const document = await openPdf(job.pdf, isStrict);
  if (job.kind === 'image') {
    if (job.page > document.numPages)
      throw new DomainError('not_found', `the PDF has ${document.numPages} pages`);
    const { canvas } = await drawPage(await document.getPage(job.page), job);
    await say({ is: 'image', png: canvas.toBuffer('image/png') });
    return;
  }
  if (job.kind === 'part') {
    const pdf = await document.extractPages([
      { document: null, includePages: job.pages.map((page) => page - 1) },
    ]);
    if (!pdf) throw new Error('the pages cannot be taken out of the PDF');
    await say({ is: 'part', pdf });
    return;
  }
  await say({ is: 'opened', sizes: await pageSizes(document) });
  const unread = await readText(document, job);
  const left = job.ocr ? await readImages(document, unread, job.ocr) : unread;
  await say({ is: 'read', pages: document.numPages, unread: left, peakMegabytes: peakMegabytes() });
}

/** Linux counts what the parent held at the start into `maxRSS`, so its own peak is read where it can be. */
function peakMegabytes(): number {
  try {
    const [, kilobytes] = /VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    if (kilobytes !== undefined) return Number(kilobytes) / 1024;
  } catch {
    // Not Linux.
  }
  return process.resourceUsage().maxRSS / 1024;
}

async function pageSizes(document: PDFDocumentProxy): Promise<{ width: number; height: number }[]> {
  const sizes: { width: number; height: number }[] = [];
  for (let number = 1; number <= document.numPages; number += 1) {
    const { width, height } = (await document.getPage(number)).getViewport({ scale: 1 });
    sizes.push({ width, height });
  }
  return sizes;
}

type WordsJob = ExtractJob & { kind: 'words' };

/** Sends every page with a usable text layer. Returns the numbers of the others. */
async function readText(document: PDFDocumentProxy, { pages, useText, isLast }: WordsJob): Promise<number[]> {
  const wanted = pages ?? Array.from({ length: document.numPages }, (_, at) => at + 1);
  if (!useText) return [...wanted];
  const unread: number[] = [];
  for (const number of wanted) {
    const page = await document.getPage(number);
    const words =
      (await readTextLayer(page)) ?? (isLast && !(await hasPictures(page)) ? blankPage(page) : undefined);
    if (words) await say({ is: 'page', page: words, pages: document.numPages });
    else unread.push(number);
    page.cleanup();
  }
  return unread;
}

/** After this CPU time another process continues, with a CPU limit of its own. Two pages may still be under way. */
const OCR_CPU_MICROSECONDS = 6_000_000;
/** Engines at once: each reads a page on a processor of its own and takes about 80 MB. */
const OCR_ENGINES_MAX = 2;
/** Larger pages, in points, are read one at a time: A4 has 842 x 595, Legal 1,008 x 612. */
const PARALLEL_AREA_MAX = 1_010 * 620;

/** Recognises at least one page. Returns the numbers of the pages for another process. */
async function readImages(
  document: PDFDocumentProxy,
  unread: readonly number[],
  program: OcrProgram,
): Promise<number[]> {
  if (unread.length === 0) return [];
  const waiting = [...unread];
  const open = () =>
    openLocalOcr(program, OCR_DPI).catch((error: Error) => {
      throw new DomainError(
        'ocr_unavailable',
        `the program that reads images does not start: ${error.message}`,
      );
    });
  const mayTake = () => {
    const { user, system } = process.cpuUsage();
    return user + system <= OCR_CPU_MICROSECONDS;
  };
  // One page is drawn at a time, so that the first engine begins as soon as it can.
  let drawing: Promise<unknown> = Promise.resolve();
  const draw = (number: number) => {
    const drawn = drawing.then(async () => drawGrey(await document.getPage(number)));
    drawing = drawn.catch(() => undefined);
    return drawn;
  };
  const readInTurn = async () => {
    // It opens while the page is drawn.
    const opening = open();
    opening.catch(() => undefined);
    for (
      let number = waiting.shift();
      number !== undefined;
      number = mayTake() ? waiting.shift() : undefined
    ) {
      const image = await draw(number);
      const page = await recognizePage(number, image, await opening);
      await say({ is: 'page', page, pages: document.numPages });
    }
  };
  const sizes = await pageSizes(document);
  const isLarge = unread.some((number) => {
    const { width = 0, height = 0 } = sizes[number - 1] ?? {};
    return width * height > PARALLEL_AREA_MAX;
  });
  const engines = isLarge ? 1 : Math.min(OCR_ENGINES_MAX, availableParallelism(), unread.length);
  await Promise.all(Array.from({ length: engines }, readInTurn));
  return waiting;
}

function say(message: ExtractMessage | ReadyMessage): Promise<void> {
  return new Promise((resolve) => {
    process.send?.(message, () => resolve());
  });
}
