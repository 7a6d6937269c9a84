import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LINK_WEIGHTS } from '../../../../domain/reconciliation/matching/linkModels.js';
import { BENIGN_KINDS, TAXONOMY_KINDS } from '../../../../domain/reconciliation/taxonomy.js';
import { calibrated } from '../../../../domain/reconciliation/weights/calibration.js';
import { claimProbability, learnWeights } from '../../../../domain/reconciliation/weights/learn.js';
import type { Outcome } from '../../../../domain/reconciliation/weights/outcome.js';
import { nonDecreasing } from '../../../../domain/reconciliation/weights/poolAdjacent.js';
import { DEFAULT_WEIGHTS } from '../../../../domain/reconciliation/weights/weightSet.js';
import { propertyRuns } from '../../../support/propertyRuns.js';
import { DAY, NOW } from './support.js';

const learn = (outcomes: readonly Outcome[]) => learnWeights(outcomes, DEFAULT_WEIGHTS, NOW);

const KINDS = ['cache_read_rate_mismatch', 'duplicate_charge', 'region_uplift_misapplied'] as const;
const PROVIDERS = ['openai', 'anthropic'] as const;
const levels = fc
  .record(
    Object.fromEntries(
      Object.entries(LINK_WEIGHTS).map(([signal, of]) => [signal, fc.constantFrom(null, ...Object.keys(of))]),
    ),
  )
  .map((all) =>
    Object.fromEntries(
      Object.entries(all).flatMap(([signal, level]) => (level === null ? [] : [[signal, level]])),
    ),
  );

const outcome: fc.Arbitrary<Outcome> = fc
  .record({
    claimedType: fc.constantFrom(...KINDS),
    provider: fc.constantFrom(...PROVIDERS),
    status: fc.constantFrom('credit_issued' as const, 'partial' as const, 'denied' as const),
    violationType: fc.constantFrom(null, ...TAXONOMY_KINDS),
    claimedCents: fc.bigInt(1n, 10_000_000n),
    share: fc.integer({ min: 1, max: 99 }),
    levels,
    rawProbability: fc.double({ min: 0.5, max: 0.999, noNaN: true }),
    ageDays: fc.integer({ min: 0, max: 900 }),
  })
  .map(({ share, ageDays, ...of }) => ({
    ...of,
    claimId: '',
    violationType: of.status === 'denied' ? (of.violationType ?? of.claimedType) : null,
    fraction: of.status === 'denied' ? 0 : of.status === 'partial' ? share / 100 : 1,
    atMicros: NOW - BigInt(ageDays) * DAY,
  }));

const someOutcomes = (maxLength: number) =>
  fc
    .array(outcome, { maxLength })
    .map((all) => all.map((one, at): Outcome => ({ ...one, claimId: `claim-${at}` })));
/** Around the number from which the curve takes any form. */
const outcomes = fc.oneof(
  { weight: 6, arbitrary: someOutcomes(40) },
  {
    weight: 1,
    arbitrary: fc
      .array(outcome, { minLength: 195, maxLength: 230 })
      .map((all) => all.map((one, at): Outcome => ({ ...one, claimId: `claim-${at}` }))),
  },
);

const RUNS = { numRuns: propertyRuns(15) };

describe('whatever became of an organization’s claims', () => {
  it('the same outcomes in any order teach the same, to the last bit, and nothing of them is changed', () => {
    fc.assert(
      fc.property(
        outcomes.chain((all) =>
          fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
        ),
        ([all, shuffled]) => {
          const before = structuredClone(all);
          const learned = learn(all);
          expect(learn(shuffled)).toStrictEqual(learned);
          expect(learn(all)).toStrictEqual(learned);
          expect(all).toEqual(before);
          // A weight set that is stored as JSON is read back equal.
          expect(JSON.parse(JSON.stringify(learned))).toEqual(learned);
        },
      ),
      RUNS,
    );
  });

  it('one more refusal never raises the precision of its kind, and one more credit never lowers it', () => {
    fc.assert(
      fc.property(outcomes, outcome, (all, more) => {
        const kind = more.claimedType;
        const added = (of: Partial<Outcome>) => learn([...all, { ...more, claimId: 'more', ...of }]);
        const denied = added({ status: 'denied', fraction: 0, violationType: kind }).detectors[kind];
        const credited = added({ status: 'credit_issued', fraction: 1, violationType: null }).detectors[kind];
        const before = learn(all).detectors[kind]?.precision ?? credited?.priorMean ?? 0;
        expect(denied?.precision).toBeLessThanOrEqual(before + 1e-12);
        expect(credited?.precision).toBeGreaterThanOrEqual(before - 1e-12);
        expect(denied?.precision).toBeGreaterThan(0);
        expect(credited?.precision).toBeLessThan(1);
      }),
      RUNS,
    );
  });

  it('no level moves by more than three bits, and no better agreement scores lower than a worse one', () => {
    fc.assert(
      fc.property(outcomes, (all) => {
        const { link } = learn(all).levels;
        for (const [signal, base] of Object.entries(LINK_WEIGHTS)) {
          const of = Object.entries(base)
            .filter(([level]) => !['absent', 'not_used', 'unknown', 'none'].includes(level))
            .map(([level, bits]) => ({ bits, learned: link[signal]?.[level] ?? Number.NaN }))
            .sort((a, b) => b.bits - a.bits);
          for (const [at, { bits, learned }] of of.entries()) {
            expect(Math.abs(learned - bits)).toBeLessThanOrEqual(3 + 1e-9);
            expect(learned).toBeLessThanOrEqual((of[at - 1]?.learned ?? Number.POSITIVE_INFINITY) + 1e-12);
          }
        }
      }),
      RUNS,
    );
  });

  it('a likelier finding stays likelier, within 0 and 1, and no kind passes its bound', () => {
    fc.assert(
      fc.property(
        outcomes,
        fc.constantFrom(...KINDS),
        fc.constantFrom(...PROVIDERS),
        (all, kind, provider) => {
          const learned = learn(all);
          const cap = learned.detectors[kind]?.cap ?? 1;
          let [before, beforeAll] = [0, 0];
          for (let q = 0.01; q < 1; q += 0.01) {
            const p = claimProbability(q, kind, provider, learned);
            const curve = calibrated(q, provider, learned.calibrator);
            expect(p).toBeGreaterThanOrEqual(before - 1e-12);
            expect(curve).toBeGreaterThanOrEqual(beforeAll - 1e-12);
            expect(p).toBeGreaterThan(0);
            expect(p).toBeLessThan(1);
            expect(p).toBeLessThanOrEqual(Math.max(cap, 1 - 0.9999));
            [before, beforeAll] = [p, curve];
          }
        },
      ),
      RUNS,
    );
  });

  it('thresholds are in order, and the default’s below thirty outcomes', () => {
    fc.assert(
      fc.property(outcomes, (all) => {
        const { high, medium } = learn(all).thresholds;
        expect(high).toBeGreaterThanOrEqual(medium);
        expect(medium).toBeGreaterThanOrEqual(0.5);
        expect(high).toBeLessThanOrEqual(1);
        if (all.length < 30) expect({ high, medium }).toEqual({ high: 0.95, medium: 0.8 });
      }),
      RUNS,
    );
  });

  it('a kind without outcomes has nothing of its own, and no provider another’s rivals', () => {
    fc.assert(
      fc.property(outcomes, (all) => {
        const learned = learn(all);
        expect(Object.keys(learned.detectors)).toEqual(
          [...new Set(all.map((one) => one.claimedType))].sort(),
        );
        for (const [provider, rivals] of Object.entries(learned.rivals))
          for (const [kind, { factor }] of Object.entries(rivals)) {
            expect(BENIGN_KINDS).toContain(kind);
            expect(all.some((one) => one.provider === provider && one.violationType === kind)).toBe(true);
            expect(factor).toBeGreaterThanOrEqual(1);
            expect(factor).toBeLessThanOrEqual(8);
          }
      }),
      RUNS,
    );
  });
});

describe('the nearest sequence that never falls', () => {
  const values = fc.array(
    fc.record({ value: fc.double({ min: -9, max: 9, noNaN: true }), weight: fc.integer({ min: 1, max: 9 }) }),
    { maxLength: 12 },
  );

  it('never falls, keeps the weighed mean, and leaves alone what does not fall', () => {
    fc.assert(
      fc.property(values, (all) => {
        const [given, weights] = [all.map((one) => one.value), all.map((one) => one.weight)];
        const fitted = nonDecreasing(given, weights);
        const mean = (of: readonly number[]) =>
          of.reduce((sum, one, at) => sum + one * (weights[at] ?? 0), 0);
        for (const [at, one] of fitted.entries())
          expect(one).toBeGreaterThanOrEqual((fitted[at - 1] ?? -99) - 1e-12);
        expect(mean(fitted)).toBeCloseTo(mean(given), 9);
        const sorted = [...given].sort((a, b) => a - b);
        expect(nonDecreasing(sorted, weights)).toEqual(sorted);
      }),
    );
  });
});
