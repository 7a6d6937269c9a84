import { fileURLToPath } from 'node:url';
import { DomainError } from '../../domain/errors.js';
import type {
  ExtractedEntity,
  InvoiceEngine,
  InvoiceExtraction,
  PageTurn,
  PageWords,
} from '../../domain/invoices/pageWords.js';
import type { ExtractJob, ExtractMessage } from './extractProgram.js';
import { type ChildLimits, runLimited } from './limitedChild.js';
import type { OcrProgram } from './localOcr.js';
import type { PdfSource } from './pdf.js';
import { Places } from './places.js';

export interface InvoiceExtractorSettings {
  /** What reads a page, in this order: each page by the first that can. */
  engines: readonly InvoiceEngine[];
  /** What stands behind `tesseract`. */
  ocr?: OcrProgram;
  limits?: Partial<ChildLimits>;
  /** Is called with the resident memory of each process that has read pages. */
  onPeakMemory?: (megabytes: number) => void;
  /** Documents read at once; others wait. */
  extractionsAtOnce?: number;
  /** Pages drawn at once. */
  imagesAtOnce?: number;
  /** Pages that may wait to be drawn; more are refused. */
  imagesWaitingMax?: number;
}

export interface ExtractOptions {
  /** Instead of the settings' engines: a retry may leave out the text layer. */
  engines?: readonly InvoiceEngine[];
  signal?: AbortSignal;
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
  /** A page as PNG. Errors not_found, service_unavailable (too many wait), and those of a PDF. */
  renderPage(pdf: PdfSource, page: number, options?: RenderOptions): Promise<Buffer>;
}

const IMAGE_DPI = 110;
const IMAGE_DPI_MAX = 300;

export function createInvoiceExtractor(settings: InvoiceExtractorSettings): InvoiceExtractor {
  const extractions = new Places(settings.extractionsAtOnce ?? 2, Number.POSITIVE_INFINITY);
  const images = new Places(settings.imagesAtOnce ?? 2, settings.imagesWaitingMax ?? 16);
  const run = (
    job: ExtractJob,
    signal: AbortSignal | undefined,
    onMessage: (message: ExtractMessage) => boolean,
  ) =>
    runLimited<ExtractJob, ExtractMessage>(PROGRAM, job, {
      ...(settings.limits ? { limits: settings.limits } : {}),
      signal,
      onMessage: (message) => {
        if (message.is === 'failed')
          throw new DomainError(message.code, message.sentence, { cause: message.detail });
        return onMessage(message);
      },
    });

  /** Runs local engines on `pages`, in as many processes as it takes. Returns the pages that they cannot read. */
  async function readLocally(
    job: Omit<ExtractJob & { kind: 'words' }, 'kind'>,
    signal: AbortSignal | undefined,
    take: (page: PageWords, pages: number) => void,
  ): Promise<number[]> {
    let unread: number[] | undefined;
    do {
      const pages: readonly number[] | null = unread ?? job.pages;
      const useText: boolean = unread === undefined && job.useText;
      await run({ kind: 'words', ...job, pages, useText }, signal, (message) => {
        if (message.is === 'page') take(message.page, message.pages);
        if (message.is === 'read') {
          unread = message.unread;
          settings.onPeakMemory?.(message.peakMegabytes);
        }
        return message.is === 'read';
      });
    } while (job.ocr !== null && unread !== undefined && unread.length > 0);
    return unread ?? [];
  }

  async function read(pdf: PdfSource, { engines = settings.engines, signal, onPage }: ExtractOptions) {
    const pages: PageWords[] = [];
    const entities: ExtractedEntity[] = [];
    const take = (page: PageWords, of: number) => {
      pages.push(page);
      onPage?.({ page: page.page, pages: of, engine: page.engine });
    };
    const unread = await readLocally(
      {
        pdf,
        pages: null,
        useText: engines.includes('text'),
        ocr: engines.includes('tesseract') ? (settings.ocr ?? 'bundled') : null,
        isLast: engines.length === 1,
      },
      signal,
      take,
    );
    if (unread.length > 0) throw ocrUnavailable(unread);
    return { pages: pages.sort((one, other) => one.page - other.page), entities };
  }

  return {
    async extract(pdf, options = {}) {
      return extractions.use(options.signal, () => read(pdf, options));
    },
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

function ocrUnavailable(pages: readonly number[]): DomainError {
  return new DomainError(
    'ocr_unavailable',
    `the PDF has no text on ${pages.length === 1 ? 'page' : 'pages'} ${pages.join(', ')}, and no engine that reads images is set: add tesseract or document_ai to INVOICE_ENGINES`,
  );
}

const IS_BUILT = !import.meta.url.endsWith('.ts');
const PROGRAM = fileURLToPath(new URL(`./extractProgram.${IS_BUILT ? 'js' : 'ts'}`, import.meta.url));
