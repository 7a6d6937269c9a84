/** Bills without quantities: a difference that missing calls explain equally well is no mistake. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { propertyRuns } from '../../../../support/propertyRuns.js';
import {
  asClasses,
  asTotal,
  findingsOf,
  isBetween,
  part,
  type SeriesShape,
  scale,
  theFinding,
} from './support.js';

const WITHOUT_QUANTITIES = [
  ['amounts by class', asClasses],
  ['one amount a day', asTotal],
] as const;

/** Every class of the same share, each with a scatter of a percent. */
const seenOnDays =
  (share: number, isMissing: (at: number) => boolean): NonNullable<SeriesShape['seen']> =>
  (use, at) =>
    isMissing(at) ? part(use, share, (place) => 0.01 * Math.sin(at * 7 + place)) : use;

describe.each(WITHOUT_QUANTITIES)('%s', (_, input) => {
  it('right bills are accused of nothing, whatever share of the calls was seen for some days', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(0.5, 0.65, 0.8, 0.909, 1 / 1.1, 0.91, 0.95),
        fc.integer({ min: 0, max: 19 }),
        fc.integer({ min: 0, max: 8 }),
        (share, first, length) => {
          const seen = seenOnDays(share, (at) => isBetween(at, first, first + length));
          expect(findingsOf({ seen, input })).toEqual([]);
        },
      ),
      { numRuns: propertyRuns(10), seed: 3 },
    );
  });

  it('exactly twice what was seen is half of the calls, and no rate of a tier', () => {
    expect(
      findingsOf({ bill: (lines, at) => (isBetween(at, 8, 12) ? scale(lines, 2n, 1n) : lines), input }),
    ).toEqual([]);
  });

  it('a bill below the cost of what was seen cannot come from missing calls: it is reported', () => {
    const findings = findingsOf({
      bill: (lines, at) => (isBetween(at, 8, 12) ? scale(lines, 1n, 2n) : lines),
      input,
    });
    expect(theFinding(findings).direction).toBe('undercharge');
    expect(['LOW', 'UNVERIFIED']).toContain(theFinding(findings).grade);
  });
});

describe('one amount a day', () => {
  it('makes nothing surer than six in ten, on however many days: too many explanations fit one total', () => {
    for (const days of [5, 12]) {
      const isHalf = (at: number) => isBetween(at, 4, 3 + days);
      const [finding] = findingsOf({
        bill: (lines, at) => (isHalf(at) ? scale(lines, 1n, 2n) : lines),
        input: asTotal,
      });
      expect(finding?.days.length).toBe(days);
      expect(finding?.probability).toBeLessThanOrEqual(0.6);
    }
  });

  it('shows no overcharge at all: some share of the calls explains every amount', () => {
    fc.assert(
      fc.property(fc.integer({ min: 101, max: 400 }), fc.integer({ min: 1, max: 15 }), (percent, first) => {
        const bill: SeriesShape['bill'] = (lines, at) =>
          isBetween(at, first, first + 3) ? scale(lines, BigInt(percent), 100n) : lines;
        expect(findingsOf({ bill, input: asTotal })).toEqual([]);
      }),
      { numRuns: propertyRuns(8), seed: 5 },
    );
  });
});

describe('amounts by class', () => {
  it('ten of eleven calls of a thousand leave classes that differ: the exact same ratio in each is LOW at most', () => {
    const findings = findingsOf({
      bill: (lines, at) => (isBetween(at, 8, 12) ? scale(lines, 11n, 10n) : lines),
      input: asClasses,
    });
    for (const { grade } of findings) expect(['LOW', 'UNVERIFIED']).toContain(grade);
  });

  it('one class at the rate of another is found where it begins and ends, at MEDIUM at most', () => {
    const finding = theFinding(
      findingsOf({
        bill: (lines, at) => (isBetween(at, 8, 12) ? scale(lines, 10n, 1n, ['cache_read']) : lines),
        input: asClasses,
      }),
    );
    expect([finding.kind, finding.blame]).toEqual(['cache_read_rate_mismatch', 'provider']);
    expect(['MEDIUM', 'LOW']).toContain(finding.grade);
  });
});
