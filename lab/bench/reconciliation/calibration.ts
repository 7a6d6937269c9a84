/** Measures the calibration of probabilities. */

/** A predicted probability and its outcome, true (1) or false (0). */
export interface Prediction {
  probability: number;
  outcome: number;
}

export interface ReliabilityBin {
  count: number;
  /** Mean predicted probability, and below the share of true outcomes. */
  said: number;
  true: number;
}

export const BINS = 10;

/**
 * Bins of equal counts by rising probability. If equal probabilities fall into two bins, each of them counts with
 * their mean outcome, since their order is arbitrary.
 */
export function reliabilityBins(predictions: readonly Prediction[], bins = BINS): ReliabilityBin[] {
  const sorted = withMeanOfTies([...predictions].sort((a, b) => a.probability - b.probability));
  const made: ReliabilityBin[] = [];
  for (let index = 0; index < bins; index += 1) {
    const from = Math.floor((index * sorted.length) / bins);
    const to = Math.floor(((index + 1) * sorted.length) / bins);
    const members = sorted.slice(from, to);
    if (members.length === 0) continue;
    made.push({
      count: members.length,
      said: mean(members.map(({ probability }) => probability)),
      true: mean(members.map(({ outcome }) => outcome)),
    });
  }
  return made;
}

function withMeanOfTies(sorted: readonly Prediction[]): Prediction[] {
  const settled: Prediction[] = [];
  for (let from = 0; from < sorted.length; ) {
    const probability = sorted[from]?.probability ?? 0;
    let to = from;
    while (to < sorted.length && sorted[to]?.probability === probability) to += 1;
    const outcome = mean(sorted.slice(from, to).map((one) => one.outcome));
    for (; from < to; from += 1) settled.push({ probability, outcome });
  }
  return settled;
}

/**
 * Expected calibration error: the mean distance between prediction and outcome, weighted by count. NaN without
 * predictions.
 */
export function expectedCalibrationError(predictions: readonly Prediction[]): number {
  const bins = reliabilityBins(predictions);
  const distance = bins.reduce((sum, bin) => sum + bin.count * Math.abs(bin.said - bin.true), 0);
  return distance / predictions.length;
}

/** Mean square of probability minus outcome. NaN without predictions. */
export function brierScore(predictions: readonly Prediction[]): number {
  return mean(predictions.map(({ probability, outcome }) => (probability - outcome) ** 2));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
