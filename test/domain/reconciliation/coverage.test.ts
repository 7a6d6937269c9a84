import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BilledClass, QUANTITY_ONE } from '../../../domain/billing/billedRow.js';
import type { TokenClass } from '../../../domain/events/event.js';
import {
  addCoverage,
  type BilledKeyDay,
  coverageByKey,
  coverageOfBuckets,
  dollarShare,
  noCoverage,
  type ObservedKeyDay,
  tokenShare,
  tokensOf,
} from '../../../domain/reconciliation/coverage.js';
import type { ClassLine, GapBucket } from '../../../domain/reconciliation/matching/cells.js';

const line = (
  tokenClass: BilledClass,
  billed: bigint | null,
  observed: bigint,
  billedPico = 1n,
): ClassLine => ({
  tokenClass,
  billedQuantity: billed === null ? null : billed * QUANTITY_ONE,
  observedQuantity: observed * QUANTITY_ONE,
  billedPico,
  expectedOfBilledPico: null,
  expectedOfObservedPico: null,
  split: 'bill',
  rows: 1,
});

const tokens = (lines: ClassLine[]) => {
  const { billed, observed, covered } = tokensOf(lines);
  const whole = (quantity: bigint | null) => (quantity === null ? null : quantity / QUANTITY_ONE);
  return [whole(billed), whole(observed), whole(covered)];
};

describe('tokens of a bucket', () => {
  it('covered are those that both sides have, class by class: a surplus of one makes up for no other', () => {
    expect(tokens([line('input', 10n, 14n), line('output', 10n, 4n)])).toEqual([20n, 18n, 14n]);
  });

  it('are unknown where a charge is not counted', () => {
    expect(tokens([line('input', 10n, 10n), line('output', null, 4n)])).toEqual([null, 14n, null]);
    expect(tokens([line('other', null, 0n), line('input', 0n, 7n, 0n)])).toEqual([null, 7n, null]);
    expect(tokens([])).toEqual([null, null, null]);
  });

  it('are not made of requests', () => {
    expect(tokens([line('requests', 3n, 0n, 0n), line('input', 5n, 5n)])).toEqual([5n, 5n, 5n]);
  });
});

const NO_TOKENS = {
  input: 0n,
  cache_read: 0n,
  cache_write_5m: 0n,
  cache_write_1h: 0n,
  output: 0n,
  input_audio: 0n,
  output_audio: 0n,
};

const aBucket = fc.record({
  accountId: fc.constantFrom('a', 'b'),
  model: fc.constantFrom('m', 'n'),
  reason: fc.constantFrom(
    null,
    'not_observable',
    'not_yet_observed',
    'free_allowance',
    'not_in_cost_report',
    'unbilled',
  ),
  providerCostPico: fc.bigInt({ min: -5n, max: 1_000n }),
  matched: fc.bigInt({ min: 0n, max: 1_000n }),
  lines: fc.array(
    fc
      .tuple(
        fc.constantFrom<BilledClass>('input', 'output', 'requests', 'other'),
        fc.option(fc.bigInt({ min: 0n, max: 50n })),
        fc.bigInt({ min: 0n, max: 50n }),
      )
      .map(([name, billed, observed]) => line(name, billed, observed)),
    { maxLength: 4 },
  ),
});

const bucketOf = (drawn: typeof aBucket extends fc.Arbitrary<infer T> ? T : never): GapBucket =>
  ({
    ...drawn,
    width: 'day',
    eventCount: 1,
    matchedPico: drawn.matched < drawn.providerCostPico ? drawn.matched : drawn.providerCostPico,
  }) as unknown as GapBucket;

describe('coverage', () => {
  it('sums: of models to the total, of its parts to what was billed; shares lie from 0 to 1', () => {
    fc.assert(
      fc.property(fc.array(aBucket, { maxLength: 12 }), (drawn) => {
        const buckets = drawn.map(bucketOf);
        const { models, totals } = coverageOfBuckets(buckets);
        const sum = noCoverage();
        for (const { figures } of models) addCoverage(sum, figures);
        expect(sum).toEqual(totals);
        expect(totals.billedPico).toBe(buckets.reduce((all, one) => all + one.providerCostPico, 0n));
        for (const figures of [totals, ...models.map((model) => model.figures)]) {
          expect(figures.billedPico).toBe(
            figures.explainedPico +
              figures.notMatchedPico +
              figures.notObservablePico +
              figures.notYetObservedPico +
              figures.notComparedPico,
          );
          for (const share of [tokenShare(figures), dollarShare(figures)])
            expect(share === null || (share >= 0 && share <= 1)).toBe(true);
        }
        expect(coverageOfBuckets([...buckets].reverse())).toEqual({ models, totals });
      }),
    );
  });

  it('of nothing is unknown', () => {
    expect([tokenShare(noCoverage()), dollarShare(noCoverage())]).toEqual([null, null]);
  });
});

describe('coverage by key', () => {
  const billed = (key: string, day: string, quantity: bigint | null, pico = 10n): BilledKeyDay => ({
    provider: 'openai',
    providerKeyId: key,
    day,
    billedPico: pico,
    notObservablePico: 0n,
    quantities: [
      { tokenClass: 'input' as TokenClass, quantity: quantity === null ? null : quantity * QUANTITY_ONE },
    ],
  });
  const observed = (key: string, day: string, input: bigint, computedPico = 10n): ObservedKeyDay => ({
    provider: 'openai',
    providerKeyId: key,
    day,
    calls: 1,
    tokens: { ...NO_TOKENS, input },
    computedPico,
  });
  const ALWAYS = new Map([['openai', 0n]]);
  const of = (groups: ReturnType<typeof coverageByKey>, key: string) =>
    groups.find(({ providerKeyId }) => providerKeyId === key)?.figures;

  it('compares the days of a key; what one day has too much makes up for no other', () => {
    const groups = coverageByKey(
      [billed('k', '2026-03-01', 10n), billed('k', '2026-03-02', 10n)],
      [observed('k', '2026-03-01', 20n, 30n)],
      ALWAYS,
    );
    expect(of(groups, 'k')).toMatchObject({
      billedTokens: 20n * QUANTITY_ONE,
      observedTokens: 20n * QUANTITY_ONE,
      coveredTokens: 10n * QUANTITY_ONE,
      explainedPico: 10n,
      notMatchedPico: 10n,
    });
  });

  it('an amount that is billed to no key, or while no call names any, is compared with nothing', () => {
    const groups = coverageByKey(
      [billed('', '2026-03-01', 10n), billed('k', '2026-03-01', 10n)],
      [observed('', '2026-03-01', 20n)],
      ALWAYS,
    );
    for (const key of ['', 'k']) {
      expect(of(groups, key)).toMatchObject({ notComparedPico: 10n, billedTokens: 0n });
      expect(tokenShare(of(groups, key) ?? noCoverage())).toBe(null);
    }
  });

  it('days before the first call are in no share, and days without a bill nowhere', () => {
    const groups = coverageByKey(
      [billed('k', '2026-03-01', 10n)],
      [observed('k', '2026-03-05', 5n)],
      new Map([['openai', 10n ** 18n]]),
    );
    expect(of(groups, 'k')).toMatchObject({
      notYetObservedPico: 10n,
      billedTokens: 0n,
      observedTokens: 0n,
      calls: 0,
    });
  });

  it('a charge that is not counted is in the dollars and in no share of tokens', () => {
    const groups = coverageByKey(
      [billed('k', '2026-03-01', null)],
      [observed('k', '2026-03-01', 5n)],
      ALWAYS,
    );
    expect(of(groups, 'k')).toMatchObject({ explainedPico: 10n, uncountedPico: 10n, billedTokens: 0n });
  });
});
