/**
 * Calibration that is fitted on other generators than it is judged on. The form is that of the engine
 * (engine/calibration.ts): of a finding with all gates, one lapse rate is taken off the probability, and the log-odds of a
 * finding that lacks some are shifted.
 *
 * A free curve (isotonic regression on finding-days) overfits: days of one finding share probability and truth, so that
 * a hundred days are often three findings. Therefore a finding counts as its days up to a cap, and each number begins at
 * a prior.
 */
import {
  calibratedAgain,
  type Finding,
  type Fitted,
  gradedAs,
  hasShift,
  uncalibrated,
} from '../../../domain/reconciliation/engine/index.js';
import { gradeAt, lowerOf } from '../../../domain/reconciliation/matching/classLines.js';
import type { Prediction } from './calibration.js';
import { accuses } from './matchTruth.js';

/** One day of a finding, true (1) or false (0). */
export interface FindingDayOutcome extends Prediction {
  readonly finding: Finding;
}

/** Days of one finding are not independent: it counts as this many at most. */
const DAYS_OF_A_FINDING_MAX = 5;
/** The prior: so many days of other findings, of which this share lapsed. */
const PRIOR_DAYS = 50;
const PRIOR_LAPSE = 0.01;
/** Standard deviation of the prior of the shift about none, in nats. */
const PRIOR_SHIFT = 1;
/** Steps of expectation and maximization, and of bisection; each likelihood has one maximum. */
const STEPS = 500;
/** Bounds of the shift in nats. */
const SHIFT_MAX = 5;

/** The most probable numbers for these finding-days; without any they are the prior's. */
export function fitCalibrated(days: readonly FindingDayOutcome[]): Fitted {
  const findings = findingsOf(days);
  return {
    lapse: lapseOf(findings.filter((one) => one.hasAllGates)),
    surer: shiftOf(findings.filter((one) => one.hasShift)),
  };
}

interface FindingOutcome {
  /** By the model alone. */
  probability: number;
  hasAllGates: boolean;
  hasShift: boolean;
  weight: number;
  trueShare: number;
}

function findingsOf(days: readonly FindingDayOutcome[]): FindingOutcome[] {
  const sums = new Map<Finding, { days: number; true: number }>();
  for (const { finding, outcome } of days) {
    const sum = sums.get(finding) ?? { days: 0, true: 0 };
    sums.set(finding, { days: sum.days + 1, true: sum.true + outcome });
  }
  return [...sums].map(([finding, sum]) => ({
    probability: uncalibrated(finding.probability, finding),
    hasAllGates: finding.missing.length === 0,
    hasShift: hasShift(finding),
    weight: Math.min(sum.days, DAYS_OF_A_FINDING_MAX),
    trueShare: sum.true / sum.days,
  }));
}

function lapseOf(findings: readonly FindingOutcome[]): number {
  const all = findings.reduce((sum, one) => sum + one.weight, PRIOR_DAYS);
  let lapse = PRIOR_LAPSE;
  for (let step = 0; step < STEPS; step += 1) {
    let lapsed = PRIOR_DAYS * PRIOR_LAPSE;
    // A false finding lapsed, or was one of those that its own probability leaves open.
    for (const { probability, weight, trueShare } of findings)
      lapsed += (weight * (1 - trueShare) * lapse) / (lapse + (1 - lapse) * (1 - probability));
    lapse = lapsed / all;
  }
  return lapse;
}

/** The shift at which as many findings are true as probabilities and prior expect. */
function shiftOf(findings: readonly FindingOutcome[]): number {
  let [low, high] = [-SHIFT_MAX, SHIFT_MAX];
  for (let step = 0; step < STEPS; step += 1) {
    const shift = (low + high) / 2;
    let more = -shift / PRIOR_SHIFT ** 2;
    for (const { probability, weight, trueShare } of findings) {
      const odds = (probability / (1 - probability)) * Math.exp(shift);
      more += weight * (trueShare - odds / (1 + odds));
    }
    if (more > 0) low = shift;
    else high = shift;
  }
  return (low + high) / 2;
}

/** The probability that these numbers make of the engine's. */
export function probabilityBy(finding: Finding, fitted: Fitted): number {
  return calibratedAgain(finding.probability, finding, fitted);
}

/**
 * Findings against the provider with probabilities of these numbers, and the grades of these: where a gate is missing, not
 * above that of the model. A grade that something else than probability, gates and visibility had lowered is not raised.
 */
export function recalibrated(findings: readonly Finding[], fitted: Fitted): Finding[] {
  return findings.map((finding) => {
    if (!accuses(finding)) return finding;
    const { missing, visibility } = finding;
    const probability = probabilityBy(finding, fitted);
    if (finding.grade === 'UNVERIFIED') return { ...finding, probability };
    const own = gradedAs(finding.probability, finding);
    const by = missing.length === 0 ? probability : Math.min(probability, own);
    const grade = gradeAt(by, missing.length, visibility);
    const isLowered = finding.grade !== gradeAt(own, missing.length, visibility);
    return { ...finding, probability, grade: isLowered ? lowerOf(finding.grade, grade) : grade };
  });
}
