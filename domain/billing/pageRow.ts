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

/** The kind of a report's pages, by the last part of its path (`costs`, `completions`, `cost_report`, …). */
export function pageKindOf(
  provider: 'openai' | 'anthropic',
  feed: PageKind['feed'],
  report: string,
): PageKind {
  const format = provider === 'openai' ? 'openai_pages' : 'anthropic_pages';
  return { format, feed, report: feed === 'cost' ? '' : report };
}

/** USD per unit of another currency, as given with the file. */
export type FxRate = { scaled: bigint } | undefined;
const FX_SCALE = 12;

export function parseFxRate(text: string): FxRate {
  const scaled = parseScaled(text, FX_SCALE);
  return scaled !== undefined && scaled > 0n ? { scaled } : undefined;
}

/** 1e-12 units of `currency` → pico-dollars; null: there is no rate, and the amount enters no sum of dollars. */
export function toPicoOrNull(original: bigint, currency: string, fxRate: FxRate): Pico | null {
  if (currency === 'USD') return original;
  if (!fxRate) return null;
  const product = original * fxRate.scaled;
  const scale = 10n ** BigInt(FX_SCALE);
  const half = product < 0n ? -scale / 2n : scale / 2n;
  return (product + half) / scale;
}

/** A three-letter upper-case code; USD if a result has none. Error invalid_billing_file. */
export function currencyCodeOf(value: PageValue | undefined, field: string): string {
  if (value === undefined || value === null || value === '') return 'USD';
  if (typeof value === 'string' && /^[a-z]{3}$/i.test(value)) return value.toUpperCase();
  throw new DomainError('invalid_billing_file', `${field} must be three letters such as EUR`);
}

/** A count of a usage result, a number from 0. Absent counts are zero, since the APIs omit empty classes. */
export function countOf(value: PageValue | undefined, field: string): bigint {
  if (value === undefined || value === null) return 0n;
  const scaled = value instanceof ExactNumber ? findScaled(value, QUANTITY_SCALE) : undefined;
  if (scaled === undefined || scaled < 0n) {
    throw new DomainError('invalid_billing_file', `${field} must be a number from 0`);
  }
  return scaled;
}

/** The fields that every row of a bucket shares; all others have neutral values. */
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

/** Maximum stored characters of a label, model or id. */
const TEXT_CHARS_MAX = 512;

/**
 * A text as stored: printable and at most 512 characters. It is copied, since a slice would keep the file's chunk
 * in memory.
 */
export function keepText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed
  const plain = text.replace(/[\u0000-\u001f\u007f]/g, ' ');
  return ` ${plain.slice(0, TEXT_CHARS_MAX).toWellFormed()}`.slice(1);
}

export function keepTextOrNull(text: string | null): string | null {
  return text === null ? null : keepText(text);
}

/** A JSON number as text, since a double would lose digits of quantities above 2^53. */
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

/**
 * A number or numeric text (one API has both), scaled by 10^scale, rounded half to even. Undefined: absent or no
 * number.
 */
export function findScaled(value: PageValue | undefined, scale: number): bigint | undefined {
  if (value instanceof ExactNumber) return parseScaled(value.text, scale);
  return typeof value === 'string' && value.trim() !== '' ? parseScaled(value, scale) : undefined;
}

/** A non-empty string field; null: absent, null or empty. */
export function findText(value: PageValue | undefined): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
