import fc from 'fast-check';
import { RE2JS } from 're2js';
import { describe, expect, it } from 'vitest';
import { estimateProgramSize } from '../../../domain/policies/patternSet.js';

/** The size of the program itself; undefined: no pattern. */
function compiledSize(pattern: string): number | undefined {
  try {
    return RE2JS.compile(pattern).programSize();
  } catch {
    return undefined;
  }
}

const atom = fc.constantFrom(
  'a',
  'xy',
  '.',
  '\\d',
  '\\pL',
  '\\p{Greek}',
  '[a-z]',
  '[^\\]x]',
  '[]a]',
  '[[:alpha:]_]',
  '\\x{41}',
  '\\x41',
  '\\{',
  '{',
  '\\Qa{9}b\\E',
  '\\b',
  '^',
  '$',
  '(?i)',
);
const repetition = fc.constantFrom(
  '',
  '',
  '',
  '*',
  '+?',
  '?',
  '{3}',
  '{2,}',
  '{0,7}',
  '{1,30}',
  '{12}?',
  '{,4}',
  '{0}',
);
const { pattern } = fc.letrec<{ pattern: string; part: string }>((tie) => ({
  part: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.tuple(atom, repetition).map(([a, r]) => a + r),
    fc
      .tuple(fc.constantFrom('(', '(?:', '(?i:', '(?P<name>', '(?<name>'), tie('pattern'), repetition)
      .map(([o, p, r]) => `${o}${p})${r}`),
  ),
  pattern: fc
    .array(tie('part'), { minLength: 1, maxLength: 4 })
    .chain((parts) => fc.constantFrom('', '', '|').map((glue) => parts.join(glue))),
}));

describe('the size of a program, estimated from its pattern', () => {
  it('is at least half of what the pattern compiles to, however it is put together', () => {
    fc.assert(
      fc.property(pattern, (text) => {
        const size = compiledSize(text);
        fc.pre(size !== undefined);
        expect(estimateProgramSize(text), text).toBeGreaterThanOrEqual(size / 2);
      }),
      { numRuns: 500 },
    );
  });

  it('is about right for patterns that people write, and for those that are long in few characters', () => {
    const patterns = [
      '(?i)secret',
      '\\b\\d{3}-\\d{2}-\\d{4}\\b',
      '(?i)\\b(password|passwd|secret)\\b\\s*[:=]\\s*\\S{8,64}',
      '\\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,255}\\.[A-Za-z]{2,}',
      '(\\pL|\\d|_){1,500}$',
      '(.{1,30}){1,30}x',
      'a{1000}'.repeat(73),
    ];
    for (const text of patterns) {
      const size = compiledSize(text) ?? 0;
      const estimate = estimateProgramSize(text);
      expect(estimate / size, `${text}: ${estimate} for ${size}`).toBeGreaterThan(0.9);
      expect(estimate / size, `${text}: ${estimate} for ${size}`).toBeLessThan(2.1);
    }
  });

  it('is estimated for any text, whether or not it is a pattern', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...'ab\\[](){}|*+?^:<>Pp1,9QE'), maxLength: 60 }),
        (text) => {
          expect(estimateProgramSize(text)).toBeGreaterThanOrEqual(2);
        },
      ),
    );
  });
});
