import type { components } from '../../api/client';

export type Invoice = components['schemas']['Invoice'];
export type ListedInvoice = components['schemas']['ListedInvoice'];
export type InvoiceLine = components['schemas']['InvoiceLine'];
type Status = ListedInvoice['status'];
type Kind = 'plain' | 'good' | 'warn' | 'bad' | 'accent';

export const STATUS: Record<Status, { label: string; kind: Kind }> = {
  received: { label: 'Waiting', kind: 'accent' },
  extracting: { label: 'Reading', kind: 'accent' },
  matching: { label: 'Comparing', kind: 'accent' },
  reconciled: { label: 'Reconciled', kind: 'good' },
  needs_review: { label: 'Needs review', kind: 'warn' },
  failed: { label: 'Failed', kind: 'bad' },
};

/** Whether a run is under way, so that the screen asks again. */
export const isWorking = ({ status }: { status: Status }) =>
  status === 'received' || status === 'extracting' || status === 'matching';

export const REASON: Record<ListedInvoice['review_reasons'][number], string> = {
  arithmetic: 'its sums disagree',
  account_unknown: 'the account is unknown',
  period_unknown: 'the period is unknown',
  no_bill: 'there is no bill of the period',
  incomplete_bill: 'the bill of the period is incomplete',
  no_rate: 'the exchange rate is missing',
  contradiction: 'it differs from the bill',
};

type Tie = NonNullable<ListedInvoice['tie_out']>;

export const TIE: Record<Tie['tie'], { label: string; kind: Kind }> = {
  exact: { label: 'Equals the bill', kind: 'good' },
  close: { label: 'Close to the bill', kind: 'good' },
  contradicts: { label: 'Differs from the bill', kind: 'bad' },
  not_comparable: { label: 'Not comparable', kind: 'plain' },
};

export const TIE_REASON: Record<NonNullable<Tie['reason']>, string> = {
  no_bill: 'there is no bill of the period',
  incomplete_bill: 'the bill of the period is incomplete',
  no_usage: 'no line charges for usage',
  no_rate: 'the exchange rate is missing',
  shared_period: 'another invoice covers days of the same period',
  receipt: 'the document is a receipt',
  duplicate: 'the same invoice exists as another file',
  replaced: 'another invoice replaces this one',
  account_unknown: 'the account is unknown',
  period_unknown: 'the period is unknown',
};

export const MATCH: Record<NonNullable<InvoiceLine['match_status']>, { label: string; kind: Kind }> = {
  matched: { label: 'Matched', kind: 'good' },
  partial: { label: 'Partly matched', kind: 'warn' },
  unmatched: { label: 'Unmatched', kind: 'bad' },
  not_billed_by_api: { label: 'Not in the billing API', kind: 'plain' },
};

/**
 * Whether another invoice has charged the days before: the bill has the lines, but none of it is left for this invoice
 * (the finding period_double_count, once a person has confirmed it).
 */
export const isBilledTwice = ({ tie_out: tie, lines }: Pick<Invoice, 'tie_out' | 'lines'>): boolean =>
  tie?.tie === 'contradicts' &&
  tie.billed === 0 &&
  lines.some(({ matched_amount: matched }) => matched !== null && matched !== 0);

export const ENGINE: Record<NonNullable<ListedInvoice['engine']>, string> = {
  text: 'text of the PDF',
  tesseract: 'OCR (Tesseract)',
  document_ai: 'OCR (Document AI)',
};

/** Readings below this share are marked beside the value. */
export const CONFIDENCE_LOW = 0.9;
