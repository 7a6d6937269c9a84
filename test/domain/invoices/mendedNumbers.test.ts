import { describe, expect, it } from 'vitest';
import { alternativesOf, hasOtherDigits } from '../../../domain/invoices/reading/mendedNumbers.js';
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
    ['323', '3.23'],
    ['85.00', '5'],
  ])('of the recognised %s contain %s', (text, value) => {
    expect(alternatives(text)).toContain(value);
  });

  it('of the text layer are none', () => {
    expect(alternativesOf('306.675', { engine: 'text', confidence: 1 }, '.')).toEqual([]);
  });
});
