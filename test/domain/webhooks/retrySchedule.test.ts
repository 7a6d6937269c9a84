import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  attemptsMax,
  nextDelaySeconds,
  pauseSeconds,
  RETRY_DELAYS_SECONDS,
} from '../../../domain/webhooks/retrySchedule.js';

const RANDOM = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const RETRY_AFTER = fc.option(fc.integer({ min: 0, max: 999_999_999 }), { nil: null });

describe('the retry schedule', () => {
  it('makes ten attempts over a little more than 75 hours', () => {
    expect(attemptsMax()).toBe(10);
    const delays = Array.from({ length: 10 }, (_, made) => nextDelaySeconds(made + 1, { random: 0 }));
    expect(delays).toEqual([5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400, null]);
    const hours = RETRY_DELAYS_SECONDS.reduce((sum, seconds) => sum + seconds, 0) / 3_600;
    expect(Math.floor(hours)).toBe(75);
  });

  it('waits at least its nominal delay and at most a tenth longer, whatever the random number', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), RANDOM, (attempts, random) => {
        const delay = RETRY_DELAYS_SECONDS[attempts - 1] as number;
        const next = nextDelaySeconds(attempts, { random });
        expect(next).toBeGreaterThanOrEqual(delay);
        expect(next).toBeLessThanOrEqual(delay * 1.1);
      }),
    );
  });

  it('a receiver may put the next attempt off up to the next wait of the schedule, never bring it forward, never add one', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 30 }),
        RETRY_AFTER,
        RANDOM,
        (attempts, retryAfterSeconds, random) => {
          const without = nextDelaySeconds(attempts, { random });
          const next = nextDelaySeconds(attempts, { retryAfterSeconds, random });
          expect(next === null).toBe(without === null);
          if (without === null || next === null) return;
          const following = RETRY_DELAYS_SECONDS[attempts] ?? (RETRY_DELAYS_SECONDS.at(-1) as number);
          expect(next).toBeGreaterThanOrEqual(without);
          expect(next).toBeLessThanOrEqual(following * 1.1);
          if (retryAfterSeconds !== null && retryAfterSeconds <= following)
            expect(next).toBeGreaterThanOrEqual(retryAfterSeconds);
        },
      ),
    );
  });

  it('a whole series ends within 110 hours even when every answer asks for more', () => {
    let seconds = 0;
    for (let attempts = 1; ; attempts += 1) {
      const next = nextDelaySeconds(attempts, { retryAfterSeconds: 999_999_999, random: 0.999 });
      if (next === null) break;
      seconds += next;
    }
    expect(seconds / 3_600).toBeLessThan(110);
  });

  it('a receiver is left alone for as long as it asks, for an hour at most', () => {
    expect(pauseSeconds(null)).toBe(0);
    expect(pauseSeconds(90)).toBe(90);
    expect(pauseSeconds(86_400)).toBe(3_600);
  });
});
