import { describe, expect, it } from 'vitest';
import {
  brierScore,
  expectedCalibrationError,
  type Prediction,
  reliabilityBins,
} from '../../lab/bench/reconciliation/calibration.js';
import { reliabilityPlot } from '../../lab/bench/reconciliation/reliabilityPlot.js';

const predictions = (probability: number, trues: number, falses: number): Prediction[] => [
  ...Array.from({ length: trues }, () => ({ probability, outcome: 1 })),
  ...Array.from({ length: falses }, () => ({ probability, outcome: 0 })),
];

describe('calibration', () => {
  it('is no error where every probability is the share that was true', () => {
    expect(expectedCalibrationError([...predictions(0.9, 90, 10), ...predictions(0.5, 50, 50)])).toBeCloseTo(
      0,
      12,
    );
  });

  it('is the mean distance, weighted by the number of predictions', () => {
    // Half of all predict 0.9 and are true in 0.7, half predict 0.2 and are true in 0.2.
    expect(expectedCalibrationError([...predictions(0.9, 70, 30), ...predictions(0.2, 20, 80)])).toBeCloseTo(
      0.1,
      12,
    );
  });

  it('has ten bins of equal counts, by rising probability', () => {
    const many = Array.from({ length: 1_000 }, (_, n) => ({ probability: n / 1_000, outcome: n % 2 }));
    const bins = reliabilityBins(many);
    expect(bins.map(({ count }) => count)).toEqual(Array.from({ length: 10 }, () => 100));
    expect(bins.map(({ said }) => said)).toEqual([...bins.map(({ said }) => said)].sort((a, b) => a - b));
  });

  it('does not depend on the order of equal probabilities', () => {
    const some = predictions(0.97, 30, 7);
    const turned = [...some].reverse();
    expect(reliabilityBins(turned)).toEqual(reliabilityBins(some));
    expect(reliabilityBins(some).every((bin) => Math.abs(bin.true - 30 / 37) < 1e-9)).toBe(true);
  });

  it('of certainty that is right has a Brier score of 0, of certainty that is wrong 1, of a coin a quarter', () => {
    expect(brierScore(predictions(1, 5, 0))).toBe(0);
    expect(brierScore(predictions(1, 0, 5))).toBe(1);
    expect(brierScore(predictions(0.5, 5, 5))).toBe(0.25);
  });

  it('is drawn twice, as a whole and from 0.9 on, each dot with its interval, and with its counts', () => {
    const svg = reliabilityPlot(reliabilityBins(predictions(0.9, 18, 2)), 0.0123, 'Findings');
    expect(svg).toContain('probability that was said');
    expect(svg).toContain('share that was true');
    expect(svg).toContain('20 finding-days, expected calibration error 0.0123');
    // All ten bins predict 0.9: they are in the whole square and in the detail.
    expect(svg.match(/<circle /g)).toHaveLength(20);
    expect(svg.match(/stroke-opacity/g)).toHaveLength(20);
    const low = reliabilityPlot(reliabilityBins(predictions(0.6, 12, 8)), 0.0123, 'Findings');
    expect(low.match(/<circle /g)).toHaveLength(10);
    expect(svg).toContain('fill="#ffffff"');
  });
});
