/** The gates of HIGH beside the probability, the calibrated probability, and the grade that follows. */

import { absPico } from '../../../money.js';
import type { Grade, Visibility, WaterfallStep } from '../../matching/cells.js';
import { gradeAt, lowerOf, tolerancePico } from '../../matching/classLines.js';
import type { Meter } from '../../matching/meters.js';
import {
  CERTAINTY_MAX,
  COVERAGE_MIN,
  FITTED,
  type Fitted,
  GRADED_DECIMALS,
  ODDS_MIN,
  REST_DIVISOR,
} from '../calibration.js';
import type { EvidenceNeed } from '../causes/cause.js';
import { areRefusalsTold } from '../causes/places.js';
import { givesCounts, type RunHistory, restsOnReports, touchedOf } from './doubts.js';
import { GATES, type Gate } from './finding.js';
import type { SeriesNoise } from './fit.js';
import type { JudgedDay, RunOfDays } from './judge.js';
import { isMixAssumed, type MeterReading } from './reading.js';
import type { DayState } from './states.js';

/** Agreement of sources on a price by which a provider may be accused. */
const AGREED: ReadonlySet<string> = new Set(['agree', 'contract']);

/** Facts of the series that gates of single days ask for. */
export interface GateFacts {
  noise: SeriesNoise;
  /** By day, what the explanations of its aspects predict together; absent: one aspect is all there is. */
  together: ReadonlyMap<string, DayState>;
}

export interface GateInput extends GateFacts {
  run: RunOfDays;
  history: RunHistory;
  odds: number;
}

type DayRule = (judged: JudgedDay, isRate: boolean, facts: GateFacts) => boolean;

/** The conditions of gates for every day by itself. */
const DAY_RULES = {
  closed_period: ({ work }) => !work.reading.day.evidence.provisional,
  quantity_present: (judged, isRate) => touchedOf(judged).every((meter) => isCertainOf(meter, isRate)),
  price_source_dated: (judged) => hasPrice(judged),
  price_sources_agree: (judged, isRate) => !isRate || pricesAgree(judged),
  classes_complete: (judged, isRate) => isComplete(judged, isRate),
  coverage_or_sealed_scope: (judged, isRate, { noise }) => isRate || isSealed(judged, noise),
  residual_within_tolerance: (judged, _, { together }) => isWithinTolerance(judged, together),
} satisfies Partial<Record<Gate, DayRule>>;

const ruleOf = (gate: Gate): DayRule | undefined => (DAY_RULES as Partial<Record<Gate, DayRule>>)[gate];

/** The gates that do not hold, in their fixed order. */
export function missingGates({ run, history, odds, ...facts }: GateInput): Gate[] {
  const { hypothesis } = run.state;
  if (!hypothesis) return [];
  // A price taken from a relative of the model is one only where the bill itself comes back to it.
  const hasOwnPrice =
    (history.rightBefore && history.rightAfter) || run.days.every(({ judged }) => !isBorrowed(judged));
  const isRate = hypothesis.nature === 'rate';
  // The gates of all days together; each gate is here or among the rules of a day.
  const together: Record<Exclude<Gate, keyof typeof DAY_RULES>, boolean> & Partial<Record<Gate, boolean>> = {
    price_source_dated: hasOwnPrice,
    price_sources_agree: !isRate || hasOwnPrice,
    residual_within_tolerance:
      (isRate || (isMostlyExplained(run) && givesCounts(run))) &&
      run.days.some(({ judged }) => !judged.shown?.isPartial),
    odds_against_next: odds >= ODDS_MIN,
    account_known: run.days.every(({ judged }) => judged.work.reading.day.evidence.accountKnown),
    // A price of one source has a gate of its own: one missing fact closes one gate.
    evidence_needed: hypothesis.needs.every(
      (need) => (isRate && need === 'second_price_source') || hasNeed(run, need, facts.noise),
    ),
  };
  const holds = (gate: Gate): boolean =>
    together[gate] !== false && run.days.every(({ judged }) => ruleOf(gate)?.(judged, isRate, facts) ?? true);
  return GATES.filter((gate) => !holds(gate));
}

/**
 * Whether a day of the run, by itself, satisfies each gate's condition for every day. What days have together
 * (odds, evidence, how much of their counts is explained) is not asked here.
 */
export function holdsAlone(run: RunOfDays, day: RunOfDays['days'][number], facts: GateFacts): boolean {
  const { hypothesis } = run.state;
  if (!hypothesis) return false;
  const isRate = hypothesis.nature === 'rate';
  return (
    Object.values<DayRule>(DAY_RULES).every((holds) => holds(day.judged, isRate, facts)) &&
    (isRate || isMostlyExplained({ ...run, days: [day] }))
  );
}

const isCertainOf = (meter: MeterReading, isRate: boolean): boolean =>
  meter.of.meter.quantity !== null && !(isRate && isMixAssumed(meter));

function everyTouched(run: RunOfDays, is: (meter: MeterReading) => boolean): boolean {
  return run.days.every(({ judged }) => touchedOf(judged).every(is));
}

function provenanceOf({ work }: JudgedDay) {
  const { day } = work.reading;
  return day.pricedAs === null ? null : day.agreed.provenance(day.pricedAs);
}

function isBorrowed({ work }: JudgedDay): boolean {
  const { agreed, pricedAs } = work.reading.day;
  return pricedAs !== null && agreed.isBorrowed(pricedAs);
}

const hasPrice = (judged: JudgedDay): boolean => (provenanceOf(judged)?.priceSource ?? '') !== '';

function pricesAgree(judged: JudgedDay): boolean {
  const provenance = provenanceOf(judged);
  const { day } = judged.work.reading;
  if (provenance === null || provenance.disputed) return false;
  if (!AGREED.has(provenance.agreement) && !day.agreed.isDocumented(day.pricedAs ?? '')) return false;
  const contested = new Set(day.agreed.contestedClasses(day.pricedAs ?? ''));
  return !touchedOf(judged).some(({ of }) => contested.has(of.tokenClass));
}

/**
 * Calls without usage, price or rate support no certain claim about quantities. A rate that bill and usage report show by
 * themselves needs no calls; a price that had to be assumed for a class is visible in the rate itself.
 */
function isComplete({ work }: JudgedDay, isRate: boolean): boolean {
  const calls = work.reading.day.evidence.observed.filter((cell) => cell.status !== 'error');
  if (isRate) return calls.every((cell) => cell.priceGaps === 0);
  return calls.every((cell) => cell.unpriced === 0 && cell.priceGaps === 0 && cell.unmetered === 0);
}

function isSealed({ work, shown }: JudgedDay, noise: SeriesNoise): boolean {
  if (!work.reading.comparable) return false;
  // The claim holds whatever the unobserved calls were.
  if (shown?.variant?.provenOf) return true;
  return (shown?.fit.coverage ?? noise.coverage) >= COVERAGE_MIN;
}

/**
 * The residual of the explanation on its meters, as the day's explanations of rates and of counts leave it together: a rate of
 * the same lines that has an explanation of its own is no doubt about their counts.
 */
function isWithinTolerance(judged: JudgedDay, together: GateFacts['together']): boolean {
  const { work, shown } = judged;
  if (!shown?.variant) return false;
  if (work.reading.depth !== 'quantities') return true;
  const { amounts } = (together.get(work.reading.day.day) ?? shown).prediction;
  let left = 0;
  for (const meter of touchedOf(judged)) {
    // Where a part is booked on another day, a line of several uses has another mixture than the day's report.
    const isMixed = meter.of.booked && meter.of.mix.length > 1;
    if (meter.rateEvidence === 'none' || (isMixed && judged.aspect === 'counts')) continue;
    const predicted = amounts[meter.of.index] ?? Number.NaN;
    left += Math.max(0, Math.abs(meter.amount - predicted) - meter.rateSigma);
  }
  const rounding = work.reading.meters.reduce((total, meter) => total + meter.of.meter.roundingPico, 0n);
  return left <= Number(tolerancePico(BigInt(Math.round(work.reading.billedAmount)), rounding));
}

/**
 * Little of the same days' counts is without an explanation: where many are off for an unknown reason, nothing is known
 * of the days' calls well enough. Too many of one do not hide too few of another. Where the provider's two reports contradict
 * each other, no call is asked.
 */
function isMostlyExplained({ days }: RunOfDays): boolean {
  let [explained, rest] = [0n, 0n];
  for (const { judged, impactPico } of days) {
    explained += absPico(impactPico);
    if (restsOnReports(judged)) continue;
    for (const { volumePico } of judged.parts.unexplained) rest += absPico(volumePico);
  }
  return rest * REST_DIVISOR <= explained;
}

/**
 * Whether the line states any circumstance of its use. A line of a class alone holds use of every place, and calls do not
 * report where they were served, so it shows no wrong place.
 */
const isUseStated = ({ isBatch, longContext, region }: Meter): boolean =>
  isBatch !== null || longContext !== null || region !== null;

function hasNeed(run: RunOfDays, need: EvidenceNeed, noise: SeriesNoise): boolean {
  const days = run.days.map(({ judged }) => judged);
  switch (need) {
    case 'quantity':
      return everyTouched(run, (meter) => meter.of.meter.quantity !== null);
    case 'second_price_source':
      return days.every(pricesAgree);
    case 'contract':
      return days.every((one) => provenanceOf(one)?.agreement === 'contract');
    case 'complete_classes':
      return days.every((one) => isComplete(one, false));
    case 'full_coverage':
      return days.every((one) => isSealed(one, noise));
    case 'failed_attempts':
      return everyDay(days, (one) => one.work.reading.meters.some(({ of }) => of.failed > 0n));
    case 'refusals_told':
      return days.every(({ work }) => areRefusalsTold(work.reading.day.evidence));
    case 'place':
      return everyTouched(run, ({ of }) => isUseStated(of.meter));
    case 'usage_report':
      return everyDay(days, (one) => one.work.reading.day.evidence.usage.length > 0);
  }
}

const everyDay = (days: readonly JudgedDay[], is: (day: JudgedDay) => boolean): boolean => days.every(is);

/** Band of the probability, lowered by missing gates and by what the bill shows. */
export function gradeOfRun(run: RunOfDays, probability: number, missing: readonly Gate[]): Grade {
  return run.days
    .map(({ judged }) => gradeAt(probability, missing.length, judged.work.reading.day.evidence.visibility))
    .reduce(lowerOf, run.state.hypothesis?.highest ?? 'HIGH');
}

/** The facts about a finding that its calibration depends on. */
export interface Calibrated {
  readonly blame: 'provider' | 'own' | 'none';
  readonly missing: readonly string[];
  readonly visibility: Visibility;
  /** Parts of days show it alone: their limit is already the share of them that is true (PARTS_ALONE_MAX). */
  readonly isParts?: boolean;
}

/** The probability that a finding is true, from its probability by the model alone. */
export function calibrated(probability: number, of: Calibrated, { lapse, surer }: Fitted = FITTED): number {
  if (of.missing.length === 0) return probability * (1 - lapse);
  return isShifted(of) ? Math.min(CERTAINTY_MAX, shifted(probability, surer)) : probability;
}

/** The shift was fitted to accusations beside quantities, so it moves no other finding. */
const isShifted = ({ blame, visibility, isParts = false }: Calibrated): boolean =>
  blame === 'provider' && !isParts && (visibility === 'V3' || visibility === 'V2');

/** The step of a waterfall that holds the shift of an accusation that lacks a gate. */
const CALIBRATION_SIGNAL = 'calibration';

/** That step, from the probability of the model to the calibrated one; none of findings that are not shifted. */
export function calibrationSteps(probability: number, of: Calibrated): WaterfallStep[] {
  if (of.missing.length === 0 || !isShifted(of) || probability <= 0) return [];
  const bits = bitsOf(calibrated(probability, of)) - bitsOf(probability);
  return [{ signal: CALIBRATION_SIGNAL, level: 'lacks_a_gate', bits }];
}

/** The parts of a finding that give its probability again: its gates and its waterfall. */
export interface Stated {
  readonly missing: readonly string[];
  readonly waterfall: readonly WaterfallStep[];
}

/** The probability of the model, from that of a finding. */
export function uncalibrated(probability: number, { missing, waterfall }: Stated): number {
  if (missing.length === 0) return probability / (1 - FITTED.lapse);
  const bits = stepsOf(waterfall).reduce((sum, step) => sum + step.bits, 0);
  return bits === 0 ? probability : shifted(probability, -bits * Math.LN2);
}

/** A finding's probability with other numbers than those that ship, for the benchmark. */
export function calibratedAgain(probability: number, of: Stated & Calibrated, fitted: Fitted): number {
  return calibrated(uncalibrated(probability, of), { ...of, isParts: !hasShift(of) }, fitted);
}

/** Whether the shift is of such findings. */
export const hasShift = ({ waterfall }: Stated): boolean => stepsOf(waterfall).length > 0;

/**
 * The probability that a finding's grade follows from, of the stated one: where a gate is missing no more than the model's.
 * Findings that lack a fact are true more often than the model says, all together; that makes no single one surer.
 */
export function gradedAs(probability: number, of: Stated): number {
  if (of.missing.length === 0) return probability;
  return Math.min(probability, Number(uncalibrated(probability, of).toFixed(GRADED_DECIMALS)));
}

const stepsOf = (waterfall: readonly WaterfallStep[]): readonly WaterfallStep[] =>
  waterfall.filter(({ signal }) => signal === CALIBRATION_SIGNAL);

export const bitsOf = (probability: number): number => Math.log2(probability / (1 - probability));

/** The probability whose log-odds are so many nats higher. */
function shifted(probability: number, nats: number): number {
  const odds = (probability / (1 - probability)) * Math.exp(nats);
  return Number.isFinite(odds) ? odds / (1 + odds) : 1;
}
