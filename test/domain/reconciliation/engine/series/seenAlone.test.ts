/** A wrong rate of one key or project, whose calls are the ones that were seen. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findingsOf, isBetween, part, type SeriesShape, type Use } from './support.js';

const isWrong = (at: number) => isBetween(at, 8, 12);

/** The part of the day's use that was seen: the other keys use each class in another proportion. */
const seenOf = (use: Use, share: number): Use => part(use, share, (place) => 0.1 * (place - 2));

/** Cached tokens cost $0.20 a million, and fresh ones $2.00. */
const dearer = (tokens: number): bigint => BigInt(tokens) * 1_800_000n;

/** Every line has all keys' tokens; on the wrong days `wrong` of the cached ones cost what fresh ones do. */
const shapeOf = (share: number, wrong: (seen: Use, use: Use) => number): SeriesShape => ({
  seen: (use) => seenOf(use, share),
  bill: (lines, at, use) => {
    if (!isWrong(at)) return lines;
    const { cache_read: line, ...rest } = lines;
    const amountPico = line.amountPico + dearer(wrong(seenOf(use, share), use));
    return { ...rest, cache_read: { ...line, amountPico } };
  },
});

const ratesOf = (shape: SeriesShape) =>
  findingsOf(shape).filter((one) => one.kind === 'cache_read_rate_mismatch');

describe('a rate that is wrong for the calls that were seen alone', () => {
  it('is found at HIGH with the dollars of exactly these calls, whatever share of the bill they are', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.1, max: 0.8, noNaN: true }), (share) => {
        let wrong = 0n;
        const shape = shapeOf(share, (seen) => {
          wrong += dearer(seen.cache_read);
          return seen.cache_read;
        });
        const [finding, ...more] = ratesOf(shape);
        expect(more).toEqual([]);
        expect(finding).toMatchObject({ grade: 'HIGH', missing: [], variant: 'input_rate' });
        expect(finding?.impactPico).toBe(wrong);
      }),
      { numRuns: 10 },
    );
  });

  it('is not concluded from a share of the tokens that is only near the calls’ own', () => {
    for (const finding of ratesOf(shapeOf(0.4, (seen) => seen.cache_read + 40_000)))
      expect(finding.grade).not.toBe('HIGH');
  });

  it('leaves a rate that is wrong for all keys as it was', () => {
    const [finding, ...more] = ratesOf(shapeOf(0.4, (_, use) => use.cache_read));
    expect(more).toEqual([]);
    expect(finding).toMatchObject({ grade: 'HIGH', variant: 'input_rate' });
  });
});
