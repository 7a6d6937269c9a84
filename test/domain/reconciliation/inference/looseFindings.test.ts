import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Finding } from '../../../../domain/reconciliation/inference/finding.js';
import { findingsOf, isBetween, linesFor, part } from './support.js';

/** On some days as much more input as this share of the cached tokens, of which the clients tell a part. */
const doubled = (days: number, doubledShare: number, seenShare: number): Finding[] =>
  findingsOf({
    bill: (lines, at, use) =>
      isBetween(at, 4, 3 + days)
        ? linesFor({ ...use, input: use.input + Math.round(use.cache_read * doubledShare) })
        : lines,
    seen: (use, at) => (isBetween(at, 4, 3 + days) ? part(use, seenShare) : use),
  });

const isLoose = ({ missing }: Finding) => missing.includes('residual_within_tolerance') && missing.length > 1;

describe('an explanation that leaves too much over and lacks something else', () => {
  it('is hardly more probable than not, however it compares with the others', () => {
    let loose = 0;
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.double({ min: 0.7, max: 1.3, noNaN: true }),
        fc.double({ min: 0.5, max: 1, noNaN: true }),
        (days, doubledShare, seenShare) => {
          for (const finding of doubled(days, doubledShare, seenShare).filter(isLoose)) {
            loose += 1;
            expect(finding.probability).toBeLessThanOrEqual(0.55);
          }
        },
      ),
      { numRuns: 60, seed: 11 },
    );
    expect(loose).toBeGreaterThan(0);
  });

  it('which fits to the last token stays as sure as it was', () => {
    const [finding] = doubled(5, 1, 1);
    expect([finding?.kind, finding?.grade, finding?.missing]).toEqual([
      'cached_tokens_double_metered',
      'HIGH',
      [],
    ]);
  });
});
