import { PROVIDER_FACTS } from '../../providers.js';
import type { ClaimEvidence, EvidenceDispute } from './claimEvidence.js';

/** Formats numbers, days and words of a claim's document. */

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

/** Decimals with commas and as many fraction digits as the longest has, at least two. */
export function aligned(texts: readonly (string | null)[]): string[] {
  const digits = Math.max(2, ...texts.map((text) => text?.split('.')[1]?.length ?? 0));
  return texts.map((text) => (text === null ? '–' : shownDecimal(text, digits)));
}

function shownDecimal(text: string, digits: number): string {
  const isNegative = text.startsWith('-');
  const [whole = '0', fraction = ''] = (isNegative ? text.slice(1) : text).split('.');
  return `${isNegative ? '−' : ''}${grouped(whole)}.${fraction.padEnd(digits, '0')}`;
}

/** An exact amount with all its digits, at least two decimals: `$116.1629567`. */
export const exactDollars = (text: string): string => `$${shownDecimal(text, 2)}`.replace('$−', '−$');

export const grouped = (digits: string): string => digits.replace(/\B(?=(\d{3})+$)/g, ',');

/** A quantity with commas: `2,475,243`. */
export function quantityText(text: string): string {
  const [whole = '0', fraction] = text.split('.');
  return `${grouped(whole)}${fraction === undefined ? '' : `.${fraction}`}`;
}

/** Dollars per million units with six digits, since a charged rate is a quotient. */
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

/** Replaces the days in a sentence by the document's notation. */
export const withDays = (text: string): string => text.replace(/\b\d{4}-\d{2}-\d{2}\b/g, dayText);

/** The names in a claim's document, and the sentence that describes a finding's mistake to the provider. */

export const providerName = ({ claim }: ClaimEvidence): string =>
  PROVIDER_FACTS.find((facts) => facts.slug === claim.provider)?.displayName ?? claim.provider;

/** The time zone of the bill's days. */
export const billZone = ({ claim }: ClaimEvidence): string =>
  claim.provider === 'google' ? 'Pacific Time' : 'UTC';

/** Amounts appear only in the document's tables, where they are rounded with the claim. */
const IMPACT =
  / The bill is \$[\d,.]+ (?:too (?:much|little)|(?:above|below) what these events cost) on [^.]*\./;

/** The mistake as a sentence, with the provider's name. */
export function faultText({ reason }: EvidenceDispute, provider: string): string {
  const fault = reason
    .replace(IMPACT, '')
    .replaceAll('the provider’s', `${provider}’s`)
    .replaceAll('the provider', provider);
  return withDays(fault);
}

/** At most `max` items, one of each group in turn at even distances, in the given order. */
export function takeInTurns<Item>(groups: readonly (readonly Item[])[], max: number): Item[] {
  const counts = groups.map(() => 0);
  let left = max;
  for (let turn = 1; left > 0; turn += 1) {
    const before = left;
    for (const [at, group] of groups.entries())
      if (left > 0 && group.length >= turn) {
        counts[at] = turn;
        left -= 1;
      }
    if (left === before) break;
  }
  return groups.flatMap((group, at) => evenly(group, counts[at] ?? 0));
}

function evenly<Item>(items: readonly Item[], count: number): Item[] {
  return Array.from({ length: count }, (_, at) => items[Math.floor((at * items.length) / count)] as Item);
}

export const unitOf = ({ token_class }: { token_class: string }): string =>
  token_class === 'requests' ? 'requests' : ['other', 'all'].includes(token_class) ? 'units' : 'tokens';
