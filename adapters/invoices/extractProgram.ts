/**
 * A process of its own that reads one PDF under limits and ends. It takes one message, the job, and has neither
 * settings nor secrets.
 */
import type { PDFDocumentProxy } from 'pdfjs-dist/legacy/build/pdf.mjs';
import { DomainError, type ErrorCode } from '../../domain/errors.js';
import type { PageTurn, PageWords } from '../../domain/invoices/pageWords.js';
import type { ReadyMessage } from './limitedChild.js';
import {
  asPdfFailure,
  blankPage,
  drawPage,
  hasPictures,
  openPdf,
  type PdfSource,
  readTextLayer,
} from './pdf.js';

export type ExtractJob =
  | {
      kind: 'text';
      pdf: PdfSource;
      /** No engine follows: a page without text is told apart from one whose text is in its pictures. */
      isLast: boolean;
    }
  | { kind: 'image'; pdf: PdfSource; page: number; dpi: number; turn?: PageTurn | undefined };

export type ExtractMessage =
  | { is: 'page'; page: PageWords; pages: number }
  | { is: 'read'; pages: number; unread: number[] }
  | { is: 'image'; png: Uint8Array }
  | { is: 'failed'; code: ErrorCode; sentence: string };

// The parent has gone: its signals will not come. Ends this process's group, so what it has started too.
process.once('disconnect', () => process.kill(-process.pid, 'SIGKILL'));

process.once('message', async (job: ExtractJob) => {
  try {
    await work(job);
  } catch (error) {
    const failure = asPdfFailure(error);
    // Without a last message the parent takes it for a limit.
    if (failure) await say({ is: 'failed', code: failure.code, sentence: failure.message });
  }
  process.exit(0);
});
await say({ is: 'ready' });

async function work(job: ExtractJob): Promise<void> {
  const document = await openPdf(job.pdf);
  if (job.kind === 'image') {
    if (job.page > document.numPages)
      throw new DomainError('not_found', `the PDF has ${document.numPages} pages`);
    const { png } = await drawPage(await document.getPage(job.page), job);
    await say({ is: 'image', png });
    return;
  }
  await say({ is: 'read', pages: document.numPages, unread: await readText(document, job.isLast) });
}

/** Sends every page with a usable text layer. Returns the numbers of the others. */
async function readText(document: PDFDocumentProxy, isLast: boolean): Promise<number[]> {
  const unread: number[] = [];
  for (let number = 1; number <= document.numPages; number += 1) {
    const page = await document.getPage(number);
    const words = await readTextLayer(page);
    if (words) await say({ is: 'page', page: words, pages: document.numPages });
    else if (isLast && !(await hasPictures(page)))
      await say({ is: 'page', page: blankPage(page), pages: document.numPages });
    else unread.push(number);
    page.cleanup();
  }
  return unread;
}

function say(message: ExtractMessage | ReadyMessage): Promise<void> {
  return new Promise((resolve) => {
    process.send?.(message, () => resolve());
  });
}
