/** How the document of a claim writes numbers, days and words. */

export const shortened = (text: string, chars: number): string =>
  text.length > chars ? `${text.slice(0, chars - 1).trimEnd()}…` : text;

/** `cache_read_rate_mismatch` → `Cache read rate mismatch`. */
export function words(key: string): string {
  const text = key.replaceAll('_', ' ');
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

/** "one record", "3 records". */
export const counted = (count: number | bigint, noun: string): string =>
  `${grouped(String(count))} ${noun}${Number(count) === 1 ? '' : 's'}`;

/** "a", "a and b", "a, b and c". */
export const listed = (texts: readonly string[]): string =>
  texts.length < 2 ? (texts[0] ?? '') : `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}`;

/** Decimals with as many digits behind the point as the longest of them has, two at least, and commas before it. */
export function aligned(texts: readonly (string | null)[]): string[] {
  const digits = Math.max(2, ...texts.map((text) => text?.split('.')[1]?.length ?? 0));
  return texts.map((text) => (text === null ? '–' : shownDecimal(text, digits)));
}

function shownDecimal(text: string, digits: number): string {
  const isNegative = text.startsWith('-');
  const [whole = '0', fraction = ''] = (isNegative ? text.slice(1) : text).split('.');
  return `${isNegative ? '−' : ''}${grouped(whole)}.${fraction.padEnd(digits, '0')}`;
}

/** An exact amount with all its digits, two at least: `$116.1629567`. */
export const exactDollars = (text: string): string => `$${shownDecimal(text, 2)}`.replace('$−', '−$');

export const grouped = (digits: string): string => digits.replace(/\B(?=(\d{3})+$)/g, ',');

/** A quantity with commas: `2,475,243`. */
export function quantityText(text: string): string {
  const [whole = '0', fraction] = text.split('.');
  return `${grouped(whole)}${fraction === undefined ? '' : `.${fraction}`}`;
}

/** Dollars for a million units, to six digits: a rate that was charged is a quotient. */
export const alignedRates = (rates: readonly (number | null)[]): string[] =>
  aligned(rates.map((rate) => (rate === null ? null : rate.toFixed(6).replace(/\.?0+$/, ''))));

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** `2026-10-09` → `9 Oct 2026`. */
export function dayText(day: string): string {
  const [year = '', month = '', date = ''] = day.split('-');
  return `${Number(date)} ${MONTHS[Number(month) - 1] ?? month} ${year}`;
}

export function spanText(from: string, to: string): string {
  if (from === to) return dayText(from);
  const isSameYear = from.slice(0, 4) === to.slice(0, 4);
  const first =
    from.slice(0, 7) === to.slice(0, 7)
      ? String(Number(from.slice(8)))
      : dayText(from).slice(0, isSameYear ? -5 : undefined);
  return `${first} – ${dayText(to)}`;
}

/** `2026-10-09T00:13:01Z` → `9 Oct 2026 00:13:01`. */
export const timeText = (iso: string): string => `${dayText(iso.slice(0, 10))} ${iso.slice(11, 19)}`;

/** A sentence with its days in the document's style. */
export const withDays = (text: string): string => text.replace(/\b\d{4}-\d{2}-\d{2}\b/g, dayText);
