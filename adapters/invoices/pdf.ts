import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Canvas, createCanvas } from '@napi-rs/canvas';
import type { PDFDocumentProxy, PDFPageProxy } from 'pdfjs-dist/legacy/build/pdf.mjs';
import { DomainError } from '../../domain/errors.js';
import type { PageTurn, PageWords } from '../../domain/invoices/pageWords.js';
import { type LocalOcr, recognizeUpright } from './localOcr.js';
import { type GreyImage, greyOf, isBlank } from './pageImage.js';
import { isGarbled, isUsableText, type TextItem, turnOfText, wordsOf } from './textLayer.js';

/** A file, or its bytes. */
export type PdfSource = string | Uint8Array;

export const PAGES_MAX = 200;
/** A scan of A3 at 200 dpi. A larger page is drawn at a lower resolution. */
const PIXELS_MAX = 8_000_000;
export const OCR_DPI = 200;
const POINTS_PER_INCH = 72;
/** A page with fewer paths has no text drawn as outlines. */
const OUTLINE_PATHS_MIN = 60;

const PACKAGE = dirname(createRequire(import.meta.url).resolve('pdfjs-dist/package.json'));
/** The minified build loads in half the time; it has no types of its own. */
const [{ getDocument, OPS }] = await Promise.all([
  load<typeof import('pdfjs-dist/legacy/build/pdf.mjs')>('pdf.min.mjs'),
  // pdf.js finds it once it is loaded.
  load('pdf.worker.min.mjs'),
]);

function load<T>(name: string): Promise<T> {
  return import(pathToFileURL(join(PACKAGE, 'legacy/build', name)).href);
}

/**
 * Opens a PDF in this process, which must be one under limits. Nothing in the file is executed: no scripts, no
 * XFA forms, no links. Errors invoice_encrypted, invalid_pdf, too_many_pages.
 */
export async function openPdf(source: PdfSource, isStrict: boolean): Promise<PDFDocumentProxy> {
  // pdf.js transfers the bytes to its worker and refuses a Buffer, so it gets a copy as a Uint8Array.
  const data = typeof source === 'string' ? new Uint8Array(readFileSync(source)) : new Uint8Array(source);
  const document = await getDocument({
    data,
    isEvalSupported: false,
    enableXfa: false,
    stopAtErrors: isStrict,
    useSystemFonts: false,
    useWorkerFetch: false,
    verbosity: 0,
    standardFontDataUrl: join(PACKAGE, 'standard_fonts/'),
    cMapUrl: join(PACKAGE, 'cmaps/'),
    cMapPacked: true,
    wasmUrl: join(PACKAGE, 'wasm/'),
    iccUrl: join(PACKAGE, 'iccs/'),
  }).promise;
  if (document.numPages < 1) throw invalidPdf();
  if (document.numPages > PAGES_MAX)
    throw new DomainError(
      'too_many_pages',
      `the PDF has ${document.numPages} pages, and an invoice may have ${PAGES_MAX}: upload the invoice without its attachments`,
    );
  return document;
}

/** Converts an error of pdf.js to a failure with a code; undefined if memory ran out. */
export function asPdfFailure(error: unknown): DomainError | undefined {
  if (error instanceof DomainError) return error;
  if (isOutOfMemory(error)) return undefined;
  const { name } = error as { name?: unknown };
  if (name === 'PasswordException')
    return new DomainError(
      'invoice_encrypted',
      'the PDF asks for a password: upload a copy that is not locked',
    );
  return invalidPdf();
}

function invalidPdf(): DomainError {
  return new DomainError(
    'invalid_pdf',
    'the file is not a PDF that can be read: it is damaged, or not whole; download it again and upload it',
  );
}

/** pdf.js keeps the class of a foreign error only as a prefix of `details`. */
export function isOutOfMemory(error: unknown): boolean {
  const { name, details } = error as { name?: unknown; details?: unknown };
  return name === 'RangeError' || (typeof details === 'string' && details.startsWith('RangeError:'));
}

/** The words of the page's text layer; undefined if it has no usable one. */
export async function readTextLayer(page: PDFPageProxy): Promise<PageWords | undefined> {
  const { items } = await page.getTextContent();
  const texts = items.filter((item): item is TextItem & typeof item => 'str' in item);
  const turn = turnOfText(texts, uprightPage(page, 0).viewport);
  const { viewport } = uprightPage(page, turn);
  const words = wordsOf(texts, viewport);
  if (!isUsableText(words)) {
    const hasText = words.length > 0 && !isGarbled(words.map(({ text }) => text).join(''));
    if (!hasText || (await hasPictures(page))) return undefined;
  }
  return {
    page: page.pageNumber,
    width: viewport.width,
    height: viewport.height,
    ...(turn === 0 ? {} : { turn }),
    engine: 'text',
    words,
  };
}

/** A page without words. */
export function blankPage(page: PDFPageProxy): PageWords {
  const { width, height } = page.getViewport({ scale: 1 });
  return { page: page.pageNumber, width, height, engine: 'text', words: [] };
}

/** Whether images or outlines of a page may contain text. */
export async function hasPictures(page: PDFPageProxy): Promise<boolean> {
  const { fnArray } = await page.getOperatorList();
  const images = new Set([
    OPS.paintImageXObject,
    OPS.paintInlineImageXObject,
    OPS.paintInlineImageXObjectGroup,
    OPS.paintImageXObjectRepeat,
    OPS.paintImageMaskXObject,
    OPS.paintImageMaskXObjectGroup,
    OPS.paintImageMaskXObjectRepeat,
  ]);
  if (fnArray.some((operator) => images.has(operator))) return true;
  return fnArray.filter((operator) => operator === OPS.constructPath).length >= OUTLINE_PATHS_MIN;
}

function uprightPage(page: PDFPageProxy, turn: PageTurn | 0) {
  const viewport = page.getViewport({ scale: 1, rotation: (page.rotate + turn) % 360 });
  return {
    viewport: {
      transform: viewport.transform as number[],
      scale: page.userUnit,
      width: viewport.width,
      height: viewport.height,
    },
  };
}

/**
 * Draws a page, turned clockwise beside its own rotation. A page too large for `dpi` is drawn at a lower one. Returns
 * the pixels of one point too.
 */
export async function drawPage(
  page: PDFPageProxy,
  { dpi, turn = 0 }: { dpi: number; turn?: PageTurn | 0 | undefined },
): Promise<{ canvas: Canvas; scale: number }> {
  const rotation = (page.rotate + turn) % 360;
  const upright = page.getViewport({ scale: 1, rotation });
  const scale = Math.min(
    dpi / POINTS_PER_INCH,
    Math.sqrt(PIXELS_MAX / Math.max(1, upright.width * upright.height)),
  );
  const viewport = page.getViewport({ scale, rotation });
  const canvas = createCanvas(
    Math.max(1, Math.round(viewport.width)),
    Math.max(1, Math.round(viewport.height)),
  );
  const context = canvas.getContext('2d');
  context.fillStyle = '#ffffff';
  context.fillRect(0, 0, canvas.width, canvas.height);
  // pdf.js declares the browser's canvas.
  await page.render({ canvas: canvas as never, canvasContext: context as never, viewport }).promise;
  return { canvas, scale };
}

/** A page as grey values, with the pixels of one point. */
export async function drawGrey(page: PDFPageProxy): Promise<{ image: GreyImage; scale: number }> {
  const { canvas, scale } = await drawPage(page, { dpi: OCR_DPI });
  const { width, height } = canvas;
  const image = greyOf(canvas.getContext('2d').getImageData(0, 0, width, height).data, width, height);
  canvas.width = 0;
  page.cleanup();
  // The garbage collector does not see how large the pixels are.
  globalThis.gc?.();
  return { image, scale };
}

/** Reads the words in a page's picture. The boxes alone show which words share a line. */
export async function recognizePage(
  number: number,
  { image, scale }: { image: GreyImage; scale: number },
  ocr: LocalOcr,
): Promise<PageWords> {
  const { width, height } = image;
  const { turn, words } = isBlank(image)
    ? { turn: 0 as const, words: [] }
    : await recognizeUpright(ocr, image);
  const isTurned = turn === 90 || turn === 270;
  return {
    page: number,
    width: (isTurned ? height : width) / scale,
    height: (isTurned ? width : height) / scale,
    ...(turn === 0 ? {} : { turn }),
    engine: 'tesseract',
    words: words.map(({ text, confidence, ...box }) => ({
      text,
      x: box.x / scale,
      y: box.y / scale,
      width: box.width / scale,
      height: box.height / scale,
      confidence,
    })),
  };
}
