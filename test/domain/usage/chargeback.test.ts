import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { centsFromPico, PICO_PER_USD } from '../../../domain/money.js';
import { apportion, divideByWeights } from '../../../domain/usage/apportion.js';
import {
  ALLOCATIONS,
  type Allocation,
  type CalledSpend,
  chargeBack,
  type UncalledSpend,
} from '../../../domain/usage/chargeback.js';

const CENT = PICO_PER_USD / 100n;
const sumOf = (values: readonly bigint[]) => values.reduce((sum, value) => sum + value, 0n);
const abs = (value: bigint) => (value < 0n ? -value : value);

/** Amounts of many sizes: whole cents, halves, a pico more or less, and what a correction takes back. */
const amount = fc.oneof(
  fc.bigInt({ min: -5n * PICO_PER_USD, max: 900_000n * PICO_PER_USD }),
  fc.bigInt({ min: -3n, max: 2_000n }).map((halves) => (halves * CENT) / 2n),
  fc.bigInt({ min: -3n, max: 2_000n }).map((cents) => cents * CENT + 1n),
);

describe('the largest remainder', () => {
  it('rounds parts to a sum that is the rounded whole, each by less than one cent', () => {
    fc.assert(
      fc.property(fc.array(amount, { minLength: 1, maxLength: 60 }), (amounts) => {
        const total = centsFromPico(sumOf(amounts));
        const cents = apportion(amounts, CENT, total);
        expect(sumOf(cents)).toBe(total);
        for (const [at, part] of cents.entries()) {
          const exact = amounts[at] as bigint;
          expect(abs(part * CENT - exact) < CENT).toBe(true);
          if (exact % CENT === 0n) expect(part * CENT).toBe(exact);
        }
      }),
    );
  });

  it('keeps the order of the amounts, and prefers the first of equal ones', () => {
    fc.assert(
      fc.property(fc.array(amount, { minLength: 2, maxLength: 40 }), (amounts) => {
        const sorted = [...amounts].sort((a, b) => (a > b ? -1 : a < b ? 1 : 0));
        const cents = apportion(sorted, CENT, centsFromPico(sumOf(sorted)));
        for (let at = 1; at < cents.length; at += 1)
          expect((cents[at - 1] as bigint) >= (cents[at] as bigint)).toBe(true);
      }),
    );
    expect(apportion([CENT / 3n, CENT / 3n, CENT / 3n + 2n], CENT, 1n)).toEqual([0n, 0n, 1n]);
    expect(apportion([CENT / 2n, CENT / 2n], CENT, 1n)).toEqual([1n, 0n]);
  });

  it('divides a whole by weights without losing a part of it', () => {
    fc.assert(
      fc.property(
        amount,
        fc.array(fc.bigInt({ min: 0n, max: 10n ** 20n }), { minLength: 1, maxLength: 40 }),
        (whole, weights) => {
          const parts = divideByWeights(whole, weights);
          expect(sumOf(parts)).toBe(whole);
          const sum = sumOf(weights);
          if (sum > 0n)
            for (const [at, part] of parts.entries())
              expect(abs(part * sum - whole * (weights[at] as bigint)) < sum).toBe(true);
        },
      ),
    );
    expect(divideByWeights(10n, [0n, 0n, 0n])).toEqual([4n, 3n, 3n]);
  });
});

const spend: fc.Arbitrary<CalledSpend[]> = fc.uniqueArray(
  fc.record({
    key: fc.constantFrom('', 'a', 'b', 'c', 'd', '<other>', '<unset>'),
    costPico: amount,
    tokens: fc.nat(),
    rows: fc.nat(),
  }),
  { selector: ({ key }) => key, maxLength: 7 },
);
const uncalled: fc.Arbitrary<UncalledSpend[]> = fc.array(
  fc.record({
    key: fc.constantFrom(null, 'a', 'b', 'new'),
    unobservedPico: amount,
    feesPico: amount,
  }),
  { maxLength: 4 },
);
const wholeOf = (spends: readonly CalledSpend[]) => ({
  costPico: sumOf(spends.map(({ costPico }) => costPico)),
  tokens: spends.reduce((sum, { tokens }) => sum + tokens, 0),
  rows: spends.reduce((sum, { rows }) => sum + rows, 0),
});

describe('a chargeback', () => {
  it('sums to its total in cents and exactly, whatever is listed and allocated, by falling cost', () => {
    fc.assert(
      fc.property(
        spend,
        fc.nat({ max: 7 }),
        fc.constantFrom(...ALLOCATIONS),
        uncalled,
        (spends, listed, allocation, billed) => {
          const all = wholeOf(spends);
          const back = chargeBack(spends.slice(0, listed), all, allocation, billed);
          expect(sumOf(back.buckets.map(({ costCents }) => costCents))).toBe(back.totalCents);
          expect(centsFromPico(back.totalPico)).toBe(back.totalCents);
          expect(wholeOf(back.buckets)).toEqual(all);
          const pool = billed.map(({ unobservedPico, feesPico }) => unobservedPico + feesPico);
          const added = allocation === 'none' ? 0n : sumOf(pool);
          expect(back.totalPico).toBe(all.costPico + added);
          expect(sumOf(back.buckets.map(({ allocatedPico }) => allocatedPico))).toBe(added);
          for (const [at, bucket] of back.buckets.entries()) {
            const charged = bucket.costPico + bucket.allocatedPico;
            expect(abs(bucket.costCents * CENT - charged) < CENT).toBe(true);
            if (at > 0) expect(back.buckets[at - 1]?.costCents).toBeGreaterThanOrEqual(bucket.costCents);
          }
        },
      ),
    );
  });

  const calls: CalledSpend[] = [
    { key: 'a', costPico: 30n * PICO_PER_USD, tokens: 3, rows: 1 },
    { key: 'b', costPico: 10n * PICO_PER_USD, tokens: 1, rows: 1 },
    { key: '', costPico: 4n * PICO_PER_USD, tokens: 1, rows: 1 },
  ];
  const bill: UncalledSpend[] = [
    { key: null, unobservedPico: 3n * PICO_PER_USD, feesPico: 1n * PICO_PER_USD },
  ];
  const shares = (allocation: Allocation, spends = calls, billed = bill) =>
    Object.fromEntries(
      chargeBack(spends, wholeOf(spends), allocation, billed).buckets.map((bucket) => [
        bucket.key,
        [Number(bucket.costCents), Number(bucket.allocatedPico / CENT)],
      ]),
    );

  it('shares out calls without a value and spend without a call, by share or evenly', () => {
    expect(shares('none')).toEqual({ a: [3000, 0], b: [1000, 0], '<unset>': [400, 0] });
    expect(shares('by_share')).toEqual({ a: [3600, 600], b: [1200, 200], '<unset>': [0, -400] });
    expect(shares('even')).toEqual({ a: [3400, 400], b: [1400, 400], '<unset>': [0, -400] });
  });

  it('charges spend of a named value to that value, and makes a bucket for it', () => {
    const named = [{ key: 'c', unobservedPico: 2n * PICO_PER_USD, feesPico: 0n }];
    expect(shares('by_share', calls.slice(0, 2), named)).toEqual({
      a: [3000, 0],
      b: [1000, 0],
      c: [200, 200],
    });
  });

  it('leaves everything without a value where no call has one', () => {
    expect(shares('even', calls.slice(2))).toEqual({ '<unset>': [800, 400] });
    expect(shares('by_share', [])).toEqual({ '<unset>': [400, 400] });
    expect(shares('by_share', [], [])).toEqual({});
  });
});
