import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  FITTED,
  GUESS_MAX,
  NOT_ANSWERED_MAX,
  PARTS_ALONE_MAX,
} from '../../../../domain/reconciliation/engine/calibration.js';
import {
  type Calibrated,
  calibrated,
  calibrationSteps,
  gradedAs,
  uncalibrated,
} from '../../../../domain/reconciliation/engine/series/gates.js';
import { VISIBILITIES } from '../../../../domain/reconciliation/matching/cells.js';
import { gradeAt } from '../../../../domain/reconciliation/matching/classLines.js';

const probability = fc.double({ min: 0.01, max: 0.99, noNaN: true });
const finding = fc.record<Calibrated>({
  blame: fc.constantFrom('provider', 'own', 'none'),
  missing: fc.constantFrom([], ['closed_period'], ['closed_period', 'account_known']),
  visibility: fc.constantFrom(...VISIBILITIES),
});
/** A finding with the waterfall that it gets at this probability of the model. */
const stated = (p: number, of: Calibrated) => ({ ...of, waterfall: calibrationSteps(p, of) });
const GATED = { blame: 'provider', missing: ['closed_period'], visibility: 'V3' } as const;

describe('the calibrated probability', () => {
  it('rises with the probability of the model, and is the same for every number of missing gates', () => {
    fc.assert(
      fc.property(probability, finding, (p, of) => {
        expect(calibrated(p, of)).toBeGreaterThan(calibrated(p * 0.9, of));
        if (of.missing.length > 0)
          expect(calibrated(p, of)).toBe(calibrated(p, { ...of, missing: ['a', 'b'] }));
      }),
    );
  });

  it('is higher where an accusation lacks a gate', () => {
    fc.assert(
      fc.property(probability, (p) => {
        expect(calibrated(p, GATED)).toBeGreaterThan(p);
      }),
    );
  });

  it('leaves bills of amounts alone, and findings that accuse nobody, the probability of the model', () => {
    for (const other of [
      { visibility: 'V1' },
      { visibility: 'V0' },
      { blame: 'own' },
      { blame: 'none' },
    ] as const)
      expect(calibrated(0.9, { ...GATED, ...other })).toBe(0.9);
  });

  it('is never above that of the model where all gates hold', () => {
    expect(calibrated(0.9, { ...GATED, missing: [] })).toBe(0.9 * (1 - FITTED.lapse));
    expect(FITTED.lapse).toBeLessThan(0.2);
  });

  it('differs from that of the model by the bits of its step of the waterfall', () => {
    fc.assert(
      fc.property(probability, (p) => {
        const bits = (of: number) => Math.log2(of / (1 - of));
        const sum = calibrationSteps(p, GATED).reduce((total, step) => total + step.bits, bits(p));
        expect(sum).toBeCloseTo(bits(calibrated(p, GATED)), 9);
      }),
    );
  });

  it('is never certain', () => {
    expect(calibrated(0.999, GATED)).toBe(0.999);
    expect(calibrated(1, GATED)).toBe(0.999);
  });

  it('can be undone by the benchmark', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.01, max: 0.95, noNaN: true }), finding, (p, of) => {
        expect(uncalibrated(calibrated(p, of), stated(p, of))).toBeCloseTo(p, 9);
      }),
    );
  });
});

describe('the probability that a grade follows from', () => {
  it('is no higher than that of the model, nor than the calibrated one', () => {
    fc.assert(
      fc.property(probability, finding, (p, of) => {
        const graded = gradedAs(calibrated(p, of), stated(p, of));
        expect(graded).toBeLessThanOrEqual(calibrated(p, of));
        expect(graded).toBeLessThanOrEqual(p + 1e-12);
      }),
    );
  });

  it('leaves every finding with the grade that the model makes it', () => {
    const limits = fc.constantFrom(0.5, GUESS_MAX, PARTS_ALONE_MAX, 0.79, NOT_ANSWERED_MAX, 0.95);
    fc.assert(
      fc.property(fc.oneof(limits, probability), finding, (p, of) => {
        const grade = (by: number) => gradeAt(by, of.missing.length, of.visibility);
        fc.pre(of.missing.length > 0);
        expect(grade(gradedAs(calibrated(p, of), stated(p, of)))).toBe(grade(p));
      }),
    );
  });
});
