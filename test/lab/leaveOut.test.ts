import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Finding } from '../../domain/reconciliation/engine/index.js';
import { expectedCalibrationError } from '../../lab/bench/reconciliation/calibration.js';
import { fitCurve, recalibrated, valueAt } from '../../lab/bench/reconciliation/leaveOut.js';

const days = (probability: number, trueDays: number, falseDays: number) => [
  ...Array.from({ length: trueDays }, () => ({ probability, outcome: 1 })),
  ...Array.from({ length: falseDays }, () => ({ probability, outcome: 0 })),
];

const finding = (more: Partial<Finding>): Finding =>
  ({
    kind: 'batch_discount_not_applied',
    blame: 'provider',
    grade: 'HIGH',
    probability: 0.99,
    missing: [],
    visibility: 'V3',
    ...more,
  }) as Finding;

describe('the curve of probabilities', () => {
  it('is near the share of true days, and removes the calibration error of the days that it was fitted on', () => {
    const predictions = [...days(0.6, 90, 10), ...days(0.9, 60, 40), ...days(0.99, 196, 4)];
    const curve = fitCurve(predictions);
    expect(valueAt(curve, 0.99)).toBeCloseTo(0.98, 1);
    // 0.6 was right more often than 0.9, so both have their common share.
    expect(valueAt(curve, 0.6)).toBeCloseTo(0.75, 1);
    expect(valueAt(curve, 0.9)).toBe(valueAt(curve, 0.6));
    const again = predictions.map((one) => ({ ...one, probability: valueAt(curve, one.probability) }));
    expect(expectedCalibrationError(again)).toBeLessThan(0.01);
  });

  it('never falls, stays between 0 and 1, and is the probability itself without any day', () => {
    const prediction = fc.record({
      probability: fc.double({ min: 0, max: 1, noNaN: true }),
      outcome: fc.constantFrom(0, 1),
    });
    fc.assert(
      fc.property(
        fc.array(prediction, { maxLength: 60 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (given, a, b) => {
          const curve = fitCurve(given);
          const [low, high] = [valueAt(curve, Math.min(a, b)), valueAt(curve, Math.max(a, b))];
          expect(low).toBeLessThanOrEqual(high + 1e-12);
          expect(low).toBeGreaterThanOrEqual(0);
          expect(high).toBeLessThanOrEqual(1);
          if (given.length === 0) expect(valueAt(curve, a)).toBe(a);
        },
      ),
    );
  });
});

describe('findings by another curve', () => {
  const sure = fitCurve(days(0.5, 400, 0));
  const doubtful = fitCurve(days(0.5, 60, 40));

  it('get the grade of the new probability', () => {
    expect(recalibrated([finding({})], doubtful)[0]?.grade).toBe('LOW');
    expect(recalibrated([finding({ grade: 'MEDIUM', probability: 0.9 })], sure)[0]?.grade).toBe('HIGH');
  });

  it('are not raised over a missing gate, the visibility, or what else had lowered them', () => {
    const gated = finding({
      grade: 'MEDIUM',
      probability: 0.9,
      missing: ['closed_period'] as Finding['missing'],
    });
    expect(recalibrated([gated], sure)[0]?.grade).toBe('MEDIUM');
    expect(recalibrated([finding({ grade: 'MEDIUM', visibility: 'V1' })], sure)[0]?.grade).toBe('MEDIUM');
    expect(recalibrated([finding({ grade: 'LOW' })], sure)[0]?.grade).toBe('LOW');
  });

  it('are left as they are where they accuse nobody or are not verified', () => {
    const others = [finding({ blame: 'none' as Finding['blame'] }), finding({ grade: 'UNVERIFIED' })];
    expect(recalibrated(others, doubtful)).toEqual(others);
  });
});
