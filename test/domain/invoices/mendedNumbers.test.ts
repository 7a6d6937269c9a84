import { describe, expect, it } from 'vitest';
import type { Token } from '../../../domain/invoices/reading/deskew.js';
import {
  alternativesOf,
  hasOtherDigits,
  joinGroups,
  mendSigns,
  withCents,
} from '../../../domain/invoices/reading/mendedNumbers.js';
import { numbersIn } from '../../../domain/invoices/reading/printedNumber.js';
import { decimalFromPico, picoFromDecimal } from '../../../domain/money.js';

const pico = (text: string) => picoFromDecimal(text) ?? 0n;
const alternatives = (text: string, confidence = 0.95) =>
  alternativesOf(text, { engine: 'tesseract', confidence }, '.').map(({ value }) => decimalFromPico(value));

describe('hasOtherDigits', () => {
  it.each([
    ['$36,450.00', '3645', true],
    ['$3,645.00', '3645', false],
    ['364500', '3645', false],
    ['36450', '3645', true],
    ['306.675', '306675', false],
    ['$1O.5O', '10.5', false],
    ['85.00', '5', false],
    ['$7.10', '7.7', true],
    ['-$4.00', '-4', false],
  ])('of %s for %s is %s', (text, value, expected) => {
    expect(hasOtherDigits(text, pico(value), true)).toBe(expected);
  });
});

describe('alternativesOf', () => {
  it.each([
    ['306.675', '306675'],
    ['$11.64', '111.64'],
    ['€.73', '2.73'],
    ['€3.89', '23.89'],
    ['€09.93', '509.93'],
    ['323', '3.23'],
    ['85.00', '5'],
  ])('of the recognised %s contain %s', (text, value) => {
    expect(alternatives(text)).toContain(value);
  });

  it('of the text layer are none', () => {
    expect(alternativesOf('306.675', { engine: 'text', confidence: 1 }, '.')).toEqual([]);
  });
});

/** Words with gaps of these points before them. */
function tokens(
  words: readonly (readonly [text: string, gap: number])[],
  engine: Token['engine'] = 'tesseract',
) {
  let right = 0;
  return words.map(([text, gap]): Token => {
    const left = right + gap;
    right = left + 5 * text.length;
    const box = { page: 1, x: left, y: 0, width: right - left, height: 8 };
    return { text, left, right, middle: 4, height: 10, box, confidence: 0.9, engine };
  });
}

describe('withCents', () => {
  const read = (text: string, engine: Token['engine'] = 'tesseract') =>
    numbersIn(tokens([[text, 0]], engine), ',').map((span) => {
      const { value, isMended } = withCents(span);
      return [decimalFromPico(value), isMended];
    });

  it.each([
    ['€258', '2.58'],
    ['255581€', '2555.81'],
    ['€043', '0.43'],
  ])('restores the lost mark of %s', (text, value) => {
    expect(read(text)).toEqual([[value, true]]);
  });

  it.each([
    ['258', '258'],
    ['€2,58', '2.58'],
    ['€.000015', '0.000015'],
    ['€25', '25'],
    ['¥258', '258'],
  ])('keeps %s', (text, value) => {
    expect(read(text)).toEqual([[value, false]]);
  });

  it('keeps the numbers of a text layer', () => {
    expect(read('€258', 'text')).toEqual([['258', false]]);
  });
});

describe('joinGroups', () => {
  const joined = (...words: (readonly [string, number])[]) =>
    joinGroups(tokens(words)).map(({ text }) => text);

  it('joins groups of thousands of which one space was lost', () => {
    expect(joined(['1730', 0], ['603', 3], ['630', 3])).toEqual(['1730603630']);
    expect(joined(['1', 0], ['248824', 3])).toEqual(['1248824']);
    expect(joined(['1234', 0], ['567,89', 3])).toEqual(['1234567,89']);
  });

  it('keeps numbers of different columns and numbers that are no group', () => {
    expect(joined(['1730', 0], ['603', 12])).toEqual(['1730', '603']);
    expect(joined(['1730', 0], ['60', 3])).toEqual(['1730', '60']);
  });

  it('keeps the words of a text layer', () => {
    expect(
      joinGroups(
        tokens(
          [
            ['1730', 0],
            ['603', 3],
          ],
          'text',
        ),
      ),
    ).toHaveLength(2);
  });
});

describe('mendSigns', () => {
  const mended = (...words: string[]) =>
    mendSigns(tokens(words.map((word) => [word, 3] as const))).map(({ text }) => text);

  it('restores the dollar sign of a country', () => {
    expect(mended('CAS$', '65.69')).toEqual(['CA$', '65.69']);
    expect(mended('-AS$7.13')).toEqual(['-A$7.13']);
    expect(mended('CAS', '8.54')).toEqual(['CA$', '8.54']);
    expect(mended('8,54', 'CAS')).toEqual(['8,54', 'CA$']);
    expect(mended('CAS8.54', '8,54CAS', '(8,54CAS$)')).toEqual(['CA$8.54', '8,54CA$', '(8,54CA$)']);
  });

  it('keeps other words', () => {
    expect(mended('US$', '8.54', 'No.', 'CAS', 'No.', 'S$5')).toEqual([
      'US$',
      '8.54',
      'No.',
      'CAS',
      'No.',
      'S$5',
    ]);
  });
});
