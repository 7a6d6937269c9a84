/**
 * Calibration that is fitted on other generators than it is judged on: a curve that never falls from the engine's
 * probability of a finding-day to the share of true ones.
 */
import type { Finding } from '../../../domain/reconciliation/engine/index.js';
import { gradeAt, lowerOf } from '../../../domain/reconciliation/matching/classLines.js';
import { nonDecreasing } from '../../../domain/reconciliation/weights/poolAdjacent.js';
import type { Prediction } from './calibration.js';
import { accuses } from './matchTruth.js';

/** Points in the order of rising probability; between points the curve is straight. */
export type FittedCurve = readonly { readonly said: number; readonly true: number }[];

/** As many true and as many false days are added at each end, so that few days do not give certainty. */
const ADDED_DAYS = 1;

/** The curve of these finding-days; without any it is the probability itself. */
export function fitCurve(predictions: readonly Prediction[]): FittedCurve {
  const sums = new Map<number, { days: number; true: number }>();
  for (const { probability, outcome } of predictions) {
    const sum = sums.get(probability) ?? { days: 0, true: 0 };
    sums.set(probability, { days: sum.days + 1, true: sum.true + outcome });
  }
  const said = [...sums.keys()].sort((a, b) => a - b);
  const shares = said.map((one) => shareOf(sums.get(one)));
  const fitted = nonDecreasing(
    shares,
    said.map((one) => sums.get(one)?.days ?? 0),
  );
  return said.map((one, at) => ({ said: one, true: fitted[at] ?? one }));
}

const shareOf = (sum = { days: 0, true: 0 }) => (sum.true + ADDED_DAYS / 2) / (sum.days + ADDED_DAYS);

/** The curve at a probability. */
export function valueAt(curve: FittedCurve, probability: number): number {
  const above = curve.findIndex(({ said }) => said >= probability);
  const high = above < 0 ? curve.at(-1) : curve[above];
  const low = above < 0 ? high : (curve[above - 1] ?? high);
  if (!high || !low) return probability;
  if (high.said === low.said) return high.true;
  return low.true + ((high.true - low.true) * (probability - low.said)) / (high.said - low.said);
}

/**
 * Findings against the provider with probabilities of the curve, and the grades of these. A grade that something else
 * than probability, gates and visibility had lowered is not raised.
 */
export function recalibrated(findings: readonly Finding[], curve: FittedCurve): Finding[] {
  return findings.map((finding) => {
    if (!accuses(finding) || finding.grade === 'UNVERIFIED') return finding;
    const { missing, visibility } = finding;
    const probability = valueAt(curve, finding.probability);
    const grade = gradeAt(probability, missing.length, visibility);
    const isLowered = finding.grade !== gradeAt(finding.probability, missing.length, visibility);
    return { ...finding, probability, grade: isLowered ? lowerOf(finding.grade, grade) : grade };
  });
}
