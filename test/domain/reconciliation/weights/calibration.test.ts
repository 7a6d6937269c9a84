import { describe, expect, it } from 'vitest';
import {
  calibrated,
  type Judged,
  learnCalibrator,
} from '../../../../domain/reconciliation/weights/calibration.js';
import { claimProbability, learnWeights } from '../../../../domain/reconciliation/weights/learn.js';
import { learnThresholds } from '../../../../domain/reconciliation/weights/thresholds.js';
import { DEFAULT_WEIGHTS } from '../../../../domain/reconciliation/weights/weightSet.js';
import { anOutcome, NOW, times } from './support.js';

const judged = (count: number, p: number, fraction: number, given: Partial<Judged> = {}): Judged[] =>
  Array.from({ length: count }, (_, at) => ({
    ...anOutcome({ claimId: `c-${p}-${fraction}-${at}`, fraction }),
    weight: 1,
    p,
    ...given,
  }));

describe('the calibration', () => {
  it('of few outcomes hardly moves: ten refusals at 0.63 cost 0.99 less than a quarter of a bit', () => {
    const p = calibrated(0.99, 'openai', learnCalibrator(judged(10, 0.63, 0)));
    const bits = Math.log2(0.99 / 0.01) - Math.log2(p / (1 - p));
    expect(bits).toBeGreaterThan(0);
    expect(bits).toBeLessThan(0.25);
  });

  it('of any number of refusals of one kind moves the others by less than half a bit', () => {
    const bits = (p: number) => Math.log2(p / (1 - p));
    for (const count of [1, 10, 30, 100, 199, 200, 500]) {
      const learned = learnWeights(times(count, anOutcome({ rawProbability: 0.999 })), DEFAULT_WEIGHTS, NOW);
      for (const q of [0.5, 0.9, 0.97, 0.999]) {
        const p = claimProbability(q, 'region_uplift_misapplied', 'openai', learned);
        expect(Math.abs(bits(p) - bits(q)), `${count} at ${q}`).toBeLessThan(0.5);
      }
      const own = claimProbability(0.999, 'cache_read_rate_mismatch', 'openai', learned);
      if (count >= 5) expect(own).toBeLessThan(0.95);
    }
  });

  it('of many is near what was credited: below 200 by Platt’s curve, above unchanged', () => {
    const below = learnCalibrator([...judged(60, 0.9, 1), ...judged(60, 0.9, 0)]);
    expect(below.curve.method).toBe('platt');
    const p = calibrated(0.9, 'aws_bedrock', below);
    expect(p).toBeLessThan(0.85);
    expect(p).toBeGreaterThan(0.5);
    const above = learnCalibrator([...judged(500, 0.9, 1), ...judged(500, 0.9, 0), ...judged(300, 0.98, 1)]);
    expect(above.curve.method).toBe('isotonic');
    expect(calibrated(0.9, 'aws_bedrock', above)).toBeCloseTo(0.5, 1);
    expect(calibrated(0.98, 'aws_bedrock', above)).toBeGreaterThan(0.97);
  });

  it('of a provider is its own by as many outcomes as it has', () => {
    const good = judged(150, 0.9, 1, { provider: 'openai' });
    const bad = judged(40, 0.9, 0, { provider: 'anthropic' });
    const calibrator = learnCalibrator([...good, ...bad]);
    const of = (provider: string) => calibrated(0.9, provider, calibrator);
    expect(of('anthropic')).toBeLessThan(of('aws_bedrock'));
    expect(of('aws_bedrock')).toBeLessThan(of('openai'));
    expect(calibrator.providers.anthropic?.share).toBeCloseTo(40 / 240, 12);
  });
});

describe('the thresholds', () => {
  it('are the default’s below thirty outcomes, whatever these are', () => {
    expect(learnThresholds(judged(29, 0.6, 1))).toEqual({ high: 0.95, medium: 0.8 });
    expect(learnThresholds(judged(29, 0.97, 0))).toEqual({ high: 0.95, medium: 0.8 });
  });

  it('are loosened by what is credited below them: the smallest probability from which on the bound holds', () => {
    const outcomes = [
      ...judged(40, 0.9, 1),
      ...judged(40, 0.85, 1),
      ...judged(40, 0.7, 1),
      ...judged(40, 0.6, 0),
    ];
    expect(learnThresholds(outcomes)).toEqual({ high: 0.8, medium: 0.7 });
    expect(learnThresholds([...judged(40, 0.9, 1), ...judged(40, 0.85, 0.5)]).high).toBe(0.9);
  });

  it('are tightened by refusals above them, and not by too few outcomes', () => {
    expect(learnThresholds([...judged(40, 0.96, 0), ...judged(40, 0.99, 1)]).high).toBe(0.99);
    expect(learnThresholds(judged(40, 0.97, 0))).toEqual({ high: 1, medium: 1 });
    expect(learnThresholds([...judged(30, 0.96, 1), ...judged(1, 0.97, 0)]).high).toBe(0.95);
  });

  it('weigh dollars: one large refusal outweighs many small credits', () => {
    const small = judged(40, 0.97, 1, { claimedCents: 100n });
    expect(learnThresholds(small).high).toBe(0.95);
    const large = judged(40, 0.96, 0, { claimedCents: 100_000n });
    expect(learnThresholds([...small, ...large]).high).toBe(0.97);
  });
});
