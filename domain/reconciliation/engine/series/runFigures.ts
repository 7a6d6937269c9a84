/** P(match) of a finding: whether the charge is the observed usage at all, given the explanation. */

import { QUANTITY_ONE } from '../../../billing/billedRow.js';
import { absPico, type Pico } from '../../../money.js';
import type { WaterfallStep } from '../../matching/cells.js';
import { billedRate } from '../../matching/classLines.js';
import {
  type InvoiceTie,
  type LinkEvidence,
  linkProbability,
  linkWaterfall,
} from '../../matching/linkModels.js';
import type { FindingKind } from '../../taxonomy.js';
import type { WeightSet } from '../../weights/weightSet.js';
import { BITS_MAX, COUNTED_CENTS, COUNTS_APART, MIXTURES, ODDS_MAX } from '../calibration.js';
import type { MeterImpact } from './dollars.js';
import { restsOnReports, touchedOf } from './doubts.js';
import type { Finding, FindingDay, FindingLine } from './finding.js';
import { mixtureOf } from './fit.js';
import type { JudgedDay, RunOfDays } from './judge.js';
import { CENT, type DayReading } from './reading.js';
import { type DayState, NULL_STATE } from './states.js';

export interface Match {
  readonly probability: number;
  readonly waterfall: readonly WaterfallStep[];
}

function matchOf(
  judged: JudgedDay,
  state: DayState | undefined,
  weights: WeightSet,
  tie: InvoiceTie | undefined,
): Match {
  const waterfall = linkWaterfall(evidenceOf(judged, state), weights.link, tie ?? 'none');
  return { probability: linkProbability(waterfall), waterfall };
}

function evidenceOf(judged: JudgedDay, state: DayState | undefined): LinkEvidence {
  const { reading } = judged.work;
  const { evidence } = reading.day;
  const coverage = Math.min(1, state?.fit.coverage ?? 1);
  let [billed, predicted] = [0, 0];
  let isRight = true;
  let isExplained = true;
  reading.meters.forEach((one, at) => {
    const amount = state?.prediction.amounts[at] ?? Number.NaN;
    billed += one.amount;
    predicted += Number.isNaN(amount) ? one.amount : amount;
    if (one.rateEvidence !== 'none') {
      if (Math.abs(one.amount - Number(one.of.expectedPico ?? 0n)) > one.rounding) isRight = false;
      if (Math.abs(one.amount - amount) > Math.max(one.rounding, one.rateSigma)) isExplained = false;
    }
  });
  // A mistake that the bill shows by itself holds whatever its counts are; where they agree, they are evidence for the match.
  const worst =
    reading.comparable && reading.depth === 'quantities' ? worstClass(reading, state, coverage) : null;
  const isApart = worst !== null && worst > COUNTS_APART && showsAlone(judged);
  const total = reading.depth === 'quantities' ? predicted : predicted / coverage;
  return {
    model: evidence.level,
    worstQuantityDeviation: isApart ? null : worst,
    callDeviation: isApart ? null : callDeviationOf(reading, coverage),
    // A known mistake's amounts are as good as a known multiplier.
    rateRatio: reading.depth !== 'quantities' ? null : isExplained ? 2 : billed / Math.max(total, 1),
    rateWithinRounding: reading.depth === 'quantities' && isRight,
    totalDeviation: Math.abs(reading.billedAmount - total) / Math.max(reading.billedAmount, 1),
  };
}

/** Whether an explanation rests on the bill's own quantities and amounts, or its usage report's, and on nothing that calls show. */
function showsAlone(judged: JudgedDay): boolean {
  if (restsOnReports(judged)) return true;
  const touched = judged.aspect === 'rates' && judged.state.hypothesis ? touchedOf(judged) : [];
  return touched.length > 0 && touched.every(({ rateEvidence }) => rateEvidence === 'sharp');
}

/**
 * The class whose billed quantity is farthest from what the explanation makes of the calls, as a share; beyond what missing
 * calls leave. By class and not by line: the line of a call does not depend on the caller.
 */
function worstClass(reading: DayReading, state: DayState | undefined, coverage: number): number {
  const classes = new Map<string, { seen: number; usual: number; value: number; cutShare: number }>();
  reading.meters.forEach((one, at) => {
    const quantity = state?.prediction.quantities[at] ?? Number.NaN;
    if (Number.isNaN(quantity)) return;
    const known = classes.get(one.of.tokenClass) ?? { seen: 0, usual: 0, value: 0, cutShare: 0 };
    classes.set(one.of.tokenClass, {
      seen: known.seen + one.billed * coverage,
      usual: known.usual + quantity,
      value: known.value + one.value,
      cutShare: Math.max(known.cutShare, one.cutShare),
    });
  });
  let worst = 0;
  for (const { seen, usual, value, cutShare } of classes.values())
    if (value >= COUNTED_CENTS * CENT)
      worst = Math.max(worst, Math.abs(seen - usual) / Math.max(seen, usual, 1) - cutShare);
  return Math.max(0, worst - MIXTURES * mixtureOf(coverage, reading.calls));
}

function callDeviationOf({ day, meters, comparable }: DayReading, coverage: number): number | null {
  const { billed, usage, observed } = day.evidence;
  let requests = 0n;
  for (const one of [...billed, ...usage]) if (one.tokenClass === 'requests') requests += one.quantity ?? 0n;
  if (requests === 0n || !comparable || meters.length === 0) return null;
  const calls = observed.reduce((count, cell) => (cell.status === 'error' ? count : count + cell.calls), 0);
  const counted = (Number(requests) / Number(QUANTITY_ONE)) * coverage;
  return Math.abs(counted - calls) / Math.max(counted, 1);
}

const bitsOf = (natural: number): number => Math.max(-BITS_MAX, Math.min(BITS_MAX, natural / Math.LN2));

/**
 * Why this explanation and no other, in bits: its prior against the null's, what amounts and quantities of its strongest
 * day say, and what the other days and the rival explanations add or take. The four sum to the log-odds of its
 * probability before calibration.
 */
export function explanationSteps(run: RunOfDays, strongest: JudgedDay, probability: number): WaterfallStep[] {
  const none = strongest.work.states.get(NULL_STATE);
  const { shown } = strongest;
  const prior = bitsOf(run.state.logPrior);
  const amounts = shown && none ? bitsOf(shown.fit.rate - none.fit.rate) : 0;
  const quantities = shown && none ? bitsOf(shown.fit.quantity - none.fit.quantity) : 0;
  const total = bitsOf(Math.log(probability / (1 - probability)));
  return [
    { signal: 'explanation_prior', level: run.state.kind, bits: prior },
    { signal: 'explanation_amounts', level: levelOf(amounts), bits: amounts },
    { signal: 'explanation_quantities', level: levelOf(quantities), bits: quantities },
    {
      signal: 'days_and_rivals',
      level: run.days.length === 1 ? 'one_day' : 'several_days',
      bits: total - prior - amounts - quantities,
    },
  ];
}

function levelOf(bits: number): string {
  if (bits >= 1) return 'speaks_for';
  return bits <= -1 ? 'speaks_against' : 'says_nothing';
}

interface MatchInput {
  readonly together: ReadonlyMap<string, DayState>;
  readonly weights: WeightSet;
  readonly ties: ReadonlyMap<string, InvoiceTie> | undefined;
}

export function dayOf({ judged, impacts, impactPico }: RunOfDays['days'][number]): FindingDay {
  const sum = (of: (one: MeterImpact) => Pico) => impacts.reduce((total, one) => total + of(one), 0n);
  const billedPico = sum((one) => one.billedPico);
  return {
    day: judged.work.reading.day.day,
    billedPico,
    expectedPico: billedPico - impactPico,
    impactPico,
    ratePico: sum((one) => one.ratePico),
    volumePico: sum((one) => one.volumePico),
    ownPricingPico: 0n,
    probability: judged.alone,
  };
}

export const totalOf = (run: RunOfDays): Pico => run.days.reduce((total, day) => total + day.impactPico, 0n);

export function strongestOf(run: RunOfDays): RunOfDays['days'][number] {
  const [first, ...rest] = run.days;
  if (!first) throw new RangeError('a run has days');
  return rest.reduce((best, day) => (absPico(day.impactPico) > absPico(best.impactPico) ? day : best), first);
}

export function matchAt(judged: JudgedDay, input: MatchInput): Match {
  const { work, shown } = judged;
  const { day } = work.reading.day;
  const beside = shown ? (input.together.get(day) ?? shown) : shown;
  return matchOf(judged, beside, input.weights, input.ties?.get(day.slice(0, 7)));
}

/** Each day's share of the run's dollars. */
export function sharesOf(run: RunOfDays): number[] {
  const sizes = run.days.map(({ impactPico }) => Number(absPico(impactPico)));
  const all = sizes.reduce((total, size) => total + size, 0);
  return sizes.map((size) => (all > 0 ? size / all : 1 / sizes.length));
}

export function weighted(run: RunOfDays, shares: readonly number[], of: (one: JudgedDay) => number): number {
  return run.days.reduce((total, { judged }, at) => total + of(judged) * (shares[at] ?? 0), 0);
}

export function nextBest(
  run: RunOfDays,
  shares: readonly number[],
  own: FindingKind,
  probability: number,
): Finding['next'] {
  const kinds = new Set(run.days.flatMap(({ judged }) => [...judged.pooled.keys()]));
  let best: { kind: FindingKind | 'none'; p: number } | undefined;
  for (const kind of kinds) {
    if (kind === own) continue;
    const p = weighted(run, shares, (one) => one.pooled.get(kind) ?? 0);
    if (!best || p > best.p) best = { kind, p };
  }
  if (!best || best.p <= probability / ODDS_MAX) return null;
  return { kind: best.kind, odds: probability / best.p };
}

/** One line for each meter that the bill separates, over all days. */
export function linesOf(run: RunOfDays): FindingLine[] {
  const lines = new Map<string, { line: FindingLine; mixed: boolean; expectedOfBilled: Pico | null }>();
  for (const { impacts } of run.days) {
    for (const impact of impacts) {
      const { meter } = impact;
      const own = meter?.meter;
      const key = own
        ? [own.tokenClass, own.serviceTier, own.isBatch, own.longContext, own.region].join('|')
        : '';
      const known = lines.get(key);
      const expectedPico = impact.billedPico - impact.ratePico - impact.volumePico;
      const quantity = own?.quantity ?? null;
      lines.set(key, {
        mixed: (known?.mixed ?? false) || (meter?.mix.length ?? 2) > 1,
        expectedOfBilled: addKnown(known?.expectedOfBilled ?? 0n, meter?.expectedPico ?? null),
        line: {
          tokenClass: own?.tokenClass ?? 'other',
          serviceTier: own?.serviceTier ?? 'standard',
          isBatch: own?.isBatch ?? null,
          longContext: own?.longContext ?? null,
          region: own?.region ?? null,
          billedQuantity: known ? addKnown(known.line.billedQuantity, quantity) : quantity,
          observedQuantity: (known?.line.observedQuantity ?? 0n) + (meter?.observed ?? 0n),
          billedRate: null,
          expectedRate: null,
          billedPico: (known?.line.billedPico ?? 0n) + impact.billedPico,
          expectedPico: (known?.line.expectedPico ?? 0n) + expectedPico,
        },
      });
    }
  }
  return [...lines]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { line, mixed, expectedOfBilled }]) => {
      const quantity = line.billedQuantity;
      if (mixed || quantity === null || quantity <= 0n) return line;
      return {
        ...line,
        billedRate: billedRate(line.billedPico, quantity),
        expectedRate: expectedOfBilled === null ? null : billedRate(expectedOfBilled, quantity),
      };
    });
}

const addKnown = (a: bigint | null, b: bigint | null): bigint | null =>
  a === null || b === null ? null : a + b;
