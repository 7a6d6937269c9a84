import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { DomainError } from '../../domain/errors.js';
import type {
  ExtractedEntity,
  InvoiceEngine,
  InvoiceExtraction,
  PageTurn,
  PageWords,
} from '../../domain/invoices/pageWords.js';
import { Places } from '../../domain/places.js';
import { type Config, processEnvironment } from '../../platform/config.js';
import { findOnPath } from '../../platform/embedded/temporalProgram.js';
import {
  createDocumentAi,
  type DocumentAiAnswer,
  type DocumentAiSettings,
  type LongExtraction,
  ONLINE_PAGES_MAX,
} from './documentAi.js';
import type { SentPage } from './documentAiAnswer.js';
import type { ExtractJob, ExtractMessage } from './extractProgram.js';
import { type ChildLimits, type LimitedChild, startLimited } from './limitedChild.js';
import type { OcrProgram } from './localOcr.js';
import type { PdfSource } from './pdf.js';

export interface InvoiceExtractorSettings {
  /** Engines in order: the first that can read a page reads it. */
  engines: readonly InvoiceEngine[];
  /** The program of the engine `tesseract`. */
  ocr?: OcrProgram;
  documentAi?: DocumentAiSettings;
  limits?: Partial<ChildLimits>;
  /** Is called with the resident memory of each process that has read pages. */
  onPeakMemory?: (megabytes: number) => void;
  /** Documents read at once; others wait. */
  extractionsAtOnce?: number;
  /** Pages drawn at once. */
  imagesAtOnce?: number;
  /** Pages that may wait to be drawn; more are refused. */
  imagesWaitingMax?: number;
  /** The time that a process waits for a next document, which then is read 0.3 s sooner; absent: none waits. */
  spareMs?: number;
}

export interface ExtractOptions {
  /** Instead of the settings' engines: a retry may leave out the text layer. */
  engines?: readonly InvoiceEngine[];
  signal?: AbortSignal;
  /** A long operation that an earlier attempt has started: it is polled instead of starting another. */
  operation?: LongExtraction;
  /** When a long operation has been started, to be kept for another attempt; undefined once it has ended. */
  onOperation?: (operation: LongExtraction | undefined) => Promise<void>;
  /** After each page that is read, in no particular order. */
  onPage?: (page: { page: number; pages: number; engine: InvoiceEngine }) => void;
}

export interface RenderOptions {
  dpi?: number;
  /** As `PageWords` states it, so that the boxes fit the image. */
  turn?: PageTurn | undefined;
  signal?: AbortSignal;
}

export interface InvoiceExtractor {
  /**
   * Reads every page of a PDF, or fails: never a part.
   * Errors invalid_pdf, invoice_encrypted, too_many_pages, resource_limit, ocr_unavailable (with
   * `retryAfterSeconds` where it passes by itself).
   */
  extract(pdf: PdfSource, options?: ExtractOptions): Promise<InvoiceExtraction>;
  /** Announces a document: a process starts that waits for it. */
  prepare(): void;
  /** A page as PNG. Errors not_found, service_unavailable (too many wait), and those of a PDF. */
  renderPage(pdf: PdfSource, page: number, options?: RenderOptions): Promise<Buffer>;
}

const POLL_MS = 5_000;
const IMAGE_DPI = 110;
const IMAGE_DPI_MAX = 300;

/** The extractor's settings from the service's configuration. */
export function extractorSettings({
  invoices,
  cacheDir,
}: Pick<Config, 'invoices' | 'cacheDir'>): InvoiceExtractorSettings {
  const { engines, tesseract, documentAi } = invoices;
  const path = tesseract ?? findOnPath('tesseract', processEnvironment().PATH ?? '');
  return {
    engines,
    ...(documentAi ? { documentAi } : {}),
    ocr: path === undefined || path === 'bundled' ? 'bundled' : { path, dataDir: join(cacheDir, 'tessdata') },
  };
}

export function createInvoiceExtractor(settings: InvoiceExtractorSettings): InvoiceExtractor {
  const documentAi = settings.documentAi && createDocumentAi(settings.documentAi);
  const extractions = new Places(settings.extractionsAtOnce ?? 2);
  const images = new Places(settings.imagesAtOnce ?? 2, settings.imagesWaitingMax ?? 16);
  const spare = new SpareChild(settings);
  const run = (
    job: ExtractJob,
    signal: AbortSignal | undefined,
    onMessage: (message: ExtractMessage) => boolean,
  ) => {
    signal?.throwIfAborted();
    return spare.take().run(job, {
      signal,
      onMessage: (message) => {
        if (message.is === 'failed')
          throw new DomainError(message.code, message.sentence, { cause: message.detail });
        return onMessage(message);
      },
    });
  };

  /** The pages of one document that were read so far. */
  interface Progress {
    /** Size of every page; undefined until a process has opened the PDF. */
    sizes?: readonly { width: number; height: number }[];
    pages: Map<number, PageWords>;
    entities: ExtractedEntity[];
  }

  function unreadPages({ sizes, pages }: Progress): SentPage[] | undefined {
    return sizes?.map((size, at) => ({ page: at + 1, ...size })).filter(({ page }) => !pages.has(page));
  }

  function take(progress: Progress, { onPage }: ExtractOptions, page: PageWords): void {
    progress.pages.set(page.page, page);
    onPage?.({ page: page.page, pages: progress.sizes?.length ?? 0, engine: page.engine });
  }

  /** Runs the engines of this machine on the unread pages, in as many processes as it takes. */
  async function readLocally(
    pdf: PdfSource,
    progress: Progress,
    options: ExtractOptions,
    engines: { useText: boolean; ocr: OcrProgram | null; isLast: boolean },
  ): Promise<void> {
    let isFirst = true;
    let left: readonly number[] = [];
    do {
      const pages = unreadPages(progress)?.map(({ page }) => page) ?? null;
      const job: ExtractJob = { kind: 'words', pdf, pages, ...engines, useText: engines.useText && isFirst };
      await run(job, options.signal, (message) => {
        if (message.is === 'opened') progress.sizes = message.sizes;
        if (message.is === 'page') take(progress, options, message.page);
        if (message.is !== 'read') return false;
        left = message.unread;
        settings.onPeakMemory?.(message.peakMegabytes);
        return true;
      });
      isFirst = false;
    } while (engines.ocr !== null && left.length > 0);
  }

  /** A PDF of these pages; the PDF itself if these are all its pages. */
  async function partOf(
    pdf: PdfSource,
    pages: readonly SentPage[],
    progress: Progress,
    signal?: AbortSignal,
  ) {
    if (pages.length === progress.sizes?.length)
      return typeof pdf === 'string' ? new Uint8Array(await readFile(pdf)) : pdf;
    let part = new Uint8Array();
    await run({ kind: 'part', pdf, pages: pages.map(({ page }) => page) }, signal, (message) => {
      if (message.is === 'part') part = new Uint8Array(message.pdf);
      return message.is === 'part';
    });
    return part;
  }

  async function readRemotely(pdf: PdfSource, progress: Progress, options: ExtractOptions): Promise<void> {
    const { signal } = options;
    if (progress.sizes === undefined)
      await readLocally(pdf, progress, options, { useText: false, ocr: null, isLast: false });
    if (documentAi === undefined)
      throw new DomainError('ocr_unavailable', 'Document AI has no processor: set DOCUMENT_AI_PROCESSOR');
    const unread = unreadPages(progress) ?? [];
    const takeAll = ({ pages, entities }: DocumentAiAnswer) => {
      for (const page of pages) take(progress, options, page);
      progress.entities.push(...entities);
    };
    const { long } = documentAi;
    if (unread.length > ONLINE_PAGES_MAX && long !== undefined) {
      let { operation } = options;
      if (!operation) {
        operation = await long.start(await partOf(pdf, unread, progress, signal), unread, signal);
        await options.onOperation?.(operation);
      }
      while (!(await long.poll(operation, signal)))
        await delay(settings.documentAi?.pollMs ?? POLL_MS, undefined, signal ? { signal } : {});
      try {
        return takeAll(await long.read(operation, signal));
      } finally {
        // It is forgotten before its files are removed: an attempt that ends in between starts another.
        if (!signal?.aborted) {
          await options.onOperation?.(undefined);
          await long.remove(operation);
        }
      }
    }
    for (let at = 0; at < unread.length; at += ONLINE_PAGES_MAX) {
      const chunk = unread.slice(at, at + ONLINE_PAGES_MAX);
      takeAll(await documentAi.read(await partOf(pdf, chunk, progress, signal), chunk, signal));
    }
  }

  async function read(pdf: PdfSource, options: ExtractOptions): Promise<InvoiceExtraction> {
    const engines = [...(options.engines ?? settings.engines)];
    const progress: Progress = { pages: new Map(), entities: [] };
    const isWhole = () => unreadPages(progress)?.length === 0;
    while (engines.length > 0 && !isWhole()) {
      const engine = engines.shift();
      try {
        if (engine === 'document_ai') await readRemotely(pdf, progress, options);
        else {
          // One process serves both engines: it recognises the pages without text.
          const recognizes = engine === 'tesseract' || engines[0] === 'tesseract';
          if (engine === 'text' && recognizes) engines.shift();
          await readLocally(pdf, progress, options, {
            useText: engine === 'text',
            ocr: recognizes ? (settings.ocr ?? 'bundled') : null,
            isLast: engines.length === 0 && !recognizes,
          });
        }
      } catch (error) {
        // The next engine reads the pages of a missing one.
        const isMissing =
          error instanceof DomainError &&
          error.code === 'ocr_unavailable' &&
          error.retryAfterSeconds === undefined;
        if (!isMissing || engines.length === 0) throw error;
      }
    }
    if (!isWhole()) throw noEngine(unreadPages(progress) ?? []);
    return {
      pages: [...progress.pages.values()].sort((one, other) => one.page - other.page),
      entities: progress.entities,
    };
  }

  return {
    async extract(pdf, options = {}) {
      return extractions.use(options.signal, () => read(pdf, options)).finally(() => spare.keep());
    },
    prepare: () => spare.keep(),
    async renderPage(pdf, page, { dpi = IMAGE_DPI, turn, signal } = {}) {
      return images.use(signal, async () => {
        let png: Uint8Array | undefined;
        await run(
          { kind: 'image', pdf, page, dpi: Math.min(dpi, IMAGE_DPI_MAX), turn },
          signal,
          (message) => {
            if (message.is === 'image') png = message.png;
            return png !== undefined;
          },
        );
        return Buffer.from(png ?? []);
      });
    },
  };
}

type Child = LimitedChild<ExtractJob, ExtractMessage>;

/** At most one process that waits for a document. It reads one and ends, like every other. */
class SpareChild {
  readonly #settings: Pick<InvoiceExtractorSettings, 'limits' | 'spareMs'>;
  #child: Child | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(settings: Pick<InvoiceExtractorSettings, 'limits' | 'spareMs'>) {
    this.#settings = settings;
  }

  /** The one that waits, or a new one. */
  take(): Child {
    const child = this.#child;
    this.#child = undefined;
    clearTimeout(this.#idle);
    return child && !child.hasEnded ? child : startLimited(PROGRAM, this.#settings.limits);
  }

  /** Has one wait from now on for as long as the settings say. */
  keep(): void {
    const { spareMs, limits } = this.#settings;
    if (spareMs === undefined) return;
    if (!this.#child || this.#child.hasEnded) this.#child = startLimited(PROGRAM, limits);
    const waiting = this.#child;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      waiting.end();
      if (this.#child === waiting) this.#child = undefined;
    }, spareMs).unref();
  }
}

function noEngine(pages: readonly SentPage[]): DomainError {
  const numbers = pages.map(({ page }) => page).join(', ');
  return new DomainError(
    'ocr_unavailable',
    `the PDF has no text on page ${numbers}, and no engine that reads images is set: add tesseract or document_ai to INVOICE_ENGINES`,
  );
}

const IS_BUILT = !import.meta.url.endsWith('.ts');
const PROGRAM = fileURLToPath(new URL(`./extractProgram.${IS_BUILT ? 'js' : 'ts'}`, import.meta.url));
