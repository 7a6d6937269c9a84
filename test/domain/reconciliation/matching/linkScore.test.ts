import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { gradeOf } from '../../../../domain/reconciliation/matching/classLines.js';
import {
  type LinkEvidence,
  linkProbability,
  linkWaterfall,
} from '../../../../domain/reconciliation/matching/linkModels.js';

const PERFECT: LinkEvidence = {
  model: 'exact',
  worstQuantityDeviation: 0,
  callDeviation: 0,
  rateRatio: 1,
  rateWithinRounding: true,
  totalDeviation: 0,
};
const score = (over: Partial<LinkEvidence>) => linkProbability(linkWaterfall({ ...PERFECT, ...over }));
const level = (over: Partial<LinkEvidence>, signal: string) =>
  linkWaterfall({ ...PERFECT, ...over }).find((step) => step.signal === signal);

describe('the link score', () => {
  it('is near certain when everything agrees and low when quantities, calls and rate disagree', () => {
    expect(score({})).toBeGreaterThan(0.9999);
    expect(
      score({
        model: 'family_other_price',
        worstQuantityDeviation: 0.5,
        callDeviation: 0.5,
        rateWithinRounding: false,
        rateRatio: 1.3,
      }),
    ).toBeLessThan(0.01);
  });

  it('never rises when a deviation grows', () => {
    const deviations = fc.double({ min: 0, max: 2, noNaN: true });
    fc.assert(
      fc.property(deviations, deviations, (a, b) => {
        const [less, more] = a < b ? [a, b] : [b, a];
        expect(score({ worstQuantityDeviation: more })).toBeLessThanOrEqual(
          score({ worstQuantityDeviation: less }),
        );
        expect(score({ callDeviation: more })).toBeLessThanOrEqual(score({ callDeviation: less }));
        expect(score({ worstQuantityDeviation: null, totalDeviation: more })).toBeLessThanOrEqual(
          score({ worstQuantityDeviation: null, totalDeviation: less }),
        );
      }),
    );
  });

  it('counts the total only where quantities are absent, so that no evidence counts twice', () => {
    expect(level({ totalDeviation: 0.5 }, 'total')).toMatchObject({ level: 'not_used', bits: 0 });
    expect(level({ worstQuantityDeviation: null, totalDeviation: 0.5 }, 'total')).toMatchObject({
      level: 'beyond',
      bits: -3,
    });
  });

  it.each([
    [0.5, 'known_multiplier'],
    [2, 'known_multiplier'],
    [1.1, 'known_multiplier'],
    [2.002, 'known_multiplier'],
    [1.005, 'within_1_percent'],
    [1.3, 'beyond'],
    [null, 'absent'],
  ])('reads a rate ratio of %s as %s', (rateRatio, expected) => {
    expect(level({ rateWithinRounding: false, rateRatio }, 'rate')?.level).toBe(expected);
  });
});

describe('a grade', () => {
  const gates = { quantityKnown: true, classesComplete: true, accountKnown: true };
  const grade = (probability: number | null, over: Partial<Parameters<typeof gradeOf>[0]> = {}) =>
    gradeOf({ probability, visibility: 'V2', provisional: false, gates, ...over });

  it('follows its bands', () => {
    expect([0.95, 0.94, 0.8, 0.79, 0.5, 0.49, null].map((p) => grade(p))).toEqual([
      'HIGH',
      'MEDIUM',
      'MEDIUM',
      'LOW',
      'LOW',
      'UNVERIFIED',
      'UNVERIFIED',
    ]);
  });

  it('is capped by visibility, by missing gates, and is nothing while a day is provisional', () => {
    expect([
      grade(1, { visibility: 'V1' }),
      grade(1, { visibility: 'V0' }),
      grade(1, { visibility: 'V3' }),
    ]).toEqual(['MEDIUM', 'LOW', 'HIGH']);
    expect(grade(1, { gates: { ...gates, accountKnown: false } })).toBe('MEDIUM');
    expect(grade(1, { gates: { ...gates, accountKnown: false, classesComplete: false } })).toBe('LOW');
    expect(grade(1, { provisional: true })).toBe('UNVERIFIED');
  });
});
