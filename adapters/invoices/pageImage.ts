/** A page as grey values, 0 (black) to 255, row by row. */
export interface GreyImage {
  width: number;
  height: number;
  grey: Uint8Array;
}

/** Darker pixels are ink. */
const INK_GREY_MAX = 140;
/** A page with a smaller share of ink is blank: dust, the shadow of a fold. */
const BLANK_INK_MAX = 0.0003;
/** Sampling step of rows and columns for detecting the orientation. */
const SAMPLE_STEP = 3;
/** Gaps inside and between the letters of a word, in pixels at 200 dpi: two points. */
const LETTER_GAP_MAX = 6;
/**
 * Letters have more upright strokes than level ones. Upright text has 2.5 times as many short gaps along rows as along
 * columns; more along columns is text that runs down the page.
 */
const SIDEWAYS_RATIO = 1.3;
/** Steps of the search for the slope of lines: 0.1 degrees up to 6. */
const SKEW_STEP = 0.1;
const SKEW_MAX = 6;
/** On a smaller slope the rows of a page do not overlap. */
const SKEW_MIN = 0.1;

export function greyOf(rgba: Uint8Array | Uint8ClampedArray, width: number, height: number): GreyImage {
  const grey = new Uint8Array(width * height);
  for (let at = 0, from = 0; at < grey.length; at += 1, from += 4)
    grey[at] = ((rgba[from] ?? 0) * 77 + (rgba[from + 1] ?? 0) * 150 + (rgba[from + 2] ?? 0) * 29) >> 8;
  return { width, height, grey };
}

/** Side of a tile whose paper is measured, in pixels at 200 dpi: a quarter of an inch. */
const PAPER_TILE = 50;
/** The paper's grey is the median of a tile: ink covers less than half of it. */
const PAPER_RANK = 0.5;
/** Darker tiles are printed areas, not paper in a shadow. */
const PAPER_GREY_MIN = 170;
/** Lighter pixels, as a share of the paper's grey, are paper with noise. */
const PAPER_SHARE = 0.82;
/** As `PAPER_SHARE`, but keeps the pale edges of letters, and some noise with them. */
export const EDGE_SHARE = 0.92;

/**
 * Makes the paper white, tile by tile. Otherwise recognition finds words in the noise and the shadows of an almost empty
 * page, because it separates ink from paper by one threshold.
 */
export function whitenPaper({ width, height, grey }: GreyImage, share = PAPER_SHARE): GreyImage {
  const white = new Uint8Array(grey.length);
  const counts = new Uint32Array(256);
  for (let top = 0; top < height; top += PAPER_TILE)
    for (let left = 0; left < width; left += PAPER_TILE) {
      const bottom = Math.min(height, top + PAPER_TILE);
      const right = Math.min(width, left + PAPER_TILE);
      counts.fill(0);
      for (let y = top; y < bottom; y += 1)
        for (let x = left; x < right; x += 1) {
          const value = grey[y * width + x] ?? 255;
          counts[value] = (counts[value] ?? 0) + 1;
        }
      let paper = 255;
      const lighter = (bottom - top) * (right - left) * (1 - PAPER_RANK);
      for (let seen = counts[255] ?? 0; seen < lighter && paper > PAPER_GREY_MIN; seen += counts[paper] ?? 0)
        paper -= 1;
      const least = paper * share;
      for (let y = top; y < bottom; y += 1)
        for (let x = left; x < right; x += 1) {
          const at = y * width + x;
          const value = grey[at] ?? 255;
          white[at] = value < least ? value : 255;
        }
    }
  return { width, height, grey: white };
}

export function isBlank({ grey }: GreyImage): boolean {
  let ink = 0;
  for (let at = 0; at < grey.length; at += SAMPLE_STEP) if ((grey[at] ?? 255) <= INK_GREY_MAX) ink += 1;
  return ink * SAMPLE_STEP < grey.length * BLANK_INK_MAX;
}

/** Whether lines of text run from top to bottom. */
export function isSideways({ width, height, grey }: GreyImage): boolean {
  let along = 0;
  let across = 0;
  for (let y = 0; y < height; y += SAMPLE_STEP) along += shortGaps(grey, y * width, 1, width);
  for (let x = 0; x < width; x += SAMPLE_STEP) across += shortGaps(grey, x, width, height);
  return across > SIDEWAYS_RATIO * along;
}

/** Short runs of paper between ink on one row or column. */
function shortGaps(grey: Uint8Array, start: number, step: number, length: number): number {
  let count = 0;
  let gap = LETTER_GAP_MAX + 1;
  for (let at = 0, from = start; at < length; at += 1, from += step) {
    if ((grey[from] ?? 255) > INK_GREY_MAX) gap += 1;
    else {
      if (gap > 0 && gap <= LETTER_GAP_MAX) count += 1;
      gap = 0;
    }
  }
  return count;
}

/** Slope of the text lines in degrees, falling to the right; 0 below `SKEW_MIN`. */
export function skewOf({ width, height, grey }: GreyImage): number {
  const xs: number[] = [];
  const ys: number[] = [];
  for (let y = 0; y < height; y += 2)
    for (let x = 0; x < width; x += 2 * SAMPLE_STEP)
      if ((grey[y * width + x] ?? 255) <= INK_GREY_MAX) {
        xs.push(x);
        ys.push(y);
      }
  const rows = new Float64Array(2 * height + width);
  let best = { degrees: 0, sharpness: 0 };
  for (let step = -SKEW_MAX / SKEW_STEP; step <= SKEW_MAX / SKEW_STEP; step += 1) {
    const slope = Math.tan((step * SKEW_STEP * Math.PI) / 180);
    rows.fill(0);
    for (let at = 0; at < xs.length; at += 1) {
      const row = Math.round(((ys[at] ?? 0) - (xs[at] ?? 0) * slope) / 2 + height / 2);
      if (row >= 0 && row < rows.length) rows[row] = (rows[row] ?? 0) + 1;
    }
    let sharpness = 0;
    for (const ink of rows) sharpness += ink * ink;
    if (sharpness > best.sharpness) best = { degrees: step * SKEW_STEP, sharpness };
  }
  return Math.abs(best.degrees) < SKEW_MIN ? 0 : best.degrees;
}

/** Turned counterclockwise by some degrees around its centre, on paper of the same size. */
export function levelImage({ width, height, grey }: GreyImage, degrees: number): GreyImage {
  const levelled = new Uint8Array(width * height).fill(255);
  const sin = Math.sin((degrees * Math.PI) / 180);
  const cos = Math.cos((degrees * Math.PI) / 180);
  const centreX = (width - 1) / 2;
  const centreY = (height - 1) / 2;
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1) {
      const fromX = centreX + (x - centreX) * cos - (y - centreY) * sin;
      const fromY = centreY + (x - centreX) * sin + (y - centreY) * cos;
      const left = Math.floor(fromX);
      const top = Math.floor(fromY);
      if (left < 0 || top < 0 || left + 1 >= width || top + 1 >= height) continue;
      const at = top * width + left;
      const right = fromX - left;
      const below = fromY - top;
      const upper = (grey[at] ?? 255) * (1 - right) + (grey[at + 1] ?? 255) * right;
      const lower = (grey[at + width] ?? 255) * (1 - right) + (grey[at + width + 1] ?? 255) * right;
      levelled[y * width + x] = upper * (1 - below) + lower * below;
    }
  return { width, height, grey: levelled };
}

/** Turned clockwise by a right angle. */
export function turnImage(image: GreyImage, turn: 0 | 90 | 180 | 270): GreyImage {
  if (turn === 0) return image;
  const { width, height, grey } = image;
  const turned = new Uint8Array(grey.length);
  if (turn === 180) {
    for (let at = 0; at < grey.length; at += 1) turned[grey.length - 1 - at] = grey[at] ?? 255;
    return { width, height, grey: turned };
  }
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1) {
      const to = turn === 90 ? x * height + (height - 1 - y) : (width - 1 - x) * height + y;
      turned[to] = grey[y * width + x] ?? 255;
    }
  return { width: height, height: width, grey: turned };
}

/** The band of rows, a share of the page, with the most ink. */
export function fullestBand({ width, height, grey }: GreyImage, share: number): GreyImage {
  const rows = Math.ceil(height * share);
  const ink = Array.from({ length: height }, (_, y) => {
    let count = 0;
    for (let at = y * width; at < (y + 1) * width; at += SAMPLE_STEP)
      if ((grey[at] ?? 255) <= INK_GREY_MAX) count += 1;
    return count;
  });
  let within = ink.slice(0, rows).reduce((sum, count) => sum + count, 0);
  let best = { top: 0, ink: within };
  for (let top = 1; top + rows <= height; top += 1) {
    within += (ink[top + rows - 1] ?? 0) - (ink[top - 1] ?? 0);
    if (within > best.ink) best = { top, ink: within };
  }
  return { width, height: rows, grey: grey.slice(best.top * width, (best.top + rows) * width) };
}

/** Larger or smaller, with linear interpolation. */
export function scaleImage({ width, height, grey }: GreyImage, factor: number): GreyImage {
  const scaled = { width: Math.round(width * factor), height: Math.round(height * factor) };
  const pixels = new Uint8Array(scaled.width * scaled.height);
  const placeOf = (at: number, length: number) =>
    Math.min(length - 1, Math.max(0, (at + 0.5) / factor - 0.5));
  for (let y = 0; y < scaled.height; y += 1) {
    const fromY = placeOf(y, height);
    const top = Math.floor(fromY) * width;
    const bottom = Math.min(top + width, (height - 1) * width);
    const below = fromY % 1;
    for (let x = 0; x < scaled.width; x += 1) {
      const fromX = placeOf(x, width);
      const left = Math.floor(fromX);
      const next = Math.min(left + 1, width - 1);
      const right = fromX % 1;
      const upper = (grey[top + left] ?? 255) * (1 - right) + (grey[top + next] ?? 255) * right;
      const lower = (grey[bottom + left] ?? 255) * (1 - right) + (grey[bottom + next] ?? 255) * right;
      pixels[y * scaled.width + x] = upper * (1 - below) + lower * below;
    }
  }
  return { ...scaled, grey: pixels };
}

/** Portable grey map: every OCR program reads it, and it needs no compression. */
export function asPgm({ width, height, grey }: GreyImage): Buffer {
  return Buffer.concat([Buffer.from(`P5\n${width} ${height}\n255\n`, 'latin1'), grey]);
}
