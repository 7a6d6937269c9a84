import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { perSecond, type Rate, TokenBucket } from '../../../domain/access/rate.js';

const rates: fc.Arbitrary<Rate> = fc.record({
  quota: fc.integer({ min: 1, max: 10_000 }),
  windowSeconds: fc.constantFrom(1, 60, 3_600),
  burst: fc.integer({ min: 1, max: 10_000 }),
});
/** Takings, each some time after the one before. */
const takings = fc.array(
  fc.record({ afterMs: fc.nat({ max: 120_000 }), cost: fc.integer({ min: 1, max: 50 }) }),
  { minLength: 1, maxLength: 80 },
);
/** Floating-point tolerance, in tokens. */
const TOLERANCE = 1e-6;

interface Taken {
  atMs: number;
  cost: number;
}

function takeAll(rate: Rate, wanted: readonly { afterMs: number; cost: number }[]): Taken[] {
  const bucket = new TokenBucket(rate, 0);
  const taken: Taken[] = [];
  let nowMs = 0;
  for (const { afterMs, cost } of wanted) {
    nowMs += afterMs;
    if (bucket.take(cost, nowMs)) taken.push({ atMs: nowMs, cost });
  }
  return taken;
}

/** The largest excess of taken tokens over the rule in any window. */
function worstExcess(rate: Rate, taken: readonly Taken[]): number {
  let worst = Number.NEGATIVE_INFINITY;
  taken.forEach((first, from) => {
    let sum = 0;
    for (const { atMs, cost } of taken.slice(from)) {
      sum += cost;
      worst = Math.max(worst, sum - rate.burst - ((atMs - first.atMs) / 1_000) * perSecond(rate));
    }
  });
  return worst;
}

describe('a token bucket', () => {
  it('grants at most burst + t · quota/window in any t seconds', () => {
    fc.assert(
      fc.property(rates, takings, (rate, wanted) => {
        const fitting = wanted.map((one) => ({ ...one, cost: Math.min(one.cost, rate.burst) }));
        expect(worstExcess(rate, takeAll(rate, fitting))).toBeLessThanOrEqual(TOLERANCE);
      }),
    );
  });

  it('grants what it refused once the time that it named is over, and not before', () => {
    fc.assert(
      fc.property(rates, takings, (rate, wanted) => {
        const bucket = new TokenBucket(rate, 0);
        let nowMs = 0;
        for (const { afterMs, cost } of wanted) {
          nowMs += afterMs;
          if (bucket.take(cost, nowMs)) continue;
          const waitMs = bucket.waitSeconds(cost, nowMs) * 1_000;
          expect(waitMs).toBeGreaterThan(0);
          expect(bucket.canTake(cost, nowMs + waitMs * 0.99)).toBe(false);
          nowMs += waitMs * 0.99;
          nowMs += waitMs * 0.01 + 0.01;
          expect(bucket.take(cost, nowMs)).toBe(true);
        }
      }),
    );
  });

  it('is full after the time of a whole refill, and never more than full', () => {
    fc.assert(
      fc.property(rates, takings, (rate, wanted) => {
        const bucket = new TokenBucket(rate, 0);
        let nowMs = 0;
        for (const { afterMs, cost } of wanted) {
          nowMs += afterMs;
          bucket.take(Math.min(cost, rate.burst), nowMs);
          expect(bucket.tokensAt(nowMs)).toBeLessThanOrEqual(rate.burst);
        }
        nowMs += (rate.burst / perSecond(rate)) * 1_000 + 1;
        expect(bucket.tokensAt(nowMs)).toBe(rate.burst);
      }),
    );
  });

  it('that is full grants a batch larger than itself, and repays it before it grants anything again', () => {
    const rate = { quota: 60, windowSeconds: 60, burst: 100 };
    const bucket = new TokenBucket(rate, 0);
    expect(bucket.take(250, 0)).toBe(true);
    expect(bucket.tokensAt(0)).toBe(-150);
    expect(bucket.waitSeconds(1, 0)).toBe(151);
    expect(bucket.take(1, 150_000)).toBe(false);
    expect(bucket.take(1, 151_000)).toBe(true);
    expect(bucket.take(250, 240_000)).toBe(false);
    expect(bucket.take(250, 252_000)).toBe(true);
  });

  it('takes back what was not used, up to its size', () => {
    const bucket = new TokenBucket({ quota: 1, windowSeconds: 3_600, burst: 2 }, 0);
    bucket.take(2, 0);
    expect(bucket.take(1, 0)).toBe(false);
    bucket.giveBack(1);
    expect(bucket.take(1, 0)).toBe(true);
    bucket.giveBack(5);
    expect(bucket.tokensAt(0)).toBe(2);
  });

  it('grants nothing for a clock that runs back', () => {
    const bucket = new TokenBucket({ quota: 1, windowSeconds: 1, burst: 1 }, 10_000);
    expect(bucket.take(1, 10_000)).toBe(true);
    expect(bucket.take(1, 0)).toBe(false);
    expect(bucket.take(1, 10_500)).toBe(false);
    expect(bucket.take(1, 11_000)).toBe(true);
  });
});
