import type { Box, InvoiceEngine, PageWords } from '../pageWords.js';

/** One word of the levelled page; `box` is its place on the page as read. Points. */
export interface Token {
  text: string;
  left: number;
  right: number;
  middle: number;
  height: number;
  box: Box;
  confidence: number;
  engine: InvoiceEngine;
}

/** Steepest text that is straightened: vertical points for each horizontal point. */
const SLOPE_MAX = 0.05;
const SLOPE_STEPS_COARSE = 40;
const SLOPE_STEPS_FINE = 10;
/** Share of the median height of a word that one bin of the row histogram covers. */
const BIN_SHARE = 0.25;
/** The slope of a page with fewer words cannot be measured. */
const WORDS_MIN = 6;
/** A page is turned only if its rows become sharper by this factor. */
const GAIN_MIN = 1.02;

/** The words of a page, split at spaces and turned so that rows are level. */
export function straighten(page: PageWords): Token[] {
  const tokens = withLineHeights(page.words.flatMap((word) => split(page, word)));
  const slope = slopeOf(tokens);
  if (slope === 0) return tokens;
  const cosine = 1 / Math.hypot(1, slope);
  const sine = slope * cosine;
  const middleX = page.width / 2;
  const middleY = page.height / 2;
  return tokens.map((token) => {
    // About the centre of the page, so that columns of pages with different slopes stay at one place.
    const fromX = (token.left + token.right) / 2 - middleX;
    const fromY = token.middle - middleY;
    const x = middleX + fromX * cosine + fromY * sine;
    const half = (token.right - token.left) / 2;
    return { ...token, left: x - half, right: x + half, middle: middleY + fromY * cosine - fromX * sine };
  });
}

/** Recognition boxes the ink: letters without descenders have about this share of the font's line height. */
const INK_SHARE = 0.8;

/** Recognised words with the height of their line: a dash has none of its own, and a word of small letters too little. */
function withLineHeights(tokens: readonly Token[]): Token[] {
  const heights = tokens.map((token) => token.height).sort((a, b) => a - b);
  const median = heights[heights.length >> 1] ?? 0;
  return tokens.map((token) =>
    token.engine === 'text' ? token : { ...token, height: Math.max(token.height, median) / INK_SHARE },
  );
}

type RawWord = PageWords['words'][number];

/** Splits a word that contains spaces; each part has its share of the width. */
function split(page: PageWords, word: RawWord): Token[] {
  const length = word.text.length;
  const parts = [...word.text.matchAll(/[^\s\u00a0\u202f]+/g)];
  return parts.map((part) => {
    const start = part.index / length;
    const x = word.x + word.width * start;
    const width = (word.width * part[0].length) / length;
    return {
      text: part[0],
      left: x,
      right: x + width,
      middle: word.y + word.height / 2,
      height: word.height,
      box: { page: page.page, x, y: word.y, width, height: word.height },
      confidence: word.confidence,
      engine: page.engine,
    };
  });
}

/** The slope at which the words fall into the fewest rows: the highest energy of the histogram of their heights. */
function slopeOf(tokens: readonly Token[]): number {
  if (tokens.length < WORDS_MIN) return 0;
  const heights = tokens.map((token) => token.height).sort((a, b) => a - b);
  const bin = Math.max((heights[heights.length >> 1] as number) * BIN_SHARE, 0.5);
  const best = (center: number, reach: number, steps: number): number => {
    let slope = center;
    let highest = energy(tokens, center, bin);
    for (let step = -steps; step <= steps; step += 1) {
      const tried = center + (reach * step) / steps;
      const reached = energy(tokens, tried, bin);
      if (reached > highest * (1 + 1e-9)) {
        highest = reached;
        slope = tried;
      }
    }
    return slope;
  };
  const coarse = best(0, SLOPE_MAX, SLOPE_STEPS_COARSE);
  const fine = best(coarse, SLOPE_MAX / SLOPE_STEPS_COARSE, SLOPE_STEPS_FINE);
  return energy(tokens, fine, bin) > energy(tokens, 0, bin) * GAIN_MIN ? fine : 0;
}

/** Each word counts by its width, shared between the two bins that it lies next to. */
function energy(tokens: readonly Token[], slope: number, bin: number): number {
  const bins = new Map<number, number>();
  for (const token of tokens) {
    const at = (token.middle - slope * ((token.left + token.right) / 2)) / bin;
    const lower = Math.floor(at);
    const weight = Math.min(token.right - token.left, token.height * 8);
    bins.set(lower, (bins.get(lower) ?? 0) + weight * (lower + 1 - at));
    bins.set(lower + 1, (bins.get(lower + 1) ?? 0) + weight * (at - lower));
  }
  let sum = 0;
  for (const weight of bins.values()) sum += weight * weight;
  return sum;
}
