import { absPico } from '../../money.js';
import type { Token } from './deskew.js';
import {
  type DecimalMark,
  type NumberSpan,
  numbersIn,
  ONE,
  type PrintedNumber,
  parseNumber,
  printedDecimals,
  SCALE,
  WHOLE_CURRENCIES,
} from './printedNumber.js';

/** Digit for each letter that character recognition confuses with it. */
const LETTERS: Readonly<Record<string, string>> = {
  O: '0',
  o: '0',
  Q: '0',
  D: '0',
  l: '1',
  I: '1',
  i: '1',
  '|': '1',
  '!': '1',
  ']': '1',
  '[': '1',
  S: '5',
  s: '5',
  B: '8',
  Z: '2',
  z: '2',
  g: '9',
  q: '9',
  b: '6',
  G: '6',
  T: '7',
  A: '4',
};
/** Digits that recognition confuses. */
const DIGITS: Readonly<Record<string, string>> = {
  '0': '86',
  '1': '74',
  '2': '7',
  '3': '85',
  '4': '19',
  '5': '638',
  '6': '508',
  '7': '12',
  '8': '3056',
  '9': '48',
};
/** Digits with a higher confidence are not doubted. */
const CERTAIN = 0.9;
const CANDIDATES_MAX = 60;

const MENDABLE = /^[($€£+-]{0,3}(?:kr|CHF|[A-Z]{1,2}\$)?[\dOoQDlIi|![\]SsBZzgqbGTA.,:;'$€£)-]{3,}[)%]?$/;

/** Numbers with letters in place of digits: only whole words that end like an amount. */
export function mendedNumbersIn(tokens: readonly Token[], mark: DecimalMark | undefined): NumberSpan[] {
  const spans: NumberSpan[] = [];
  for (const [place, token] of tokens.entries()) {
    const next = tokens[place + 1];
    // A quantity of one, alone in its column.
    if (
      token.engine !== 'text' &&
      LONE_ONE.test(token.text) &&
      next &&
      next.left - token.right > token.height
    )
      spans.push({ ...loneOne(token), start: startOf(tokens, place) });
    if (token.engine === 'text' || !MENDABLE.test(token.text)) continue;
    const digits = token.text.replace(/\D/g, '').length;
    if (digits < 1 || !/[.,:]/.test(token.text) || numbersIn([token], mark).length > 0) continue;
    const mended = mendLetters(token.text);
    const [number] = numbersIn([{ ...token, text: mended }], mark);
    if (!number || number.text.length !== mended.length) continue;
    const start = startOf(tokens, place);
    spans.push({
      ...number,
      tokens: [token],
      text: token.text,
      start,
      end: start + token.text.length,
      isMended: true,
    });
  }
  return spans;
}

/**
 * A recognised amount without a decimal mark in a document whose amounts have cents: recognition lost the mark. The sums
 * have to prove it, like any other number.
 */
export function withCents(span: NumberSpan): NumberSpan {
  const isLost =
    span.tokens[0]?.engine !== 'text' &&
    span.currency !== null &&
    !WHOLE_CURRENCIES.has(span.currency) &&
    !span.isPercent &&
    /^[^\d.,]*(?:[1-9]\d{2,}|0\d\d)[^\d.,]*$/.test(span.text);
  return isLost ? { ...span, value: span.value / 100n, decimals: 2, isMended: true } : span;
}

/** Dollars of a country, such as `CA$`, recognised as `CAS$`, or as `CAS` beside a number. */
const DOUBLED_DOLLAR = /^([-(]?(?:CA?|AU?|NZ|HK|MX))S\$/;
const LETTER_DOLLAR = /^([-(]?)(CA|AU?|NZ|HK|MX)S(\)?)$/;
const LETTER_DOLLAR_BEFORE = /^([-(]?(?:CA|AU|NZ|HK|MX))S(?=[\d.,]*\d)/;
const LETTER_DOLLAR_AFTER = /(?<=\d)(CA|AU?|NZ|HK|MX)S\$?(?=\)?$)/;

export function mendSigns(tokens: readonly Token[]): Token[] {
  return tokens.map((token, at) => {
    if (token.engine === 'text') return token;
    const isBesideNumber = /^\d/.test(tokens[at + 1]?.text ?? '') || /\d$/.test(tokens[at - 1]?.text ?? '');
    const text = token.text
      .replace(DOUBLED_DOLLAR, '$1$')
      .replace(LETTER_DOLLAR_BEFORE, '$1$')
      .replace(LETTER_DOLLAR_AFTER, '$1$');
    return { ...token, text: isBesideNumber ? text.replace(LETTER_DOLLAR, '$1$2$$$3') : text };
  });
}

/** Largest gap within a number, in heights of its digits. */
const GROUP_GAP_MAX = 0.6;

/**
 * Joins recognised groups of digits of a document that separates thousands by spaces: recognition loses single spaces, and
 * `1 730 603` becomes `1730 603`.
 */
export function joinGroups(tokens: readonly Token[]): Token[] {
  const joined: Token[] = [];
  for (const token of tokens) {
    const before = joined.at(-1);
    const isGroup =
      before !== undefined &&
      token.engine !== 'text' &&
      token.left - before.right <= token.height * GROUP_GAP_MAX &&
      /^\D?\d+$/.test(before.text) &&
      /^(?:\d{3})+(?:[.,]\d+)?$/.test(token.text) &&
      `${before.text}${token.text}`.length > 6;
    if (isGroup)
      joined[joined.length - 1] = {
        ...before,
        text: `${before.text}${token.text}`,
        right: token.right,
        box: around(before, token),
        confidence: Math.min(before.confidence, token.confidence),
      };
    else joined.push(token);
  }
  return joined;
}

function around({ box }: Token, { box: other }: Token): Token['box'] {
  const x = Math.min(box.x, other.x);
  const y = Math.min(box.y, other.y);
  const width = Math.max(box.x + box.width, other.x + other.width) - x;
  return { ...box, x, y, width, height: Math.max(box.y + box.height, other.y + other.height) - y };
}

const LONE_ONE = /^[iIlL|!]{1,2}[.:]?$/;

function loneOne(token: Token): NumberSpan {
  const number = { value: ONE, decimals: 0, currency: null, isPercent: false, isAmbiguous: false };
  const place = { tokens: [token], left: token.left, right: token.right, start: 0, end: 0 };
  return { ...number, ...place, text: token.text, isMended: true };
}

/** Approximate offset of a token in its row's text, for sorting. */
function startOf(tokens: readonly Token[], place: number): number {
  return tokens.slice(0, place).reduce((sum, one) => sum + one.text.length + 1, 0);
}

function mendLetters(text: string): string {
  // The only letters are those of a currency.
  if (parseNumber(text.trim())) return text;
  // A leading S before digits is a dollar sign.
  const dollar = /^([(-]?)S(?=\d|[OolI])/.exec(text);
  const named = /^[(-]?(?:kr|CHF|[A-Z]{1,2}\$)/.exec(text)?.[0] ?? '';
  const from = dollar ? dollar[0].length : named.length;
  const rest = text
    .slice(from)
    .replace(/(?<=^[^\d]{0,4})0?\)(?=[.,]\d)/, '0')
    .replace(/[;:](?=\d\d$)/, '.')
    .replace(/[.,]{2,}/g, (marks) => marks.at(-1) as string)
    .replace(/[A-Za-z|![\]]/g, (letter) => LETTERS[letter] ?? letter);
  return `${dollar ? `${dollar[1]}$` : named}${rest}`;
}

/** Another reading of a printed number. */
export interface Alternative extends PrintedNumber {
  /** Cost of the confusion; 1 for one sign or digit. */
  cost: number;
}

/**
 * Other readings of a printed number after a lost or confused glyph, the likeliest first. Digits are doubted only below
 * `CERTAIN`; a lost sign or mark leaves no trace, so it is possible in every number.
 */
export function alternativesOf(
  text: string,
  { engine, confidence }: Pick<Token, 'engine' | 'confidence'>,
  mark: DecimalMark | undefined,
): Alternative[] {
  const found = new Map<bigint, Alternative>();
  const own = parseNumber(text, mark)?.value;
  const add = (candidate: string, cost: number): void => {
    const number = parseNumber(candidate, mark);
    if (number && number.value !== own && !found.has(number.value))
      found.set(number.value, { ...number, cost });
  };
  if (engine !== 'text') {
    const letters = mendLetters(text);
    add(letters, 1);
    // A currency's sign read as a digit in front: $ as 8 or 5, € as 6.
    if (/^[856S]\d/.test(text)) add(text.slice(1), 1);
    // A thousands separator read as a decimal mark.
    if (/\d[.,]\d{3}\D*$/.test(text)) add(text.replace(/[.,](?=\d)/g, ''), 1);
    // One of two equal digits that was lost.
    for (const [at, letter] of [...text].entries())
      if (/\d/.test(letter)) add(`${text.slice(0, at)}${letter}${text.slice(at)}`, 2);
    // A first digit that the currency's sign swallowed.
    const [, sign, rest] = /^([$€£¥])(\d{0,3}[.,]\d+)$/.exec(text) ?? [];
    if (sign !== undefined) for (const digit of '123456789') add(`${sign}${digit}${rest}`, 2);
    // A decimal mark that was lost, or read as the other one.
    if (/^\D*\d{3,}\D*$/.test(text)) add(text.replace(/(\d)(\d\d)(\D*)$/, '$1.$2$3'), 2);
    if (/\d[.,]\d\d\D*$/.test(text))
      add(
        text.replace(/[.,](?=\d\d\D*$)/, (one) => (one === '.' ? ',' : '.')),
        1,
      );
    if (confidence < CERTAIN || letters !== text)
      for (const [at, letter] of [...letters].entries())
        for (const other of DIGITS[letter] ?? '')
          add(`${letters.slice(0, at)}${other}${letters.slice(at + 1)}`, 2);
  }
  return [...found.values()].sort((a, b) => a.cost - b.cost).slice(0, CANDIDATES_MAX);
}

/**
 * Whether a value's digits differ from its print: also by a zero at its end, which changes the amount tenfold. Letters that
 * were converted to digits do not count, nor does a digit in place of a currency sign if the document's amounts have signs,
 * nor a decimal mark if none is printed.
 */
export function hasOtherDigits(text: string, value: bigint, amountsHaveSigns: boolean): boolean {
  const magnitude = absPico(value);
  const mended = mendLetters(text).trim();
  const withoutSign = amountsHaveSigns && /^[856]\d/.test(text.trim()) ? [mended.slice(1)] : [];
  return ![mended, ...withoutSign].some((print) => {
    const digits = BigInt(print.replace(/\D/g, '') || '0');
    const decimals = [0, printedDecimals(print, 0), ...(/[.,]/.test(print) ? [] : [2])];
    return decimals.some((count) => digits * 10n ** BigInt(Math.max(0, SCALE - count)) === magnitude);
  });
}
