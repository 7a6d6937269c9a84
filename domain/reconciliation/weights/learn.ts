/**
 * Learns weights from the outcomes of an organization's claims (docs/learning.md), as a pure function. The same outcomes, in
 * any order, lead to the same weights to the last bit.
 */
import { type Calibrator, calibrated, learnCalibrator } from './calibration.js';
import {
  cappedProbability,
  correctedProbability,
  type LearnedDetector,
  learnDetectors,
} from './detectors.js';
import { type LearnedLevels, learnLevels } from './learnLevels.js';
import { type Outcome, weighed } from './outcome.js';
import { type LearnedRivals, learnRivals } from './rivals.js';
import { learnThresholds, type Thresholds } from './thresholds.js';
import type { WeightSet } from './weightSet.js';

export type { Outcome } from './outcome.js';

export interface LearnedWeights {
  /** Version of the set that it was learned on top of. */
  readonly base: string;
  readonly outcomes: number;
  readonly detectors: Readonly<Record<string, LearnedDetector>>;
  readonly levels: LearnedLevels;
  readonly rivals: LearnedRivals;
  readonly calibrator: Calibrator;
  readonly thresholds: Thresholds;
}

/** No claim is surer than this, in either direction. */
const CERTAINTY_MAX = 0.9999;

/** Learns from all outcomes, as old as they are at `atMicros`. */
export function learnWeights(
  outcomes: readonly Outcome[],
  base: WeightSet,
  atMicros: bigint,
): LearnedWeights {
  const all = weighed(outcomes, atMicros);
  const detectors = learnDetectors(all);
  const believed = all.map((outcome) => {
    const detector = detectors[outcome.claimedType];
    return {
      ...outcome,
      p: cappedProbability(correctedProbability(outcome.rawProbability, detector), detector),
    };
  });
  const calibrator = learnCalibrator(believed);
  const parts = { detectors, calibrator };
  const judged = all.map((outcome) => ({
    ...outcome,
    p: claimProbability(outcome.rawProbability, outcome.claimedType, outcome.provider, parts),
  }));
  return {
    base: base.version,
    outcomes: all.length,
    detectors,
    levels: learnLevels(all, base.link),
    rivals: learnRivals(all),
    calibrator,
    thresholds: learnThresholds(judged),
  };
}

/**
 * The time to which ages are reckoned: that of the newest outcome. So a set depends on nothing but the outcomes, and nothing
 * is forgotten while nothing is learned.
 */
export function learnedAtMicros(outcomes: readonly Outcome[]): bigint {
  return outcomes.reduce((newest, { atMicros }) => (atMicros > newest ? atMicros : newest), 0n);
}

/** The learned probability of a finding of this kind as a claim against this provider. */
export function claimProbability(
  q: number,
  kind: string,
  provider: string,
  { detectors, calibrator }: Pick<LearnedWeights, 'detectors' | 'calibrator'>,
): number {
  if (q <= 0 || q >= 1) return q;
  const detector = detectors[kind];
  const believed = cappedProbability(correctedProbability(q, detector), detector);
  const p = cappedProbability(calibrated(believed, provider, calibrator), detector);
  return p === q ? q : Math.min(CERTAINTY_MAX, Math.max(1 - CERTAINTY_MAX, p));
}

/** The set that runs judge by: the base with what was learned laid over it. */
export function learnedSet(base: WeightSet, learned: LearnedWeights, version: number): WeightSet {
  return { ...base, version: `learned-${version}`, link: learned.levels.link, learned };
}

/** The set for one provider's bills: explanations that refusals named are more likely there. */
export function weightsFor(weights: WeightSet, provider: string): WeightSet {
  const raised = Object.entries(weights.learned?.rivals[provider] ?? {});
  if (raised.length === 0) return weights;
  const priors: Record<string, number> = { ...weights.priors };
  for (const [kind, { factor }] of raised) priors[kind] = (priors[kind] ?? weights.otherPrior) * factor;
  return { ...weights, priors };
}
