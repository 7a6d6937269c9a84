import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BucketName,
  RateLimiter,
  type RateStore,
  type Verdict,
} from '../../../api/limits/rateLimiter.js';
import { perSecond, type Rate } from '../../../domain/access/rate.js';

const KEY: BucketName = { orgId: 'o', subject: 'key_1', policy: 'default' };
const RATE: Rate = { quota: 600, windowSeconds: 60, burst: 100 };

/** The shared bucket in memory, by the test's clock, with the rule of the table's statement. */
class MemoryStore implements RateStore {
  leases = 0;
  failing = false;
  hanging = false;
  readonly #buckets = new Map<string, { tokens: number; atMs: number }>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  async lease(bucket: BucketName, ask: { rate: Rate; cost: number; wanted: number; returned: number }) {
    this.leases += 1;
    if (this.hanging) return new Promise<never>(() => undefined);
    if (this.failing) throw new Error('no table');
    const id = `${bucket.subject} ${bucket.policy}`;
    const { rate, cost, wanted, returned } = ask;
    const nowMs = this.#nowMs();
    const state = this.#buckets.get(id) ?? { tokens: rate.burst, atMs: nowMs };
    const refilled = ((nowMs - state.atMs) / 1_000) * perSecond(rate);
    const available = Math.min(rate.burst, state.tokens + returned + refilled);
    const granted =
      available >= Math.min(cost, rate.burst) ? Math.max(cost, Math.min(wanted, Math.floor(available))) : 0;
    this.#buckets.set(id, { tokens: available - granted, atMs: nowMs });
    return { granted, tokens: available - granted };
  }
}

function setUp(instances = 1) {
  const clock = { nowMs: 0 };
  const nowMs = () => clock.nowMs;
  const store = new MemoryStore(nowMs);
  const failures: unknown[] = [];
  const onStoreFailure = (error: unknown) => void failures.push(error);
  const limiters = Array.from(
    { length: instances },
    () => new RateLimiter({ store, storeLimitMs: 250, nowMs, onStoreFailure }),
  );
  return { clock, store, failures, limiters, limiter: limiters[0] as RateLimiter };
}

async function countGranted(limiter: RateLimiter, times: number, rate = RATE, cost = 1): Promise<number> {
  let granted = 0;
  for (let index = 0; index < times; index += 1)
    if ((await limiter.take(KEY, rate, cost)).isGranted) granted += 1;
  return granted;
}

describe('the limiter of an instance', () => {
  it('grants exactly the burst at once, then as much as the rate refills', async () => {
    const { limiter, clock } = setUp();
    expect(await countGranted(limiter, 150)).toBe(100);
    clock.nowMs += 1_000;
    expect(await countGranted(limiter, 50)).toBe(10);
    clock.nowMs += 3_600_000;
    expect(await countGranted(limiter, 150)).toBe(100);
  });

  it('states what is left: that many are granted at once, and the next one is not', async () => {
    const { limiter } = setUp();
    await countGranted(limiter, 37);
    const { remaining } = await limiter.take(KEY, RATE);
    expect(remaining).toBe(62);
    expect(await countGranted(limiter, 100)).toBe(remaining);
  });

  it('grants again after the time that a refusal names', async () => {
    const { limiter, clock } = setUp();
    await countGranted(limiter, 100);
    const refused = await limiter.take(KEY, RATE);
    expect(refused).toMatchObject({ isGranted: false, remaining: 0 });
    clock.nowMs += refused.waitSeconds * 1_000 - 1;
    expect((await limiter.take(KEY, RATE)).isGranted).toBe(false);
    clock.nowMs += 2;
    expect((await limiter.take(KEY, RATE)).isGranted).toBe(true);
  });

  it('decides at once and asks the store for one request in several, not for refused ones', async () => {
    const { limiter, store } = setUp();
    await limiter.take(KEY, RATE);
    const verdicts = Array.from({ length: 3 }, () => limiter.take(KEY, RATE));
    expect(verdicts.every((verdict) => !(verdict instanceof Promise))).toBe(true);
    await countGranted(limiter, 96);
    expect(store.leases).toBeLessThanOrEqual(40);
    await countGranted(limiter, 1);
    const before = store.leases;
    expect(await countGranted(limiter, 1_000)).toBe(0);
    expect(store.leases).toBe(before);
  });

  it('refuses none of many that come at once while there are tokens', async () => {
    const { limiter } = setUp();
    const verdicts = await Promise.all(Array.from({ length: 130 }, () => limiter.take(KEY, RATE)));
    expect(verdicts.filter((verdict) => verdict.isGranted)).toHaveLength(100);
  });

  it('counts each key and each policy for itself', async () => {
    const { limiter } = setUp();
    await countGranted(limiter, 100);
    for (const other of [
      { ...KEY, subject: 'key_2' },
      { ...KEY, policy: 'writes' },
    ])
      expect((await limiter.take(other, RATE)).isGranted).toBe(true);
  });

  it('grants a batch larger than the bucket from a full bucket only', async () => {
    const { limiter, clock } = setUp();
    const rate = { quota: 60, windowSeconds: 60, burst: 60 };
    await limiter.take(KEY, rate, 1);
    expect((await limiter.take(KEY, rate, 90)).isGranted).toBe(false);
    clock.nowMs += 2_000;
    expect((await limiter.take(KEY, rate, 90)).isGranted).toBe(true);
    const owing = await limiter.take(KEY, rate, 1);
    expect(owing).toMatchObject({ isGranted: false, remaining: 0 });
    expect(owing.waitSeconds).toBeCloseTo(31);
  });

  it('counts nothing for refunded tokens', async () => {
    const { limiter } = setUp();
    const rate = { quota: 2, windowSeconds: 3_600, burst: 2 };
    for (let index = 0; index < 20; index += 1) {
      expect((await limiter.take(KEY, rate)).isGranted).toBe(true);
      limiter.giveBack(KEY, rate, 1);
    }
    expect(await countGranted(limiter, 5, rate)).toBe(2);
  });
});

describe('without its store', () => {
  it('each instance continues with a bucket of its own, of the full rate', async () => {
    const { limiter, store, failures, clock } = setUp();
    store.failing = true;
    expect(await countGranted(limiter, 150)).toBe(100);
    clock.nowMs += 1_000;
    expect(await countGranted(limiter, 50)).toBe(10);
    expect(failures).toHaveLength(1);
  });

  it('tokens granted before the failure still count: the failure refills nothing', async () => {
    const { limiter, store } = setUp();
    expect(await countGranted(limiter, 60)).toBe(60);
    store.failing = true;
    expect(await countGranted(limiter, 100)).toBe(40);
  });

  it('a store that does not answer holds a request up for a moment, not those after it', async () => {
    const { limiter, store } = setUp();
    store.hanging = true;
    expect((await limiter.take(KEY, RATE)).isGranted).toBe(true);
    expect(limiter.take(KEY, RATE)).not.toBeInstanceOf(Promise);
    expect(await countGranted(limiter, 150)).toBe(98);
  });

  it('the shared buckets are taken up again when it is back', async () => {
    const { limiter, store, clock } = setUp();
    store.failing = true;
    await countGranted(limiter, 5);
    store.failing = false;
    clock.nowMs += 2_001;
    const before = store.leases;
    await countGranted(limiter, 5);
    expect(store.leases).toBeGreaterThan(before);
  });
});

describe('several instances with one store', () => {
  const steps = fc.array(
    fc.record({
      instance: fc.nat({ max: 2 }),
      afterMs: fc.nat({ max: 3_000 }),
      requests: fc.integer({ min: 1, max: 60 }),
    }),
    { minLength: 1, maxLength: 60 },
  );
  const rates = fc.record({
    quota: fc.integer({ min: 1, max: 3_000 }),
    windowSeconds: fc.constantFrom(1, 60, 3_600),
    burst: fc.integer({ min: 1, max: 400 }),
  });

  it('grant together at most burst + t · quota/window, and in any window what they held at its beginning besides', async () => {
    await fc.assert(
      fc.asyncProperty(rates, steps, async (rate, moves) => {
        const { limiters, clock } = setUp(3);
        const granted: { atMs: number; count: number }[] = [];
        for (const { instance, afterMs, requests } of moves) {
          clock.nowMs += afterMs;
          const limiter = limiters[instance] as RateLimiter;
          granted.push({ atMs: clock.nowMs, count: await countGranted(limiter, requests, rate) });
        }
        const held = 3 * 1.5 * Math.max(1, Math.floor(rate.burst / 20));
        granted.forEach((first, from) => {
          let sum = 0;
          for (const { atMs, count } of granted.slice(from)) {
            sum += count;
            const allowed = rate.burst + ((atMs - first.atMs) / 1_000) * perSecond(rate);
            // At the very beginning no instance held tokens.
            expect(sum).toBeLessThanOrEqual(allowed + (from === 0 ? 0 : held) + 1e-6);
          }
        });
      }),
    );
  });

  it('grant together no less than the burst, except for what the others hold', async () => {
    await fc.assert(
      fc.asyncProperty(
        rates,
        fc.array(fc.nat({ max: 2 }), { minLength: 500, maxLength: 500 }),
        async (rate, order) => {
          const { limiters } = setUp(3);
          let granted = 0;
          for (const instance of order) {
            const verdict: Verdict = await (limiters[instance] as RateLimiter).take(KEY, rate);
            if (verdict.isGranted) granted += 1;
          }
          const held = 2 * 1.5 * Math.max(1, Math.floor(rate.burst / 20));
          expect(granted).toBeLessThanOrEqual(rate.burst);
          expect(granted).toBeGreaterThanOrEqual(Math.min(500, rate.burst - held));
        },
      ),
      { numRuns: 30 },
    );
  });
});
