/**
 * Unobserved calls, where the bill has amounts alone: whatever share of the calls is missing, nothing is wrong with a
 * bill that is right of all of them (docs/decisions/0016).
 */
import { FREE, OWN_SHARE, REPEATS, SHARP_FLOORS } from '../calibration.js';
import {
  coverageCandidates,
  type Deviation,
  deviationsOf,
  type Fit,
  mixtureOf,
  type SeriesNoise,
} from './fit.js';
import { CENT, type DayReading, type Prediction } from './reading.js';

/** The null on a day of which another share of the calls was seen than usual, at most all of them. */
export interface UnseenFit {
  /** The missing calls are of any mixture, as if they were missing one by one. */
  readonly any: Fit;
  /** The missing calls repeat the observed ones, call by call. */
  readonly alike: Fit;
  /** Surprise: negative log-likelihood if calls were missing one by one. It falls with their number. */
  readonly wonder: number;
}

export function fitUnseen(reading: DayReading, right: Prediction, noise: SeriesNoise): UnseenFit {
  const nothing: Fit = { rate: 0, quantity: 0, coverage: noise.coverage };
  if (!reading.comparable) return { any: nothing, alike: nothing, wonder: 0 };
  const deviations = deviationsOf(reading, right, noise);
  const byUse = [...new Set(deviations.map(({ use }) => use))].map((use) =>
    deviations.filter((one) => one.use === use),
  );
  const told = deviations.filter((one) => !one.isFree && one.weight >= CENT);
  let any: Fit = { ...nothing, quantity: Number.NEGATIVE_INFINITY };
  let alike = any;
  let wonder = 0;
  for (const coverage of coverageCandidates(deviations, noise).map((one) => Math.min(1, one))) {
    const mixture = mixtureOf(coverage, reading.calls);
    const loose = sharedFit(deviations, coverage, mixture);
    if (loose > any.quantity) any = { rate: 0, quantity: loose, coverage };
  }
  for (const coverage of alikeCandidates(reading, deviations, noise)) {
    const strict = sharedFit(deviations, coverage, 0);
    if (strict <= alike.quantity) continue;
    const mixture = mixtureOf(coverage, reading.calls);
    alike = { rate: 0, quantity: strict, coverage };
    // One class sets the share, the others have to agree with it.
    const wonders = told.map((one) => Math.log(Math.hypot(one.sigma, mixture) / one.sigma));
    wonder = wonders.reduce((sum, one) => sum + one, 0) - Math.max(0, ...wonders);
  }
  const apart = byUse.length > 1 ? fitByUse(byUse, reading.calls, noise) : any;
  return { any: apart.quantity > any.quantity ? { ...apart, coverage: any.coverage } : any, alike, wonder };
}

/**
 * Calls that are missing are of the very mixture of those that were seen where they repeat them, each as often as the others:
 * the half, or two of three, were not seen. Of one amount a day nothing is known of a mixture.
 */
function alikeCandidates(
  reading: DayReading,
  deviations: readonly Deviation[],
  noise: SeriesNoise,
): readonly number[] {
  if (reading.depth === 'total') return coverageCandidates(deviations, noise).map((one) => Math.min(1, one));
  return REPEATS.flatMap((times) => [1 / times, noise.coverage / times]);
}

/** Who is missing may have made calls of one use alone, as ordinary ones beside long ones. */
function fitByUse(byUse: readonly (readonly Deviation[])[], calls: number, noise: SeriesNoise): Fit {
  let quantity = OWN_SHARE * byUse.length;
  for (const deviations of byUse) {
    const fits = coverageCandidates(deviations, noise)
      .map((one) => Math.min(1, one))
      .map((coverage) => sharedFit(deviations, coverage, mixtureOf(coverage, calls)));
    quantity += Math.max(...fits);
  }
  return { rate: 0, quantity, coverage: noise.coverage };
}

/** The fit of one share of everything, whichever it is. */
function sharedFit(deviations: readonly Deviation[], coverage: number, mixture: number): number {
  let total = 0;
  for (const one of deviations) {
    const sigma = Math.hypot(one.sigma, mixture);
    const z = (one.logRatio + Math.log(coverage)) / sigma;
    total += one.isFree ? FREE : Math.max(-0.5 * z * z, SHARP_FLOORS.quantity) - Math.log(sigma / one.sigma);
  }
  return total;
}
