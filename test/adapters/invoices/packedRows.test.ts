import { describe, expect, it } from 'vitest';
import { packRows } from '../../../adapters/invoices/packedRows.js';
import type { GreyImage } from '../../../adapters/invoices/pageImage.js';

const WIDTH = 400;
const HEIGHT = 200;
const INK = 40;
const LETTER = { width: 8, height: 18 };

type Rectangle = readonly [x: number, y: number, width: number, height: number];

function pageWith(rectangles: readonly Rectangle[], paper = 255, ink = INK): GreyImage {
  const grey = new Uint8Array(WIDTH * HEIGHT).fill(255);
  const fill = ([x, y, width, height]: Rectangle, value: number) => {
    for (let row = y; row < y + height; row += 1) grey.fill(value, row * WIDTH + x, row * WIDTH + x + width);
  };
  if (paper !== 255) fill([100, 50, 200, 100], paper);
  for (const rectangle of rectangles) fill(rectangle, ink);
  return { width: WIDTH, height: HEIGHT, grey };
}

/** Letters side by side. */
function word(x: number, y: number, letters: number): Rectangle[] {
  return Array.from({ length: letters }, (_, at) => [x + at * 11, y, LETTER.width, LETTER.height] as const);
}

/** Upper edges of the runs of rows with ink. */
function rowsOf({ width, height, grey }: GreyImage): number[] {
  const hasInk = (y: number) =>
    y >= 0 && grey.subarray(y * width, (y + 1) * width).some((value) => value < 128);
  return [...Array(height).keys()].filter((y) => hasInk(y) && !hasInk(y - 1));
}

function inkOf({ grey }: GreyImage): number {
  return grey.filter((value) => value < 128).length;
}

function packed(page: GreyImage) {
  const rows = packRows(page, page);
  if (rows === undefined) throw new Error('the page has no letters');
  return rows;
}

describe('packRows', () => {
  it('separates a number from the two lines of a description that it lies between', () => {
    const page = pageWith([...word(20, 40, 6), ...word(20, 64, 6), ...word(300, 52, 5)]);
    const { image, placeOn } = packed(page);
    const rows = rowsOf(image);
    expect(rows).toHaveLength(3);
    expect(rows.map((y) => placeOn({ y, height: LETTER.height })?.y)).toEqual([40, 52, 64]);
    expect(inkOf(image)).toBe(inkOf(page));
  });

  it('keeps words and marks of one base line together', () => {
    const dash: Rectangle = [200, 48, 6, 3];
    const page = pageWith([...word(20, 40, 6), dash, ...word(300, 41, 5)]);
    const { image } = packed(page);
    expect(rowsOf(image)).toHaveLength(1);
    expect(inkOf(image)).toBe(inkOf(page));
  });

  it('leaves out the rules of a table', () => {
    const letters = word(30, 40, 6);
    const rules: Rectangle[] = [
      [10, 30, 380, 2],
      [10, 70, 380, 2],
      [10, 30, 2, 42],
      [388, 30, 2, 42],
    ];
    expect(inkOf(packed(pageWith([...letters, ...rules])).image)).toBe(inkOf(pageWith(letters)));
  });

  it('turns light print on a dark area into dark print', () => {
    const letters = word(120, 80, 6);
    const { image, placeOn } = packed(pageWith(letters, INK, 255));
    expect(inkOf(image)).toBe(inkOf(pageWith(letters)));
    expect(placeOn({ y: rowsOf(image)[0] ?? 0, height: LETTER.height })).toEqual({ y: 80 });
  });

  it('returns nothing for a page without letters', () => {
    expect(packRows(pageWith([]), pageWith([]))).toBeUndefined();
    const rule = pageWith([[10, 30, 380, 2]]);
    expect(packRows(rule, rule)).toBeUndefined();
  });
});
