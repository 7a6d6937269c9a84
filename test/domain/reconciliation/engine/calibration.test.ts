import { describe, expect, it } from 'vitest';
import { calibrated, LAPSE, uncalibrated } from '../../../../domain/reconciliation/engine/calibration.js';

describe('the calibrated probability', () => {
  it('is no higher with a missing gate than with all, and the same for every number of missing ones', () => {
    expect(calibrated(0.99, 1)).toBeLessThanOrEqual(calibrated(0.99, 0));
    expect(calibrated(0.99, 3)).toBe(calibrated(0.99, 1));
  });

  it('rises with the probability of the model and never exceeds it', () => {
    for (const gates of [0, 1]) {
      expect(calibrated(0.9, gates)).toBeGreaterThan(calibrated(0.8, gates));
      expect(calibrated(0.9, gates)).toBeLessThanOrEqual(0.9);
    }
    for (const rate of Object.values(LAPSE)) expect(rate).toBeLessThan(0.2);
  });

  it('can be undone by the benchmark', () => {
    for (const gates of [0, 1, 2]) expect(uncalibrated(calibrated(0.7, gates), gates)).toBeCloseTo(0.7, 12);
  });
});
