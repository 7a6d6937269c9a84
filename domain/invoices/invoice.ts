import { TIE_REASONS } from './tieOut.js';

/** `reconciled`: nothing is left to look at. `needs_review`: a person has to correct or confirm something. */
export const INVOICE_STATUSES = [
  'received',
  'extracting',
  'matching',
  'reconciled',
  'needs_review',
  'failed',
] as const;
export type InvoiceStatus = (typeof INVOICE_STATUSES)[number];

/** In one of these a run is at work or waits. */
export const INVOICE_OPEN_STATUSES: ReadonlySet<InvoiceStatus> = new Set([
  'received',
  'extracting',
  'matching',
]);

/** Why an invoice could not be read. */
export const INVOICE_FAILURES = [
  'invalid_pdf',
  'invoice_encrypted',
  'too_many_pages',
  'resource_limit',
  'no_line_items',
  'ocr_unavailable',
  'internal_error',
] as const;
export type InvoiceFailure = (typeof INVOICE_FAILURES)[number];

/** A failure of a run as the invoice states it. */
export function invoiceFailureOf(code: string | null): InvoiceFailure {
  return INVOICE_FAILURES.find((known) => known === code) ?? 'internal_error';
}

/** What a run of an invoice does: an upload and a retry read the file, a rematch compares what was read before. */
export const INVOICE_RUN_CAUSES = ['upload', 'retry', 'rematch'] as const;
export type InvoiceRunCause = (typeof INVOICE_RUN_CAUSES)[number];

/** Why an invoice is compared with nothing: what the bill lacks, or what the document is. */
export const INVOICE_TIE_REASONS = [
  ...TIE_REASONS,
  'receipt',
  'duplicate',
  'replaced',
  'account_unknown',
  'period_unknown',
] as const;
export type InvoiceTieReason = (typeof INVOICE_TIE_REASONS)[number];

/** What a person has to look at. */
export const REVIEW_REASONS = [
  'arithmetic',
  'account_unknown',
  'period_unknown',
  'no_bill',
  'incomplete_bill',
  'no_rate',
  'contradiction',
] as const;
export type ReviewReason = (typeof REVIEW_REASONS)[number];

const NUMBER_CHARS_MAX = 200;

/** An invoice's number as numbers are compared: `INV-0012 /a` and `inv0012a` are one. Null for one without a letter or digit. */
export function normaliseNumber(number: string): string | null {
  const plain = number
    .normalize('NFKC')
    .toUpperCase()
    .replace(/[^\p{L}\p{N}]/gu, '')
    .slice(0, NUMBER_CHARS_MAX);
  return plain === '' ? null : plain;
}
