import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Finding } from '../../domain/reconciliation/engine/index.js';
import { calibrated, calibrationSteps } from '../../domain/reconciliation/engine/series/gates.js';
import {
  type FindingDayOutcome,
  fitCalibrated,
  recalibrated,
} from '../../lab/bench/reconciliation/leaveOut.js';

const ALL = { blame: 'provider', missing: [], visibility: 'V3' } as const;
const LACKS_ONE = { ...ALL, missing: ['closed_period'] } as const;

const finding = (more: Partial<Finding>): Finding =>
  ({
    kind: 'batch_discount_not_applied',
    blame: 'provider',
    grade: 'HIGH',
    probability: calibrated(0.99, ALL),
    missing: [],
    waterfall: [],
    visibility: 'V3',
    ...more,
  }) as Finding;

const GATED: Partial<Finding> = {
  missing: ['closed_period'],
  grade: 'MEDIUM',
  probability: calibrated(0.9, LACKS_ONE),
  waterfall: calibrationSteps(0.9, LACKS_ONE),
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
    const { lapse } = fitCalibrated([...several({}, 890, 110), ...several(GATED, 900, 100)]);
    expect(lapse).toBeCloseTo(0.1, 1);
    expect(fitCalibrated(several({}, 1000, 0)).lapse).toBeLessThan(0.001);
  });

  it('stay near their prior where few findings are known', () => {
    expect(fitCalibrated([])).toMatchObject({ lapse: 0.01, surer: expect.closeTo(0, 6) });
    expect(fitCalibrated(several({}, 0, 1)).lapse).toBeLessThan(0.05);
  });

  it('count a long finding as five days, since its days are true or false together', () => {
    const short = fitCalibrated([...several({}, 100, 0), ...daysOf(finding({}), 0, 5)]);
    const long = fitCalibrated([...several({}, 100, 0), ...daysOf(finding({}), 0, 60)]);
    expect(long).toEqual(short);
  });

  it('are shares that rise with every false finding', () => {
    const count = fc.integer({ min: 0, max: 40 });
    fc.assert(
      fc.property(count, count, (right, wrong) => {
        const { lapse: fewer } = fitCalibrated(several({}, right, wrong));
        const { lapse: more } = fitCalibrated(several({}, right, wrong + 1));
        expect(fewer).toBeGreaterThanOrEqual(0);
        expect(more).toBeGreaterThan(fewer);
        expect(more).toBeLessThanOrEqual(1);
      }),
    );
  });
});

describe('the shift of findings that lack a gate', () => {
  it('makes their probability the share of them that is true, above the model’s and below it', () => {
    for (const [right, wrong] of [
      [980, 20],
      [600, 400],
    ] as const) {
      const { surer } = fitCalibrated(several(GATED, right, wrong));
      expect(calibrated(0.9, LACKS_ONE, { lapse: 0, surer })).toBeCloseTo(right / (right + wrong), 2);
    }
  });

  it('falls with every false finding, and rests on no finding that has all gates', () => {
    const count = fc.integer({ min: 0, max: 40 });
    fc.assert(
      fc.property(count, count, (right, wrong) => {
        const { surer } = fitCalibrated(several(GATED, right, wrong));
        expect(fitCalibrated(several(GATED, right, wrong + 1)).surer).toBeLessThan(surer);
        const others = [...several(GATED, right, wrong), ...several({}, wrong, right)];
        expect(fitCalibrated(others).surer).toBe(surer);
      }),
    );
  });
});

describe('findings by another calibration', () => {
  const sure = { lapse: 0, surer: 0 };
  const doubtful = { lapse: 0.3, surer: -1.5 };

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
