import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Finding, LAPSE } from '../../domain/reconciliation/engine/index.js';
import {
  type FindingDayOutcome,
  fitLapseRates,
  recalibrated,
} from '../../lab/bench/reconciliation/leaveOut.js';

const finding = (more: Partial<Finding>): Finding =>
  ({
    kind: 'batch_discount_not_applied',
    blame: 'provider',
    grade: 'HIGH',
    probability: 0.99 * (1 - LAPSE.allGates),
    missing: [],
    visibility: 'V3',
    ...more,
  }) as Finding;

const GATED: Partial<Finding> = {
  missing: ['closed_period'],
  grade: 'MEDIUM',
  probability: 0.99 * (1 - LAPSE.missingGate),
};

const daysOf = (of: Finding, trueDays: number, falseDays: number): FindingDayOutcome[] =>
  [...Array.from({ length: trueDays }, () => 1), ...Array.from({ length: falseDays }, () => 0)].map(
    (outcome) => ({ finding: of, probability: of.probability, outcome }),
  );

/** Findings of one day each. */
const several = (more: Partial<Finding>, right: number, wrong: number) => [
  ...Array.from({ length: right }, () => daysOf(finding(more), 1, 0)).flat(),
  ...Array.from({ length: wrong }, () => daysOf(finding(more), 0, 1)).flat(),
];

describe('lapse rates', () => {
  it('come near the share of false findings that their probability does not allow for', () => {
    const rates = fitLapseRates([...several({}, 1000, 0), ...several(GATED, 900, 110)]);
    expect(rates.allGates).toBeLessThan(0.001);
    expect(rates.missingGate).toBeCloseTo(0.1, 1);
  });

  it('stay near their prior where few findings are known', () => {
    expect(fitLapseRates([])).toEqual({ allGates: 0.01, missingGate: 0.01 });
    expect(fitLapseRates(several({}, 0, 1)).allGates).toBeLessThan(0.05);
  });

  it('count a long finding as five days, since its days are true or false together', () => {
    const short = fitLapseRates([...several({}, 100, 0), ...daysOf(finding({}), 0, 5)]);
    const long = fitLapseRates([...several({}, 100, 0), ...daysOf(finding({}), 0, 60)]);
    expect(long).toEqual(short);
  });

  it('are shares that rise with every false finding', () => {
    const count = fc.integer({ min: 0, max: 40 });
    fc.assert(
      fc.property(count, count, (right, wrong) => {
        const { allGates: fewer } = fitLapseRates(several({}, right, wrong));
        const { allGates: more } = fitLapseRates(several({}, right, wrong + 1));
        expect(fewer).toBeGreaterThanOrEqual(0);
        expect(more).toBeGreaterThan(fewer);
        expect(more).toBeLessThanOrEqual(1);
      }),
    );
  });
});

describe('findings by other lapse rates', () => {
  const sure = { allGates: 0, missingGate: 0 };
  const doubtful = { allGates: 0.3, missingGate: 0.3 };

  it('get the grade of the new probability', () => {
    expect(recalibrated([finding({})], doubtful)[0]?.grade).toBe('LOW');
    expect(recalibrated([finding(GATED)], doubtful)[0]?.grade).toBe('LOW');
    expect(recalibrated([finding({})], sure)[0]?.probability).toBeCloseTo(0.99, 9);
  });

  it('are not raised over a missing gate, the visibility, or what else had lowered them', () => {
    expect(recalibrated([finding(GATED)], sure)[0]?.grade).toBe('MEDIUM');
    expect(recalibrated([finding({ grade: 'MEDIUM', visibility: 'V1' })], sure)[0]?.grade).toBe('MEDIUM');
    expect(recalibrated([finding({ grade: 'LOW' })], sure)[0]?.grade).toBe('LOW');
  });

  it('keeps findings that accuse no provider as they are, and UNVERIFIED ones UNVERIFIED', () => {
    const other = finding({ blame: 'none' as Finding['blame'] });
    expect(recalibrated([other], doubtful)).toEqual([other]);
    expect(recalibrated([finding({ grade: 'UNVERIFIED', probability: 0.4 })], sure)[0]?.grade).toBe(
      'UNVERIFIED',
    );
  });
});
