import type { Word } from '../../domain/invoices/pageWords.js';

/** A piece of text as pdf.js reports it. */
export interface TextItem {
  str: string;
  /** Length along the direction of writing, in units of the page. */
  width: number;
  transform: readonly number[];
}

/** Transforms the page's coordinates to points from the upper left corner of the upright page. */
export interface UprightPage {
  transform: readonly number[];
  /** Points for one unit of the page. */
  scale: number;
}

/** No page of an invoice has more words. */
export const PAGE_WORDS_MAX = 20_000;

/** Letters reach this far above and below the baseline, as shares of the font's size. */
const ASCENT = 0.74;
const DESCENT = 0.21;
/** Pieces with a smaller gap between them, as a share of the font's size, are one word. */
const JOIN_GAP_MAX = 0.1;
/** Pieces on one line may overlap by this much: kerning, italics. */
const JOIN_OVERLAP_MAX = 0.3;
const BASELINE_SLACK = 0.15;

/** A level word, with the measures for joining it to its neighbour. */
interface Piece extends Word {
  baseline: number;
  size: number;
}

/** Words of one page. Joins words that a program wrote letter by letter. Error if there are too many. */
export function wordsOf(items: readonly TextItem[], page: UprightPage): Word[] {
  const level: Piece[] = [];
  const turned: Word[] = [];
  for (const item of items) {
    for (const piece of splitItem(item, page)) {
      if ('size' in piece) level.push(piece);
      else turned.push(piece);
    }
    if (level.length + turned.length > 4 * PAGE_WORDS_MAX) throw new RangeError('too many words');
  }
  const words = [...joinPieces(level), ...turned];
  if (words.length > PAGE_WORDS_MAX) throw new RangeError('too many words');
  return words;
}

/**
 * The clockwise angle, in addition to the page's own rotation, that makes the text upright. Other than 0 only if most of
 * the text is turned.
 */
export function turnOfText(items: readonly TextItem[], page: UprightPage): 0 | 90 | 180 | 270 {
  const characters = { 0: 0, 90: 0, 180: 0, 270: 0 };
  let all = 0;
  for (const { str, transform } of items) {
    const [a, b] = multiply(page.transform, transform);
    all += str.length;
    if (Math.abs(b) * 10 < Math.abs(a)) characters[a > 0 ? 0 : 180] += str.length;
    else if (Math.abs(a) * 10 < Math.abs(b)) characters[b > 0 ? 270 : 90] += str.length;
  }
  const turns = [90, 180, 270] as const;
  return turns.find((turn) => characters[turn] > 0.8 * all) ?? 0;
}

function splitItem({ str, width, transform }: TextItem, page: UprightPage): (Word | Piece)[] {
  if (str.trim() === '') return [];
  const [a, b, c, d, e, f] = multiply(page.transform, transform);
  const size = Math.hypot(c, d);
  const along = Math.hypot(a, b);
  if (size === 0 || along === 0) return [];
  const right = { x: a / along, y: b / along };
  const up = { x: c / size, y: d / size };
  const isLevel = Math.abs(right.y) < 0.02 && right.x > 0 && up.y < 0;
  const total = advanceOf(str);
  const scale = total === 0 ? 0 : (width * page.scale) / total;
  return [...str.matchAll(/\S+/g)].map((match) => {
    const [text] = match;
    const start = advanceOf(str.slice(0, match.index)) * scale;
    const length = advanceOf(text) * scale;
    const corners = [start, start + length].flatMap((x) =>
      [ASCENT, -DESCENT].map((y) => ({
        x: e + right.x * x + up.x * size * y,
        y: f + right.y * x + up.y * size * y,
      })),
    );
    const left = Math.min(...corners.map(({ x }) => x));
    const top = Math.min(...corners.map(({ y }) => y));
    const word = {
      text,
      x: left,
      y: top,
      width: Math.max(...corners.map(({ x }) => x)) - left,
      height: Math.max(...corners.map(({ y }) => y)) - top,
      confidence: 1,
    };
    return isLevel ? { ...word, baseline: f + right.y * start, size } : word;
  });
}

/** Joins touching pieces and drops repeated ones at the same place (bold text written twice). */
function joinPieces(pieces: readonly Piece[]): Word[] {
  const joined: Piece[] = [];
  for (const line of linesOf(pieces)) {
    let last: Piece | undefined;
    for (const piece of line) {
      if (last !== undefined) {
        const size = Math.min(last.size, piece.size);
        const gap = piece.x - (last.x + last.width);
        if (piece.text === last.text && Math.abs(piece.x - last.x) < JOIN_OVERLAP_MAX * size) continue;
        if (gap < JOIN_GAP_MAX * size && gap > -JOIN_OVERLAP_MAX * size) {
          const bottom = Math.max(last.y + last.height, piece.y + piece.height);
          last.text += piece.text;
          last.width = piece.x + piece.width - last.x;
          last.y = Math.min(last.y, piece.y);
          last.height = bottom - last.y;
          continue;
        }
      }
      last = { ...piece };
      joined.push(last);
    }
  }
  return joined.map(({ baseline: _, size: __, ...word }) => word);
}

/** Pieces of one baseline, from left to right. */
function linesOf(pieces: readonly Piece[]): Piece[][] {
  const lines: Piece[][] = [];
  let start: Piece | undefined;
  for (const piece of [...pieces].sort((one, other) => one.baseline - other.baseline)) {
    if (
      start === undefined ||
      piece.baseline - start.baseline > BASELINE_SLACK * Math.min(start.size, piece.size)
    ) {
      start = piece;
      lines.push([]);
    }
    lines.at(-1)?.push(piece);
  }
  return lines.map((line) => line.sort((one, other) => one.x - other.x));
}

/**
 * Widths of the printable ASCII characters from the space on, in thousandths of the font's size, as Helvetica has them.
 * They only distribute the known width of a piece among its characters.
 */
const ADVANCES = (
  '278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 278 ' +
  '584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 ' +
  '667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 ' +
  '278 556 500 722 500 500 500 334 260 334 584'
)
  .split(' ')
  .map(Number);
const OTHER_ADVANCE = 556;

function advanceOf(text: string): number {
  let sum = 0;
  for (let at = 0; at < text.length; at += 1) sum += ADVANCES[text.charCodeAt(at) - 32] ?? OTHER_ADVANCE;
  return sum;
}

type Matrix = [number, number, number, number, number, number];

function multiply(one: readonly number[], other: readonly number[]): Matrix {
  const [a = 1, b = 0, c = 0, d = 1, e = 0, f = 0] = one;
  const [A = 1, B = 0, C = 0, D = 1, E = 0, F = 0] = other;
  return [a * A + c * B, b * A + d * B, a * C + c * D, b * C + d * D, a * E + c * F + e, b * E + d * F + f];
}

const TEXT_CHARACTERS_MIN = 50;
/** Share of characters that no invoice consists of: private use, replacement, control, symbols. */
const ODD_SHARE_MAX = 0.15;
/** Fewer letters show no reliable distribution. */
const LATIN_LETTERS_MIN = 80;
/** English has 0.38, German 0.39; a font map that is off by some places has below 0.15. */
const VOWEL_SHARE_MIN = 0.2;

/** Whether a text layer has enough text and a correct font map. */
export function isUsableText(words: readonly Pick<Word, 'text'>[]): boolean {
  const text = words.map((word) => word.text).join('');
  return text.length >= TEXT_CHARACTERS_MIN && !isGarbled(text);
}

export function isGarbled(text: string): boolean {
  const common =
    text.match(/[\p{L}\p{M}\p{Nd}\p{Sc}.,:;'"’‘“”„–—\-_/()[\]&%@#+*=!?°§•·|<>©®™×−]/gu)?.length ?? 0;
  if (common < text.length * (1 - ODD_SHARE_MAX)) return true;
  const latin = text.match(/[A-Za-zÀ-ɏ]/g)?.length ?? 0;
  const vowels = text.match(/[AEIOUYaeiouyÀ-Æà-æÈ-Ïè-ïÒ-Öò-öØø-üÙ-Ü]/g)?.length ?? 0;
  return latin >= LATIN_LETTERS_MIN && vowels < latin * VOWEL_SHARE_MIN;
}
