import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkCoverage, type Span } from '../../../domain/billing/coverage.js';
import { MICROS_PER_DAY } from '../../../domain/period.js';

const HOUR = MICROS_PER_DAY / 24n;
const FIRST = 20_000n * MICROS_PER_DAY;
const span = (from: bigint, to: bigint, unit = MICROS_PER_DAY): Span => ({
  startMicros: FIRST + from * unit,
  endMicros: FIRST + to * unit,
});
/** Buckets that cover `count` units whole. */
const bucketsOf = (count: number, unit: bigint) =>
  Array.from({ length: count }, (_, at) => span(BigInt(at), BigInt(at) + 1n, unit));
const LATER = FIRST + 1_000n * MICROS_PER_DAY;

const plans = fc.record({
  days: fc.integer({ min: 1, max: 40 }),
  unit: fc.constantFrom(HOUR, MICROS_PER_DAY),
});

describe('the coverage of a chunk', () => {
  it('is complete when its buckets cover it once and whole, in whatever order they come', () => {
    fc.assert(
      fc.property(plans, fc.nat(), ({ days, unit }, turn) => {
        const count = unit === HOUR ? days * 24 : days;
        const buckets = bucketsOf(count, unit);
        const at = turn % count;
        const turned = [...buckets.slice(at), ...buckets.slice(0, at)];
        expect(checkCoverage(span(0n, BigInt(days)), turned, LATER)).toEqual({ outcome: 'complete' });
      }),
    );
  });

  it('is never complete when one bucket of an ended day is lost or comes twice', () => {
    fc.assert(
      fc.property(plans, fc.nat(), fc.boolean(), ({ days, unit }, pick, isLost) => {
        const count = unit === HOUR ? days * 24 : days;
        const buckets = bucketsOf(count, unit);
        const bucket = buckets[pick % count] as Span;
        const told = isLost ? buckets.filter((one) => one !== bucket) : [...buckets, bucket];
        expect(checkCoverage(span(0n, BigInt(days)), told, LATER)).toEqual({
          outcome: isLost ? 'missing' : 'duplicate',
          spans: [bucket],
        });
      }),
    );
  });

  it('does not take an hour beside its own day', () => {
    const buckets = [...bucketsOf(2, MICROS_PER_DAY), span(5n, 6n, HOUR)];
    expect(checkCoverage(span(0n, 2n), buckets, LATER).outcome).toBe('duplicate');
  });

  it('does not take two buckets that share a microsecond', () => {
    const [first, second] = bucketsOf(2, MICROS_PER_DAY) as [Span, Span];
    const early = { ...second, startMicros: second.startMicros - 1n };
    expect(checkCoverage(span(0n, 2n), [first, early], LATER)).toEqual({
      outcome: 'duplicate',
      spans: [early],
    });
  });

  it('does not take what was not asked for', () => {
    const buckets = bucketsOf(3, MICROS_PER_DAY);
    expect(checkCoverage(span(0n, 2n), buckets, LATER)).toEqual({ outcome: 'outside', spans: [buckets[2]] });
    expect(checkCoverage(span(1n, 3n), buckets, LATER)).toEqual({ outcome: 'outside', spans: [buckets[0]] });
    const backwards = { startMicros: FIRST + HOUR, endMicros: FIRST };
    expect(checkCoverage(span(0n, 1n), [backwards], LATER).outcome).toBe('outside');
  });

  it('asks nothing of days that have not ended, and everything of those that have', () => {
    const now = FIRST + 2n * MICROS_PER_DAY + 5n * HOUR;
    const window = span(0n, 5n);
    expect(checkCoverage(window, bucketsOf(2, MICROS_PER_DAY), now)).toEqual({ outcome: 'complete' });
    expect(checkCoverage(window, bucketsOf(53, HOUR), now)).toEqual({ outcome: 'complete' });
    const cut = [
      ...bucketsOf(2, MICROS_PER_DAY),
      { startMicros: FIRST + 2n * MICROS_PER_DAY, endMicros: now },
    ];
    expect(checkCoverage(window, cut, now)).toEqual({ outcome: 'complete' });
    expect(checkCoverage(window, bucketsOf(1, MICROS_PER_DAY), now)).toEqual({
      outcome: 'missing',
      spans: [span(1n, 2n)],
    });
    expect(checkCoverage(window, [], now)).toEqual({ outcome: 'missing', spans: [span(0n, 2n)] });
    expect(checkCoverage(span(3n, 5n), [], now)).toEqual({ outcome: 'complete' });
  });
});
