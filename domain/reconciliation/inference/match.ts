/** P(match) of a finding: whether the charge is the observed usage at all, given the explanation. */
import { QUANTITY_ONE } from '../../billing/billedRow.js';
import type { WaterfallStep } from '../matching/cells.js';
import {
  type InvoiceTie,
  type LinkEvidence,
  linkProbability,
  linkWaterfall,
} from '../matching/linkModels.js';
import type { WeightSet } from '../weights/weightSet.js';
import { mixtureOf } from './fit.js';
import { CENT, type DayReading } from './reading.js';
import type { DayState } from './states.js';

export interface Match {
  readonly probability: number;
  readonly waterfall: readonly WaterfallStep[];
}

export function matchOf(
  reading: DayReading,
  state: DayState | undefined,
  weights: WeightSet,
  tie: InvoiceTie | undefined,
): Match {
  const waterfall = linkWaterfall(evidenceOf(reading, state), weights.link, tie ?? 'none');
  return { probability: linkProbability(waterfall), waterfall };
}

/** Deviations up to twice what missed calls leave by their mixture are the coverage's, not the charge's. */
const MIXTURES = 2;

function evidenceOf(reading: DayReading, state: DayState | undefined): LinkEvidence {
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
  const total = reading.depth === 'quantities' ? predicted : predicted / coverage;
  return {
    model: evidence.level,
    worstQuantityDeviation:
      reading.comparable && reading.depth === 'quantities' ? worstClass(reading, state, coverage) : null,
    callDeviation: callDeviationOf(reading, coverage),
    // A known mistake's amounts are as good as a known multiplier.
    rateRatio: reading.depth !== 'quantities' ? null : isExplained ? 2 : billed / Math.max(total, 1),
    rateWithinRounding: reading.depth === 'quantities' && isRight,
    totalDeviation: Math.abs(reading.billedAmount - total) / Math.max(reading.billedAmount, 1),
  };
}

/**
 * The class whose billed quantity is farthest from what the explanation makes of the calls, as a share; beyond what missing
 * calls leave. By class and not by line: which of its lines a call stands on is no matter of whose call it is.
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
    if (value >= 10 * CENT)
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
