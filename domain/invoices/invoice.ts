import { TIE_REASONS } from './tieOut.js';

/** `reconciled`: no open question. `needs_review`: a person has to correct or confirm something. */
export const INVOICE_STATUSES = [
  'received',
  'extracting',
  'matching',
  'reconciled',
  'needs_review',
  'failed',
] as const;
export type InvoiceStatus = (typeof INVOICE_STATUSES)[number];

/** In these states a run is active or waiting. */
export const INVOICE_OPEN_STATUSES: ReadonlySet<InvoiceStatus> = new Set([
  'received',
  'extracting',
  'matching',
]);

/** Reasons why reading failed. */
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

/** Converts a run's failure code to an invoice's. */
export function invoiceFailureOf(code: string | null): InvoiceFailure {
  return INVOICE_FAILURES.find((known) => known === code) ?? 'internal_error';
}

/** An upload and a retry read the file; a rematch compares the stored reading. */
export const INVOICE_RUN_CAUSES = ['upload', 'retry', 'rematch'] as const;
export type InvoiceRunCause = (typeof INVOICE_RUN_CAUSES)[number];

/** Reasons why an invoice has no comparison. */
export const INVOICE_TIE_REASONS = [
  ...TIE_REASONS,
  'receipt',
  'duplicate',
  'replaced',
  'account_unknown',
  'period_unknown',
] as const;
export type InvoiceTieReason = (typeof INVOICE_TIE_REASONS)[number];

/** Reasons for a person's review. */
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

/** Normal form for comparing numbers: `INV-0012 /a` equals `inv0012a`. Null without a letter or digit. */
export function normaliseNumber(number: string): string | null {
  const plain = number
    .normalize('NFKC')
    .toUpperCase()
    .replace(/[^\p{L}\p{N}]/gu, '')
    .slice(0, NUMBER_CHARS_MAX);
  return plain === '' ? null : plain;
}
