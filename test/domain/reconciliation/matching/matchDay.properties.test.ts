import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evidenceFromJson, evidenceToJson } from '../../../../domain/reconciliation/evidence/evidenceText.js';
import type { DayInput, GapBucket } from '../../../../domain/reconciliation/matching/cells.js';
import { apportion } from '../../../../domain/reconciliation/matching/classLines.js';
import { matchDay } from '../../../../domain/reconciliation/matching/matchDay.js';
import { propertyRuns } from '../../../support/propertyRuns.js';
import { billedCells, observedCells, usageCells } from '../arbitraries.js';
import { aCoveredAccount, BOOK, DAY, DAY_MICROS, NOW } from '../support.js';

const RUNS = propertyRuns(100);
const days: fc.Arbitrary<DayInput> = fc.record({
  day: fc.constant(DAY),
  nowMicros: fc.constantFrom(NOW, DAY_MICROS),
  billed: fc.array(billedCells, { maxLength: 12 }),
  usage: fc.array(usageCells, { maxLength: 12 }),
  observed: fc.array(observedCells, { maxLength: 12 }),
  covered: fc.constantFrom([aCoveredAccount({ accountId: 'a' }), aCoveredAccount({ accountId: 'b' })]),
  sources: fc.constantFrom(
    ...[{}, { namedByAnswer: 2 }, { refused: 1 }, { namedByAnswer: 2, refused: 1 }].map((told) => {
      const source = { serviceName: 'checkout', calls: 3, callsWithoutCache: 3, ...told };
      return new Map([['', new Map([['gpt-5', [source]]])]]);
    }),
  ),
  observedSince: fc.constantFrom(new Map(), new Map([['a', 0n]]), new Map([['', DAY_MICROS + 1n]])),
  withHours: fc.boolean(),
});

const total = (values: readonly bigint[]) => values.reduce((sum, value) => sum + value, 0n);
const daysOf = (buckets: readonly GapBucket[]) => buckets.filter(({ width }) => width === 'day');

describe('whatever a day holds', () => {
  it('the buckets’ provider cost is the billed amount, to the pico-dollar', () => {
    fc.assert(
      fc.property(days, (input) => {
        const { buckets } = matchDay(BOOK, 'openai', input);
        expect(total(daysOf(buckets).map(({ providerCostPico }) => providerCostPico))).toBe(
          total(input.billed.map(({ amountPico }) => amountPico)),
        );
      }),
      { numRuns: RUNS },
    );
  });

  it('every gap is rate + volume + own pricing, to the pico-dollar, or is not decomposed at all', () => {
    fc.assert(
      fc.property(days, (input) => {
        for (const bucket of daysOf(matchDay(BOOK, 'openai', input).buckets)) {
          const { ratePico, volumePico, ownPricingPico } = bucket;
          const known = [ratePico, volumePico, ownPricingPico].filter((part) => part !== null);
          expect([0, 3]).toContain(known.length);
          if (known.length === 3) expect(total(known)).toBe(bucket.providerCostPico - bucket.ourCostPico);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('matched dollars lie between zero and the billed dollars, and unmatched days match none', () => {
    fc.assert(
      fc.property(days, (input) => {
        for (const bucket of matchDay(BOOK, 'openai', input).buckets) {
          expect(bucket.matchedPico >= 0n && bucket.matchedPico <= bucket.providerCostPico).toBe(true);
          if (bucket.matchStatus === 'unmatched')
            expect([bucket.matchedPico, bucket.confidenceScore, bucket.grade]).toEqual([
              0n,
              null,
              'UNVERIFIED',
            ]);
          else expect(bucket.confidenceScore).toBeGreaterThan(0);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('hours sum to their day, and no two buckets share a place', () => {
    fc.assert(
      fc.property(days, (input) => {
        const { buckets } = matchDay(BOOK, 'openai', input);
        const places = buckets.map(({ width, startMicros, accountId, model }) =>
          [width, startMicros, accountId, model].join('|'),
        );
        expect(new Set(places).size).toBe(places.length);
        for (const day of daysOf(buckets)) {
          const hours = buckets.filter(
            (one) => one.width === 'hour' && one.accountId === day.accountId && one.model === day.model,
          );
          if (hours.length > 0)
            expect(total(hours.map(({ providerCostPico }) => providerCostPico))).toBe(day.providerCostPico);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('nothing is flagged that is matched, provisional, or silent for a reason', () => {
    fc.assert(
      fc.property(days, (input) => {
        for (const bucket of matchDay(BOOK, 'openai', input).buckets) {
          if (!bucket.flagged) continue;
          expect(bucket.matchStatus).not.toBe('matched');
          expect(bucket.provisional).toBe(false);
          expect([
            'not_observable',
            'not_yet_observed',
            'free_allowance',
            'not_in_cost_report',
          ]).not.toContain(bucket.reason);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('the order of its rows changes nothing', () => {
    const key = (bucket: GapBucket) =>
      [
        bucket.width,
        bucket.startMicros,
        bucket.accountId,
        bucket.providerCostPico,
        bucket.ourCostPico,
        bucket.ratePico,
        bucket.volumePico,
      ].join('|');
    fc.assert(
      fc.property(days, (input) => {
        const turned = {
          ...input,
          observed: [...input.observed].reverse(),
          usage: [...input.usage].reverse(),
        };
        expect(matchDay(BOOK, 'openai', turned).buckets.map(key).sort()).toEqual(
          matchDay(BOOK, 'openai', input).buckets.map(key).sort(),
        );
      }),
      { numRuns: RUNS },
    );
  });
});

describe('apportioning', () => {
  it('yields parts that sum to the whole and lie within one unit of their share', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
        fc.array(fc.bigInt({ min: 0n, max: 10n ** 12n }), { minLength: 1, maxLength: 30 }),
        (whole, weights) => {
          const parts = apportion(whole, weights);
          expect(total(parts)).toBe(whole);
          const sum = total(weights);
          if (sum > 0n) {
            parts.forEach((part, at) => {
              const error = part * sum - whole * (weights[at] ?? 0n);
              expect((error < 0n ? -error : error) <= sum).toBe(true);
            });
          }
        },
      ),
    );
  });

  it('the order in which cells come changes nothing', () => {
    fc.assert(
      fc.property(days, fc.integer({ min: 1, max: 11 }), (input, by) => {
        const turned = <T>(things: readonly T[]) => [...things.slice(by), ...things.slice(0, by)].reverse();
        const other = {
          ...input,
          billed: turned(input.billed),
          usage: turned(input.usage),
          observed: turned(input.observed),
          covered: turned(input.covered),
        };
        expect(matchDay(BOOK, 'openai', other)).toEqual(matchDay(BOOK, 'openai', input));
      }),
      { numRuns: RUNS },
    );
  });

  it('each day bucket has its evidence, and JSON holds it to the last digit', () => {
    fc.assert(
      fc.property(days, (input) => {
        const { buckets, evidence } = matchDay(BOOK, 'openai', input);
        expect(evidence.map(({ accountId, model }) => [accountId, model])).toEqual(
          daysOf(buckets).map(({ accountId, model }) => [accountId, model]),
        );
        for (const one of evidence)
          expect(evidenceFromJson(JSON.parse(JSON.stringify(evidenceToJson(one))))).toEqual(one);
      }),
      { numRuns: RUNS },
    );
  });
});
