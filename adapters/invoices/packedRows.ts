import type { GreyImage } from './pageImage.js';

/** A rectangle of pixels; `right` and `bottom` lie outside. */
interface Area {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** A connected area of ink. */
interface Blob extends Area {
  pixels: number;
  /** Dark pixels: rules and noise are pale. */
  dark: number;
}

/** A word or a cell: letters side by side. */
interface Segment extends Area {
  /** Indexes of its blobs. */
  blobs: Set<number>;
}

/** Segments on one base line. */
interface Strip extends Area {
  segments: Segment[];
  /** Upper and lower edge of the highest segment. */
  band: readonly [top: number, bottom: number];
  /** Row of the packed image for the row `top` of the page. */
  at: number;
}

/** A page's rows of print one below the other, without rules. */
export interface PackedRows {
  image: GreyImage;
  /** The place on the page of a place on the packed image; undefined between the rows. */
  placeOn(box: { y: number; height: number }): { y: number } | undefined;
}

// Lengths are in pixels at 200 dpi.
const DARK_GREY_MAX = 165;
/** Ink with a smaller share of dark pixels is a pale rule or noise. */
const DARK_SHARE_MIN = 0.08;
const SPECK_PIXELS_MAX = 3;
const LETTER_HEIGHT_MAX = 100;
const LETTER_WIDTH_MAX = 160;
/** A rule is thin, longer than this number of letters is high, and this many times longer than thick. */
const RULE_WIDTH_MAX = 7;
const RULE_LETTERS_MIN = 2;
const RULE_RATIO_MIN = 8;
/** Smallest side and least share of ink of a printed area with light text. */
const AREA_SIDE_MIN = 25;
const AREA_INK_MIN = 0.6;
/** Lower blobs are marks, such as points and dashes. */
const LETTER_HEIGHT_MIN = 8;
/** Longest gap between letters of a segment, as a share of the median height of letters. */
const LETTER_GAP_MAX = 1.1;
/** Least shared height of letters side by side, as a share of the lower one. */
const LETTER_OVERLAP_MIN = 0.4;
/** Largest gap and height of an accent, as shares of the median height of letters. */
const ACCENT_GAP_MAX = 0.25;
const ACCENT_HEIGHT_MAX = 0.5;
/** Least shared height of segments of one strip, as a share of the lower one. */
const STRIP_OVERLAP_MIN = 0.6;
/** Pale edges of letters lie in a margin of this width. */
const MARGIN = 3;
const STRIP_GAP = 14;
/** Unknown ink of this size is not copied with the letters beside it. */
const FOREIGN_SIDE_MIN = 12;

/**
 * Moves the rows of print of a level page apart and leaves rules out. Otherwise recognition joins rows of adjacent cells
 * that lie at different heights, and loses digits beside rules. `page` has white paper and decides what is ink; `soft` has
 * the pale edges of letters too. Undefined for a page without letters.
 */
export function packRows(page: GreyImage, soft: GreyImage): PackedRows | undefined {
  const { width, height } = page;
  const source = { ...soft, grey: soft.grey.slice() };
  const { labels, blobs } = readableBlobs(page, source.grey);
  const median = letterHeight(blobs.filter(isSmall));
  if (median === undefined) return undefined;
  const areLetters = blobs.map((blob) => isSmall(blob) && !isRule(blob, median));
  const segments = segmentsOf(blobs, areLetters, median);
  if (segments.length === 0) return undefined;
  const strips = stripsOf(segments);
  let end = STRIP_GAP;
  for (const strip of strips) {
    strip.at = end;
    end += strip.bottom - strip.top + STRIP_GAP;
  }
  const isForeign = blobs.map(
    ({ left, top, right, bottom }, at) =>
      areLetters[at] === true || Math.max(right - left, bottom - top) >= FOREIGN_SIDE_MIN,
  );
  const grey = new Uint8Array(width * end).fill(255);
  for (const { segments: parts, at, top } of strips)
    for (const part of parts)
      for (let y = Math.max(0, part.top - MARGIN); y < Math.min(height, part.bottom + MARGIN); y += 1)
        for (let x = Math.max(0, part.left - MARGIN); x < Math.min(width, part.right + MARGIN); x += 1) {
          const blob = (labels[y * width + x] ?? 0) - 1;
          if (blob < 0 || !isForeign[blob] || part.blobs.has(blob))
            grey[(at + y - top) * width + x] = source.grey[y * width + x] ?? 255;
        }
  return {
    image: { width, height: end, grey },
    placeOn(box) {
      const middle = box.y + box.height / 2;
      const isIn = ({ at, top, bottom }: Strip) =>
        middle >= at - STRIP_GAP / 2 && middle < at + bottom - top + STRIP_GAP / 2;
      const strip = strips.find(isIn);
      return strip && { y: box.y - strip.at + strip.top };
    },
  };
}

/** The blobs of a page after areas of light text are inverted, also in `soft`. */
function readableBlobs(page: GreyImage, soft: Uint8Array): { labels: Uint32Array; blobs: Blob[] } {
  const found = blobsOf(page);
  const areas = found.blobs.filter(({ left, top, right, bottom, dark }) => {
    const [width, height] = [right - left, bottom - top];
    const isLarge = Math.min(width, height) >= AREA_SIDE_MIN && width * height > LETTER_HEIGHT_MAX ** 2 / 4;
    return isLarge && dark >= AREA_INK_MIN * width * height;
  });
  if (areas.length === 0) return found;
  const grey = page.grey.slice();
  for (const { left, top, right, bottom } of areas)
    for (let y = top; y < bottom; y += 1)
      for (let at = y * page.width + left; at < y * page.width + right; at += 1) {
        const inverted = (grey[at] ?? 255) > DARK_GREY_MAX ? 255 - (soft[at] ?? 255) : 255;
        soft[at] = inverted;
        grey[at] = inverted;
      }
  return blobsOf({ ...page, grey });
}

/** Neither noise nor a picture. */
function isSmall({ left, top, right, bottom, pixels, dark }: Blob): boolean {
  if (pixels <= SPECK_PIXELS_MAX || dark < pixels * DARK_SHARE_MIN) return false;
  return bottom - top <= LETTER_HEIGHT_MAX && right - left <= LETTER_WIDTH_MAX;
}

function isRule({ left, top, right, bottom }: Blob, median: number): boolean {
  const [thin = 0, long = 0] = [right - left, bottom - top].sort((a, b) => a - b);
  return thin <= RULE_WIDTH_MAX && long >= median * RULE_LETTERS_MIN && long >= thin * RULE_RATIO_MIN;
}

/** The median height; undefined without letters. */
function letterHeight(blobs: readonly Blob[]): number | undefined {
  const heights = blobs
    .filter((blob) => heightOf(blob) >= LETTER_HEIGHT_MIN && blob.right - blob.left <= LETTER_HEIGHT_MAX)
    .map(heightOf)
    .sort((a, b) => a - b);
  return heights[heights.length >> 1];
}

/** Connected areas of ink; `labels` has the index of each pixel's blob plus one. */
function blobsOf({ width, height, grey }: GreyImage): { labels: Uint32Array; blobs: Blob[] } {
  const labels = new Uint32Array(width * height);
  const blobs: Blob[] = [];
  const open: number[] = [];
  for (let start = 0; start < grey.length; start += 1) {
    if (grey[start] === 255 || labels[start] !== 0) continue;
    const blob: Blob = { left: width, top: height, right: 0, bottom: 0, pixels: 0, dark: 0 };
    const label = blobs.push(blob);
    labels[start] = label;
    open.push(start);
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      const x = at % width;
      const y = (at - x) / width;
      blob.pixels += 1;
      if ((grey[at] ?? 255) <= DARK_GREY_MAX) blob.dark += 1;
      blob.left = Math.min(blob.left, x);
      blob.right = Math.max(blob.right, x + 1);
      blob.top = Math.min(blob.top, y);
      blob.bottom = Math.max(blob.bottom, y + 1);
      for (let nextY = Math.max(0, y - 1); nextY <= Math.min(height - 1, y + 1); nextY += 1)
        for (let nextX = Math.max(0, x - 1); nextX <= Math.min(width - 1, x + 1); nextX += 1) {
          const next = nextY * width + nextX;
          if (labels[next] !== 0 || grey[next] === 255) continue;
          labels[next] = label;
          open.push(next);
        }
    }
  }
  return { labels, blobs };
}

/** Joins letters side by side, and accents with the letters below them. */
function segmentsOf(blobs: readonly Blob[], areLetters: readonly boolean[], median: number): Segment[] {
  const order = [...blobs.keys()].filter((at) => areLetters[at]);
  order.sort((a, b) => (blobs[a] as Blob).left - (blobs[b] as Blob).left);
  const parents = [...blobs.keys()];
  const rootOf = (at: number): number => {
    let root = at;
    while (parents[root] !== root) {
      parents[root] = parents[parents[root] as number] as number;
      root = parents[root] as number;
    }
    return root;
  };
  for (const [place, at] of order.entries()) {
    const one = blobs[at] as Blob;
    for (let later = place + 1; later < order.length; later += 1) {
      const next = order[later] as number;
      const other = blobs[next] as Blob;
      if (other.left > one.right + median * LETTER_GAP_MAX) break;
      const shared = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      const least = Math.min(heightOf(one), heightOf(other));
      const isAccent =
        shared < 0 &&
        shared >= -median * ACCENT_GAP_MAX &&
        least <= median * ACCENT_HEIGHT_MAX &&
        other.left < one.right;
      if (isAccent || shared >= least * LETTER_OVERLAP_MIN) parents[rootOf(next)] = rootOf(at);
    }
  }
  const segments = new Map<number, Segment>();
  for (const at of order) {
    const { left, top, right, bottom } = blobs[at] as Blob;
    const segment = segments.get(rootOf(at));
    if (segment) {
      segment.blobs.add(at);
      widen(segment, { left, top, right, bottom });
    } else segments.set(rootOf(at), { left, top, right, bottom, blobs: new Set([at]) });
  }
  return [...segments.values()];
}

/** The highest segments come first, so that a dash joins the row beside it. */
function stripsOf(segments: readonly Segment[]): Strip[] {
  const strips: Strip[] = [];
  for (const segment of segments.toSorted((a, b) => heightOf(b) - heightOf(a))) {
    let best: { strip: Strip; share: number } | undefined;
    for (const strip of strips) {
      const [top, bottom] = strip.band;
      const share = (Math.min(bottom, segment.bottom) - Math.max(top, segment.top)) / heightOf(segment);
      if (share < STRIP_OVERLAP_MIN || share <= (best?.share ?? 0)) continue;
      if (strip.segments.every((one) => one.right < segment.left || one.left > segment.right))
        best = { strip, share };
    }
    if (best) {
      best.strip.segments.push(segment);
      widen(best.strip, segment);
    } else {
      const { left, top, right, bottom } = segment;
      strips.push({ left, top, right, bottom, segments: [segment], band: [top, bottom], at: 0 });
    }
  }
  return strips.sort((a, b) => a.top - b.top);
}

function heightOf({ top, bottom }: Area): number {
  return bottom - top;
}

function widen(area: Area, { left, top, right, bottom }: Area): void {
  area.left = Math.min(area.left, left);
  area.top = Math.min(area.top, top);
  area.right = Math.max(area.right, right);
  area.bottom = Math.max(area.bottom, bottom);
}
