/**
 * Calibration that is fitted on other generators than it is judged on. The form is that of the engine
 * (engine/calibration.ts): a finding of probability p is true with (1 − lapse) · p, with one lapse rate for findings
 * that have all gates and one for those that lack some.
 *
 * A free curve (isotonic regression on finding-days) overfits: days of one finding share probability and truth, so that
 * a hundred days are often three findings. Therefore a finding counts as its days up to a cap, and each rate begins at
 * a prior.
 */
import { type Finding, uncalibrated } from '../../../domain/reconciliation/engine/index.js';
import { gradeAt, lowerOf } from '../../../domain/reconciliation/matching/classLines.js';
import type { Prediction } from './calibration.js';
import { accuses } from './matchTruth.js';

/** Shares from 0 to 1 of findings that are wrong whatever their probability is. */
export interface LapseRates {
  readonly allGates: number;
  readonly missingGate: number;
}

/** One day of a finding, true (1) or false (0). */
export interface FindingDayOutcome extends Prediction {
  readonly finding: Finding;
}

/** Days of one finding are not independent: it counts as this many at most. */
const DAYS_OF_A_FINDING_MAX = 5;
/** The prior: so many days of other findings, of which this share lapsed. */
const PRIOR_DAYS = 50;
const PRIOR_LAPSE = 0.01;
/** Steps of expectation and maximization; the likelihood has one maximum. */
const STEPS = 500;

/** The most probable lapse rates of these finding-days; without any they are the prior's. */
export function fitLapseRates(days: readonly FindingDayOutcome[]): LapseRates {
  const findings = findingsOf(days);
  const of = (hasAll: boolean) => lapseOf(findings.filter((one) => one.hasAllGates === hasAll));
  return { allGates: of(true), missingGate: of(false) };
}

interface FindingOutcome {
  /** By the model alone. */
  probability: number;
  hasAllGates: boolean;
  weight: number;
  trueShare: number;
}

function findingsOf(days: readonly FindingDayOutcome[]): FindingOutcome[] {
  const sums = new Map<Finding, { days: number; true: number }>();
  for (const { finding, outcome } of days) {
    const sum = sums.get(finding) ?? { days: 0, true: 0 };
    sums.set(finding, { days: sum.days + 1, true: sum.true + outcome });
  }
  return [...sums].map(([{ probability, missing }, sum]) => ({
    probability: uncalibrated(probability, missing.length),
    hasAllGates: missing.length === 0,
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

/** The probability that these rates make of the engine's. */
export function probabilityBy({ probability, missing }: Finding, rates: LapseRates): number {
  const byModel = uncalibrated(probability, missing.length);
  return byModel * (1 - (missing.length === 0 ? rates.allGates : rates.missingGate));
}

/**
 * Findings against the provider with probabilities of these rates, and the grades of these. A grade that something else
 * than probability, gates and visibility had lowered is not raised.
 */
export function recalibrated(findings: readonly Finding[], rates: LapseRates): Finding[] {
  return findings.map((finding) => {
    if (!accuses(finding)) return finding;
    const { missing, visibility } = finding;
    const probability = probabilityBy(finding, rates);
    if (finding.grade === 'UNVERIFIED') return { ...finding, probability };
    const grade = gradeAt(probability, missing.length, visibility);
    const isLowered = finding.grade !== gradeAt(finding.probability, missing.length, visibility);
    return { ...finding, probability, grade: isLowered ? lowerOf(finding.grade, grade) : grade };
  });
}
