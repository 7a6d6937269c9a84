import { DomainError } from '../errors.js';
import { type Pico, parseScaled } from '../money.js';
import { dayOf } from '../period.js';
import { type BilledRow, QUANTITY_SCALE } from './billedRow.js';

/** A bucket of a page: half-open, microseconds. */
export interface PageBucket {
  startMicros: bigint;
  endMicros: bigint;
}

export interface PageKind {
  format: 'openai_pages' | 'anthropic_pages';
  feed: 'cost' | 'usage';
  /** '' for costs, else the usage report's name. */
  report: string;
}

/** What the pages of a report are, by the last part of the report's path (`costs`, `completions`, `cost_report`, …). */
export function pageKindOf(
  provider: 'openai' | 'anthropic',
  feed: PageKind['feed'],
  report: string,
): PageKind {
  const format = provider === 'openai' ? 'openai_pages' : 'anthropic_pages';
  return { format, feed, report: feed === 'cost' ? '' : report };
}

/** Money in another currency is converted by the rate given with the file: USD for one unit of the currency. */
export type FxRate = { scaled: bigint } | undefined;
const FX_SCALE = 12;

export function parseFxRate(text: string): FxRate {
  const scaled = parseScaled(text, FX_SCALE);
  return scaled !== undefined && scaled > 0n ? { scaled } : undefined;
}

/** 1e-12 units of `currency` → pico-dollars; null without a rate: then it counts in no sum of dollars. */
export function toPicoOrNull(original: bigint, currency: string, fxRate: FxRate): Pico | null {
  if (currency === 'USD') return original;
  if (!fxRate) return null;
  const product = original * fxRate.scaled;
  const scale = 10n ** BigInt(FX_SCALE);
  const half = product < 0n ? -scale / 2n : scale / 2n;
  return (product + half) / scale;
}

/** A three-letter code in capitals; US dollars where a result names none. Error invalid_billing_file. */
export function currencyCodeOf(value: PageValue | undefined, field: string): string {
  if (value === undefined || value === null || value === '') return 'USD';
  if (typeof value === 'string' && /^[a-z]{3}$/i.test(value)) return value.toUpperCase();
  throw new DomainError('invalid_billing_file', `${field} must be three letters such as EUR`);
}

/** A count that a usage result must have as a number from 0; absent counts as zero, as the APIs leave classes out. */
export function countOf(value: PageValue | undefined, field: string): bigint {
  if (value === undefined || value === null) return 0n;
  const scaled = value instanceof ExactNumber ? findScaled(value, QUANTITY_SCALE) : undefined;
  if (scaled === undefined || scaled < 0n) {
    throw new DomainError('invalid_billing_file', `${field} must be a number from 0`);
  }
  return scaled;
}

/** The fields that every row of a bucket shares, with everything else at its neutral value. */
export function emptyRow(kind: Pick<PageKind, 'feed' | 'report'>, bucket: PageBucket): BilledRow {
  return {
    feed: kind.feed,
    report: kind.report,
    account: null,
    day: dayOf(bucket.startMicros),
    periodStartMicros: bucket.startMicros,
    periodEndMicros: bucket.endMicros,
    chargeCategory: 'usage',
    lineItem: '',
    observable: true,
    model: null,
    tokenClass: 'other',
    serviceTier: 'standard',
    isBatch: null,
    longContext: null,
    region: null,
    project: null,
    apiKey: null,
    quantity: null,
    quantityUnit: null,
    amountPico: null,
    listPico: null,
    contractedPico: null,
    netPico: null,
    currency: null,
    originalAmount: null,
    isFinal: null,
  };
}

/** Longest label, model or id that is kept of a row. */
const TEXT_CHARS_MAX = 512;

/** A text as stored: printable, at most 512 characters, and copied, or it would keep the file's chunk in memory. */
export function keepText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed
  const plain = text.replace(/[\u0000-\u001f\u007f]/g, ' ');
  return ` ${plain.slice(0, TEXT_CHARS_MAX).toWellFormed()}`.slice(1);
}

export function keepTextOrNull(text: string | null): string | null {
  return text === null ? null : keepText(text);
}

/** A JSON number as text: a double would lose digits of quantities above 2^53. */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type PageValue = null | boolean | string | ExactNumber | PageValue[] | { [key: string]: PageValue };

export type PageObject = { [key: string]: PageValue };

export function isPageObject(value: PageValue | undefined): value is PageObject {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber)
  );
}

/** A number or numeric text (one API has both), scaled by 10^scale, half to even. Undefined when absent or not a number. */
export function findScaled(value: PageValue | undefined, scale: number): bigint | undefined {
  if (value instanceof ExactNumber) return parseScaled(value.text, scale);
  return typeof value === 'string' && value.trim() !== '' ? parseScaled(value, scale) : undefined;
}

/** A non-empty string field; null when absent, null or empty. */
export function findText(value: PageValue | undefined): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
