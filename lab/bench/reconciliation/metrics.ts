/** Computes the metrics of a tally and compares them with their targets. */
import type { GeneratedVisibility } from '../../generators/world.js';
import { brierScore, expectedCalibrationError } from './calibration.js';
import type { Tally } from './tally.js';

/** Shares from 0 to 1; NaN if the denominator is zero. */
export interface Metrics {
  precisionHigh: number;
  /** Of findings from HIGH to LOW. */
  precision: number;
  /** Of the dollars that can pass the gates of HIGH. */
  recallHigh: number;
  /** Of all identifiable dollars, from HIGH to LOW. */
  recall: number;
  typeByDollars: number;
  typeByCount: number;
  calibrationError: number;
  brier: number;
  /** As a share of the billed dollars. */
  misattributed: number;
  unexplained: number;
  underPrecision: number;
  underRecall: number;
  /** Dollars claimed under some kind, as a share of mistakes outside the library. */
  unknownClaimed: number;
  /** Findings against the provider at HIGH, and below at MEDIUM. */
  high: number;
  medium: number;
  runMs: number;
}

export function metricsOf(tally: Tally): Metrics {
  const { claimed, right, under } = tally;
  const graded = (sums: Tally['claimed']) => sums.HIGH + sums.MEDIUM + sums.LOW;
  return {
    precisionHigh: right.HIGH / claimed.HIGH,
    precision: graded(right) / graded(claimed),
    recallHigh: tally.foundHigh / tally.eligible,
    recall: tally.found / tally.identifiable,
    typeByDollars: tally.typed / tally.typedOf,
    typeByCount: tally.namedFindings / tally.trueFindings,
    calibrationError: expectedCalibrationError(tally.predictions),
    brier: brierScore(tally.predictions),
    misattributed: tally.onClean / tally.spend,
    unexplained: tally.unexplained / tally.spend,
    underPrecision: under.right / under.claimed,
    underRecall: under.found / under.identifiable,
    unknownClaimed: tally.unknownClaimed / tally.unknown,
    high: tally.accusations.HIGH,
    medium: tally.accusations.MEDIUM,
    runMs: tally.runMs,
  };
}

/** A target for one metric. */
export interface Target {
  of: GeneratedVisibility | 'benign';
  words: string;
  value(metrics: Metrics): number;
  /** The minimum, or below the maximum, that reaches the target. */
  least?: number;
  most?: number;
}

/** The allowance by which worlds of the second generator may miss a target. */
export const SECOND_ALLOWANCE = 0.03;

export const TARGETS: readonly Target[] = [
  { of: 'V3', words: 'dollar precision of HIGH', value: (m) => m.precisionHigh, least: 0.98 },
  { of: 'V3', words: 'dollar recall of HIGH', value: (m) => m.recallHigh, least: 0.85 },
  { of: 'V3', words: 'type accuracy by dollars', value: (m) => m.typeByDollars, least: 0.97 },
  { of: 'V3', words: 'expected calibration error', value: (m) => m.calibrationError, most: 0.02 },
  { of: 'V3', words: 'misattributed, of spend', value: (m) => m.misattributed, most: 0.001 },
  { of: 'V1', words: 'dollar precision', value: (m) => m.precision, least: 0.95 },
  { of: 'V1', words: 'dollar recall', value: (m) => m.recall, least: 0.5 },
  { of: 'V1', words: 'findings at HIGH', value: (m) => m.high, most: 0 },
  { of: 'V0', words: 'findings above LOW', value: (m) => m.high + m.medium, most: 0 },
  { of: 'benign', words: 'findings at HIGH', value: (m) => m.high, most: 0 },
];

/** Targets for the mean over generators, each judged with what was fitted on the others. */
export const ROTATION_TARGETS: readonly Target[] = [
  { of: 'V3', words: 'dollar precision of HIGH', value: (m) => m.precisionHigh, least: 0.99 },
  { of: 'V3', words: 'dollar recall of HIGH', value: (m) => m.recallHigh, least: 0.8 },
  { of: 'V3', words: 'dollar recall at any grade', value: (m) => m.recall, least: 0.85 },
  { of: 'V3', words: 'type accuracy by dollars', value: (m) => m.typeByDollars, least: 0.97 },
  { of: 'V3', words: 'expected calibration error', value: (m) => m.calibrationError, most: 0.02 },
  { of: 'V3', words: 'misattributed, of spend', value: (m) => m.misattributed, most: 0.0005 },
  { of: 'V1', words: 'dollar precision', value: (m) => m.precision, least: 0.95 },
  { of: 'V1', words: 'dollar recall', value: (m) => m.recall, least: 0.5 },
  { of: 'V0', words: 'findings above LOW', value: (m) => m.high + m.medium, most: 0 },
  { of: 'benign', words: 'findings at HIGH', value: (m) => m.high, most: 0 },
];

/** Whether a metric reaches its target; NaN never does. */
export function isReached(target: Target, metrics: Metrics, allowance = 0): boolean {
  const value = target.value(metrics);
  const isCount = target.most === 0;
  const slack = isCount ? 0 : allowance;
  if (target.least !== undefined) return value >= target.least - slack;
  return value <= (target.most ?? 0) + slack;
}
