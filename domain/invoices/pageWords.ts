/** Engines that read a page: the PDF's text layer, local character recognition, Google Document AI. */
export const INVOICE_ENGINES = ['text', 'tesseract', 'document_ai'] as const;
export type InvoiceEngine = (typeof INVOICE_ENGINES)[number];

/** A rectangle on a page: points (1/72 inch) from its upper left corner. */
export interface Box {
  /** From 1. */
  page: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Word {
  text: string;
  /** Points from the page's upper left corner, in the upright page. */
  x: number;
  y: number;
  width: number;
  height: number;
  /** 0 to 1; 1 for the PDF's own text. */
  confidence: number;
}

/** Degrees of clockwise rotation, in addition to the page's own, that make the text upright. */
export type PageTurn = 90 | 180 | 270;

/** The words of one page in no particular order. */
export interface PageWords {
  /** From 1. */
  page: number;
  /** Absent if the page is upright. Words and size refer to the turned page. */
  turn?: PageTurn;
  /** Points. */
  width: number;
  height: number;
  engine: InvoiceEngine;
  words: readonly Word[];
}

/** A field of Document AI with its nested fields: `line_item` has `line_item/amount` and others. */
export interface ExtractedEntity {
  type: string;
  /** As printed. */
  text: string;
  /** A decimal, a date (`2026-08-01`) or a currency code, if the engine returns one. */
  normalized: string | null;
  /** 0 to 1; a weak sign of correctness: a study found right totals at 0.27 and wrong lines at 1.0. */
  confidence: number;
  box: Box | null;
  properties: readonly ExtractedEntity[];
}

/** The engines' output for one file, before it is interpreted. */
export interface InvoiceExtraction {
  pages: readonly PageWords[];
  /** Empty unless Document AI read the file. */
  entities: readonly ExtractedEntity[];
}
