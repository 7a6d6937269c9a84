/** The calibration of the engine: from the probability of its model to the share of findings that are true. */

/**
 * Lapse rates: how often a finding is wrong whatever its likelihood shows, because something happened that the model does
 * not know. A missing gate is a missing fact, so findings that lack one lapse more often. Shares from 0 to 1, fitted to the
 * findings of all generators of the benchmark: `npm run bench:reconciliation -- --fit` writes them here.
 */
export const LAPSE = { allGates: 0, missingGate: 0.029 } as const;

/** The probability that a finding is true, from its probability by the model alone. */
export function calibrated(probability: number, missingGates: number): number {
  return probability * (1 - lapseOf(missingGates));
}

/** The inverse of `calibrated`, for the benchmark, which judges with lapse rates of other data. */
export function uncalibrated(probability: number, missingGates: number): number {
  return probability / (1 - lapseOf(missingGates));
}

const lapseOf = (missingGates: number): number => (missingGates === 0 ? LAPSE.allGates : LAPSE.missingGate);
