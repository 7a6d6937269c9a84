/**
 * The door of the engine: everything that other packages use of it. It explains a series' days and an account's findings;
 * nothing else of this folder is imported from outside (test/architecture.test.ts).
 */
export { keepDays } from './account/accountFindings.js';
export { explainAccount } from './account/explainAccount.js';
export { learnedTier } from './account/learned.js';
export { FITTED, type Fitted } from './calibration.js';
export type { MeterDay, SeriesDay } from './causes/cause.js';
export { HYPOTHESES } from './causes/library.js';
export type { MeterImpact } from './series/dollars.js';
export { type ExplainedImpacts, explainedImpactsOf, explainSeries } from './series/explainSeries.js';
export {
  BLAMES,
  type Blame,
  DIRECTIONS,
  type Direction,
  type Finding,
  type FindingDay,
  type FindingLine,
  GATES,
  type Gate,
  type SeriesExplanation,
} from './series/finding.js';
export {
  explanationFromJson,
  explanationToText,
  type FindingLineText,
  linesFromText,
  linesToText,
  reasonOf,
} from './series/findingText.js';
export { calibratedAgain, gradedAs, hasShift, uncalibrated } from './series/gates.js';
