import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { contrast, normalizeColor, TEXT_CONTRAST_MIN, textColor } from '../../../domain/reports/branding.js';

const colour = fc
  .integer({ min: 0, max: 0xffffff })
  .map((value) => `#${value.toString(16).padStart(6, '0').toUpperCase()}`);

describe('a brand’s colour', () => {
  it('is written with six digits in upper case, and anything else is none', () => {
    expect(['#abc', '#AbCdEf', '#000'].map(normalizeColor)).toEqual(['#AABBCC', '#ABCDEF', '#000000']);
    for (const text of ['abc', '#ab', '#abcd', '#abcdeg', 'red', '#abcdef '])
      expect(normalizeColor(text)).toBeUndefined();
  });

  it('has the contrast that the standard gives: 21 for black on white, 1 for itself', () => {
    expect(contrast('#000000', '#FFFFFF')).toBeCloseTo(21);
    expect(contrast('#123456', '#123456')).toBe(1);
    expect(contrast('#767676', '#FFFFFF')).toBeGreaterThanOrEqual(4.5);
    expect(contrast('#777777', '#FFFFFF')).toBeLessThan(4.5);
  });

  it('can be read on white and white on it once it is adapted, and stays where it can be read already', () => {
    fc.assert(
      fc.property(colour, (given) => {
        const adapted = textColor(given);
        expect(normalizeColor(adapted)).toBe(adapted);
        expect(contrast(adapted, '#FFFFFF')).toBeGreaterThanOrEqual(TEXT_CONTRAST_MIN);
        if (contrast(given, '#FFFFFF') >= TEXT_CONTRAST_MIN) expect(adapted).toBe(given);
      }),
    );
    expect(textColor('#1F4FD8')).toBe('#1F4FD8');
  });
});
