import type { ReadField } from '../invoiceReading.js';
import type { Box, PageWords } from '../pageWords.js';
import { straighten, type Token } from './deskew.js';

/** Adjacent words, such as a label or a number with its currency. */
export interface Cell {
  tokens: readonly Token[];
  text: string;
  left: number;
  right: number;
}

/** One line of print across the page. */
export interface Row {
  page: number;
  middle: number;
  height: number;
  tokens: readonly Token[];
  cells: readonly Cell[];
  text: string;
}

/** Words belong to one row when their middles are closer than this share of the smaller word's height. */
const ROW_SHARE = 0.62;
/** Words that differ more in height share no row: a stamp across the page, a vertical rule. */
const ROW_HEIGHTS_RATIO = 3;
/** A wider gap, in heights of the row, ends a cell. */
export const CELL_GAP = 0.85;
/** A gap of at least this many heights separates numbers; `textOf` prints it as two spaces. */
const WORD_GAP = 0.6;

/** All rows of a document from top to bottom, without running titles and page numbers. */
export function rowsOf(pages: readonly PageWords[]): Row[] {
  const byPage = restoreDashes(pages)
    .toSorted((a, b) => a.page - b.page)
    .map((page) => ({ page, rows: pageRows(page) }));
  const repeated = repeatedMargins(byPage);
  const first = byPage[0]?.page.page;
  return byPage.flatMap(({ page, rows }) =>
    rows.filter((row) => {
      // The first page's heading names the document.
      const isHeading = row.page === first && row.middle < page.height / 2;
      if (PAGE_NUMBER.test(row.text) || (isInMargin(row, page) && ENDS_IN_PAGE_NUMBER.test(row.text)))
        return false;
      return isHeading || !repeated.has(marginKey(row, page));
    }),
  );
}

const NUL_IN_WORD = /[\p{L}\d]\0[\p{L}\d]/u;
const NUL_BEFORE_NUMBER = /^\P{L}?\0\P{L}?\d/u;

/**
 * A font without a map has NUL for a glyph. Inside words only a dash is likely, so NUL then is a dash everywhere, unless
 * most numbers have one in front: it may also be a currency sign.
 */
function restoreDashes(pages: readonly PageWords[]): readonly PageWords[] {
  const texts = pages.flatMap((page) => page.words.map((word) => word.text));
  const amounts = texts.filter((text) => /\d[.,]\d\d$/.test(text));
  const marked = amounts.filter((text) => NUL_BEFORE_NUMBER.test(text));
  if (!texts.some((text) => NUL_IN_WORD.test(text)) || 2 * marked.length > amounts.length) return pages;
  return pages.map((page) => ({
    ...page,
    words: page.words.map((word) => ({ ...word, text: word.text.replaceAll('\0', '-') })),
  }));
}

const PAGE_NUMBER =
  /^(?:[\w #.-]{0,60}?[\s·|–-]+)?(?:page|seite|página|pagina|pag\.?)\s*\d{1,3}(?:\s*(?:of|\/|von|sur|de|di|van)\s*\d{1,3})?$|^\d{1,3}\s*(?:\/|of|von|sur)\s*\d{1,3}$/i;

/** A running title before the page's number, in which recognition may take `of` for `0f`. */
const ENDS_IN_PAGE_NUMBER = /(?:page|seite|página|pagina)\s*\d{1,3}\s*(?:[o0]f|\/|von|sur|de|di)\s*\d{1,3}$/i;

function pageRows(page: PageWords): Row[] {
  const rows: { middle: number; tokens: Token[] }[] = [];
  for (const token of straighten(page).sort((a, b) => a.middle - b.middle)) {
    const row = rows.findLast((one) => {
      const heights = [token.height, ...one.tokens.map((other) => other.height)];
      const least = Math.min(...heights);
      if (Math.max(...heights) > least * ROW_HEIGHTS_RATIO) return false;
      return Math.abs(one.middle - token.middle) <= least * ROW_SHARE;
    });
    if (row) {
      row.tokens.push(token);
      row.middle += (token.middle - row.middle) / row.tokens.length;
    } else rows.push({ middle: token.middle, tokens: [token] });
  }
  return rows
    .sort((a, b) => a.middle - b.middle)
    .map(({ middle, tokens }) => rowFrom(page.page, middle, tokens));
}

function rowFrom(page: number, middle: number, unsorted: readonly Token[]): Row {
  const tokens = unsorted.toSorted((a, b) => a.left - b.left);
  const heights = tokens.map((token) => token.height).sort((a, b) => a - b);
  const height = heights[heights.length >> 1] as number;
  const groups: Token[][] = [];
  for (const token of tokens) {
    const group = groups.at(-1);
    const before = group?.at(-1);
    if (group && before && token.left - before.right < height * CELL_GAP) group.push(token);
    else groups.push([token]);
  }
  return { page, middle, height, tokens, cells: groups.map(cellFrom), text: textOf(tokens) };
}

export function cellFrom(tokens: readonly Token[]): Cell {
  const left = tokens[0]?.left ?? 0;
  return { tokens, text: textOf(tokens), left, right: tokens.at(-1)?.right ?? left };
}

/** Words with single spaces; two spaces for a gap of more than `wordGap` heights. */
export function textOf(tokens: readonly Token[], wordGap = WORD_GAP): string {
  let text = '';
  tokens.forEach((token, at) => {
    const before = tokens[at - 1];
    if (before) text += token.left - before.right > token.height * wordGap ? '  ' : ' ';
    text += token.text;
  });
  return text;
}

/** The tokens of the characters `start` to `end` of `textOf(tokens)`. */
export function tokensAt(tokens: readonly Token[], start: number, end: number, wordGap = WORD_GAP): Token[] {
  let at = 0;
  return tokens.filter((token, index) => {
    const before = tokens[index - 1];
    if (before) at += token.left - before.right > token.height * wordGap ? 2 : 1;
    const from = at;
    at += token.text.length;
    return from < end && at > start;
  });
}

/** A value with the place of its words. */
export function fieldFrom<T>(value: T, tokens: readonly Token[], text = textOf(tokens)): ReadField<T> {
  const first = tokens[0];
  return {
    value,
    text: text.replace(/ {2,}/g, ' ').trim(),
    box: boxAround(tokens),
    confidence: Math.min(1, ...tokens.map((token) => token.confidence)),
    engine: first?.engine ?? 'text',
  };
}

function boxAround(tokens: readonly Token[]): Box | null {
  const first = tokens[0];
  if (!first) return null;
  const boxes = tokens.filter((token) => token.box.page === first.box.page).map((token) => token.box);
  const x = Math.min(...boxes.map((box) => box.x));
  const y = Math.min(...boxes.map((box) => box.y));
  return {
    page: first.box.page,
    x,
    y,
    width: Math.max(...boxes.map((box) => box.x + box.width)) - x,
    height: Math.max(...boxes.map((box) => box.y + box.height)) - y,
  };
}

/** Margin at the top and bottom of a page, as a share of its height. */
const MARGIN_SHARE = 0.12;

function isInMargin(row: Row, page: PageWords): boolean {
  const share = row.middle / page.height;
  return share <= MARGIN_SHARE || share >= 1 - MARGIN_SHARE;
}

/** Rows in the margin of several pages at the same height: running titles and footers. */
function repeatedMargins(pages: readonly { page: PageWords; rows: readonly Row[] }[]): ReadonlySet<string> {
  const seen = new Map<string, number>();
  for (const { page, rows } of pages)
    for (const row of rows) {
      const key = marginKey(row, page);
      if (key !== '') seen.set(key, (seen.get(key) ?? 0) + 1);
    }
  return new Set([...seen].filter(([, pagesSeen]) => pagesSeen > 1).map(([key]) => key));
}

/** Empty for a row outside the margins, and for table headers and sums, which are always kept. */
function marginKey(row: Row, page: PageWords): string {
  if (!isInMargin(row, page)) return '';
  const share = row.middle / page.height;
  // Without the page's own number.
  const text = row.text.toLowerCase().replace(/(?:page\s*)?\d{1,3}(?:\s*(?:of|\/|von|sur)\s*\d{1,3})?$/, '');
  if (text.length < 4 || /amount|betrag|total|montant|price|description/.test(text)) return '';
  return `${Math.round(share * 100)} ${text}`;
}
