import { absPico, parseScaled } from '../../money.js';
import type { Scaled } from '../invoiceReading.js';
import type { Token } from './deskew.js';
import { textOf, tokensAt } from './textRows.js';

/** Decimals of `Scaled`. */
export const SCALE = 12;
export const ONE: Scaled = 10n ** BigInt(SCALE);

/** The mark before a document's decimals. */
export type DecimalMark = '.' | ',';

/** A printed number. */
export interface PrintedNumber {
  value: Scaled;
  /** Digits after the decimal mark. */
  decimals: number;
  /** ISO 4217, if a code or symbol is printed beside the number. */
  currency: string | null;
  isPercent: boolean;
  /** One mark before three digits: either a thousands separator or a decimal mark. */
  isAmbiguous: boolean;
}

/** A number with its place in a row. */
export interface NumberSpan extends PrintedNumber {
  tokens: readonly Token[];
  text: string;
  left: number;
  right: number;
  /** Characters in the text of the tokens that were searched. */
  start: number;
  end: number;
  /** Letters in place of digits were converted. */
  isMended: boolean;
}

/** Longer symbols precede their parts; `$` alone is the US dollar. */
const SYMBOLS: Readonly<Record<string, string>> = {
  US$: 'USD',
  A$: 'AUD',
  AU$: 'AUD',
  C$: 'CAD',
  CA$: 'CAD',
  NZ$: 'NZD',
  HK$: 'HKD',
  S$: 'SGD',
  R$: 'BRL',
  MX$: 'MXN',
  $: 'USD',
  '€': 'EUR',
  '£': 'GBP',
  '¥': 'JPY',
  '₹': 'INR',
  '₩': 'KRW',
  zł: 'PLN',
  Kč: 'CZK',
  kr: 'SEK',
};
const CODES = [
  'USD',
  'EUR',
  'GBP',
  'CHF',
  'CAD',
  'AUD',
  'NZD',
  'JPY',
  'SEK',
  'NOK',
  'DKK',
  'INR',
  'BRL',
  'SGD',
  'HKD',
  'PLN',
  'CZK',
  'ILS',
  'KRW',
  'MXN',
  'ZAR',
  'AED',
  'TRY',
];
/** Currencies without cents. */
export const WHOLE_CURRENCIES: ReadonlySet<string> = new Set(['JPY', 'KRW']);

const SIGN = '[-\u2212\u2013\u2014\u2010\u2011\u00ad]';
const SYMBOL = Object.keys(SYMBOLS)
  .map((symbol) => symbol.replace('$', '\\$'))
  .join('|');
const CODE = `(?:${CODES.join('|')})(?![A-Za-z])`;
const CORE =
  "\\d{1,3}(?:[ '\u2019]\\d{3})+(?:[.,]\\d+)?|\\d{1,3}(?:,\\d{2,3})*,\\d{3}\\.\\d+|\\d{1,3}(?:\\.\\d{3})+,\\d+|\\d{1,3}(?:[,.]\\d{3})+[,.]\\d{1,2}(?!\\d)|\\d{1,3}(?:[,.]\\d{3}){2,}|\\d+[.,]\\d+|\\d+|[.,]\\d+";
const NUMBER = new RegExp(
  `(?<![\\p{L}\\d.,:/#_@\\[${'\\\\'}-])(?<open>\\(\\s?)?(?<sign>${SIGN}\\s?(?!\\s))?(?<before>(?:${CODE}\\s?)?(?:${SYMBOL})|${CODE})?\\s{0,2}(?<inner>${SIGN}\\s?)?(?<core>${CORE})(?<trail>\\s?${SIGN}(?![\\d\\p{L}\\s]))?(?<percent>\\s?%)?(?<after>\\s?(?:${CODE}|${SYMBOL}))?(?<close>\\s?\\))?(?<cr>\\s?CR\\b)?(?![\\p{L}\\d_]|[.,:;)]{1,2}\\d)`,
  'gu',
);

/** Every number in the words, from left to right. `mark` resolves ambiguous numbers. */
export function numbersIn(tokens: readonly Token[], mark: DecimalMark | undefined): NumberSpan[] {
  const text = textOf(tokens);
  return [...text.matchAll(NUMBER)].flatMap((match) => {
    const number = numberFrom(match.groups ?? {}, mark);
    if (!number) return [];
    const start = match.index + (match[0].length - match[0].trimStart().length);
    const end = match.index + match[0].trimEnd().length;
    const within = tokensAt(tokens, start, end);
    return [{ ...number, ...placeOf(within), text: text.slice(start, end), start, end, isMended: false }];
  });
}

function placeOf(tokens: readonly Token[]): Pick<NumberSpan, 'tokens' | 'left' | 'right'> {
  return { tokens, left: tokens[0]?.left ?? 0, right: tokens.at(-1)?.right ?? 0 };
}

/** The number if the whole text is one; otherwise undefined. */
export function parseNumber(text: string, mark?: DecimalMark): PrintedNumber | undefined {
  const matches = [...text.trim().matchAll(NUMBER)];
  const match = matches[0];
  return matches.length === 1 && match?.[0].trim() === text.trim()
    ? numberFrom(match.groups ?? {}, mark)
    : undefined;
}

function numberFrom(
  parts: Record<string, string | undefined>,
  mark: DecimalMark | undefined,
): PrintedNumber | undefined {
  const currency = currencyOf(parts.before) ?? currencyOf(parts.after);
  const isWhole = currency !== null && WHOLE_CURRENCIES.has(currency);
  const plain = plainOf(parts.core ?? '', isWhole ? ',' : undefined, mark);
  const magnitude = parseScaled(plain.text, SCALE);
  if (magnitude === undefined) return undefined;
  const isNegative =
    [parts.sign, parts.inner, parts.trail, parts.cr].some((part) => part !== undefined) ||
    (parts.open !== undefined && parts.close !== undefined && parts.percent === undefined);
  return {
    value: isNegative ? -magnitude : magnitude,
    decimals: plain.text.split('.')[1]?.length ?? 0,
    currency,
    isPercent: parts.percent !== undefined,
    isAmbiguous: plain.isAmbiguous,
  };
}

function currencyOf(text: string | undefined): string | null {
  if (text === undefined) return null;
  const code = CODES.find((one) => text.includes(one));
  return code ?? SYMBOLS[text.trim()] ?? null;
}

/** The number with a decimal point and without separators. `grouping`: a mark that only separates thousands. */
function plainOf(
  core: string,
  grouping: string | undefined,
  mark: DecimalMark | undefined,
): { text: string; isAmbiguous: boolean } {
  const grouped = /[ '\u2019]/.test(core);
  const text = core.replace(/[ '\u2019]/g, '');
  const marks = text.match(/[.,]/g) ?? [];
  const last = marks.at(-1);
  if (last === undefined) return { text, isAmbiguous: false };
  const whole = () => ({ text: text.replace(/[.,]/g, ''), isAmbiguous: false });
  const broken = (isAmbiguous = false) => {
    const at = text.lastIndexOf(last);
    return { text: `${text.slice(0, at).replace(/[.,]/g, '')}.${text.slice(at + 1)}`, isAmbiguous };
  };
  if (new Set(marks).size === 2 || grouped) return broken();
  // Recognition reads commas as points; fewer than three digits behind the last mark are decimals.
  if (marks.length > 1) return /[.,]\d{1,2}$/.test(text) ? broken() : whole();
  const [before = '', after = ''] = text.split(last);
  if (last === grouping && after.length === 3) return whole();
  if (after.length !== 3 || before.length > 3 || before === '' || before.startsWith('0')) return broken();
  if (mark !== undefined) return last === mark ? broken() : whole();
  return last === ',' ? { ...whole(), isAmbiguous: true } : broken(true);
}

/** The decimal mark of most unambiguous numbers; undefined without any. */
export function decimalMarkOf(texts: readonly string[]): DecimalMark | undefined {
  let points = 0;
  for (const text of texts)
    for (const match of text.matchAll(NUMBER)) {
      const core = match.groups?.core ?? '';
      const [grouping] = /^\d{1,3}([.,])\d{3}\1\d{3}(?!\d)/.exec(core)?.slice(1) ?? [];
      if (grouping !== undefined) points += grouping === '.' ? -1 : 1;
      const [, group, decimal] =
        /(?:^|\d)([.,' \u2019]?)(?:\d{3})?([.,])(?:\d{1,2}|\d{4,})$/.exec(core) ?? [];
      // Amounts and percentages are meant; a version such as 4.1 or a date is no evidence.
      const isMarked = match.groups?.before ?? match.groups?.after ?? match.groups?.percent;
      if (decimal !== undefined && (isMarked !== undefined || /[.,]\d\d$/.test(core) || group !== ''))
        points += decimal === '.' ? 1 : -1;
    }
  return points > 0 ? '.' : points < 0 ? ',' : undefined;
}

/** Least share of amounts with decimals in a document whose amounts have cents: recognition loses decimal marks. */
const CENTS_SHARE_MIN = 0.5;

/** Whether most amounts with a currency have decimals. */
export function haveCents(texts: readonly string[]): boolean {
  const amounts = texts.flatMap((text) =>
    [...text.matchAll(NUMBER)].filter(({ groups }) => groups?.before ?? groups?.after),
  );
  const marked = amounts.filter(({ groups }) => /[.,]\d{2}$|[.,]\d{4,}$/.test(groups?.core ?? ''));
  return amounts.length > 0 && marked.length >= CENTS_SHARE_MIN * amounts.length;
}

/** Digits after the decimal mark of a printed number; `fallback` for other texts. */
export function printedDecimals(text: string, fallback: number): number {
  const mark = decimalMarkOf([text]);
  const number = parseNumber(text.replaceAll('\0', '-'), mark);
  return number?.decimals ?? fallback;
}

/** Currencies beside the numbers of a text. */
export function currenciesIn(text: string): string[] {
  return [...text.matchAll(NUMBER)].flatMap((match) => {
    const found = currencyOf(match.groups?.before) ?? currencyOf(match.groups?.after);
    return found === null ? [] : [found];
  });
}

/** Currency codes in a text, beside a number or alone. */
export function currencyCodesIn(text: string): string[] {
  return CODES.filter((code) => new RegExp(`(?<![A-Za-z])${code}(?![A-Za-z])`).test(text));
}

/** Matches the currencies of a shared sign (`$`, `kr`) without a code beside it. */
export function sharedSignOf(text: string): RegExp | undefined {
  if (currencyCodesIn(text).length > 0) return undefined;
  if (/(?<![A-Z])\$/.test(text)) return /^(?:US|CA|AU|NZ|HK|SG)D$/;
  return /(?<!\p{L})kr(?!\p{L})/u.test(text) ? /^(?:SEK|NOK|DKK)$/ : undefined;
}

/** Half of the last printed digit. */
export function halfUnit(decimals: number): Scaled {
  return decimals >= SCALE ? 1n : 10n ** BigInt(SCALE - decimals) / 2n;
}

export function isWithin(difference: Scaled, tolerance: Scaled): boolean {
  return absPico(difference) <= tolerance;
}
