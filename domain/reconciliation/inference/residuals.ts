/** What a day of a series has too many or too few of, for whoever compares series with each other. */
import type { TokenClass } from '../../events/event.js';
import type { Pico } from '../../money.js';
import type { MeterDay, SeriesDay } from '../hypotheses/hypothesis.js';
import { amountAs } from '../hypotheses/predict.js';
import { areModelsAnswered } from '../hypotheses/told.js';
import { sumKnown } from '../matching/classLines.js';
import type { Excess, FindingLine, ResidualDay } from './finding.js';
import type { SeriesNoise } from './fit.js';
import { billedPicoOf, CENT, type DayReading, type MeterReading } from './reading.js';

/** Deviations of this many standard deviations are passed on to who compares series. */
const RESIDUAL_SIGMAS = 4;

/**
 * What a series' bill and calls differ by, by class: beyond its usual coverage or, since calls may be missing under another
 * model's name on all days, beyond none. Empty where that is nothing to speak of.
 */
export function residualOf(reading: DayReading, noise: SeriesNoise): ResidualDay[] {
  const { day } = reading;
  const { evidence } = day;
  // A day without a bill is billed too little of everything: another series may hold it.
  const isUnbilled = evidence.billed.length === 0 && evidence.fixedReason === null;
  if ((reading.depth === 'total' && !isUnbilled) || evidence.notYetObserved) return [];
  const sums = reading.meters.map((one) => sumsOf(day, one, isUnbilled));
  if (!reading.meters.some((one, at) => isNotable(one, sums[at], noise))) return [];
  return [
    {
      day: day.day,
      visibility: evidence.visibility,
      beyondUsual: excessOf(reading, sums, noise.coverage),
      beyondSeen: excessOf(reading, sums, 1),
      billedPico: billedPicoOf(day),
      expectedOfBilledPico: sumKnown(sums.map((one) => one.billedPico)),
      expectedOfObservedPico: sumKnown(sums.map((one) => one.observedPico)),
      provisional: evidence.provisional,
      namedByAnswer: areModelsAnswered(evidence),
      lines: reading.meters.map(({ of }, at): FindingLine => lineOf(of, sums[at]?.observedPico ?? 0n)),
    },
  ];
}

/** A meter's two sides. Tokens in 1e-12, null where the bill gives none; dollars at the agreed rates, null where unknown. */
interface Sums {
  billed: bigint | null;
  billedPico: Pico | null;
  observed: bigint;
  observedPico: Pico | null;
}

function sumsOf(day: SeriesDay, { of }: MeterReading, isUnbilled: boolean): Sums {
  const { quantity, amountPico } = of.meter;
  const seen = { observed: of.observed, observedPico: amountAs(day, of, of.observed) };
  if (isUnbilled) return { ...seen, billed: 0n, billedPico: 0n };
  // An amount alone is its own cost: which rates it was charged at, nobody can see.
  return { ...seen, billed: quantity, billedPico: quantity === null ? amountPico : of.expectedPico };
}

function excessOf({ meters }: DayReading, sums: readonly Sums[], coverage: number): Excess {
  const tokens: Partial<Record<TokenClass, bigint>> = {};
  const pico: Partial<Record<TokenClass, Pico>> = {};
  meters.forEach(({ of: { tokenClass } }, at) => {
    const one = sums[at];
    if (!one) return;
    if (one.billed !== null)
      tokens[tokenClass] = (tokens[tokenClass] ?? 0n) + one.billed - asUsual(one.observed, coverage);
    if (one.billedPico !== null && one.observedPico !== null)
      pico[tokenClass] = (pico[tokenClass] ?? 0n) + one.billedPico - asUsual(one.observedPico, coverage);
  });
  return { tokens, pico };
}

/** What there should be where so much of it is seen: an estimate, by which days are compared and nothing is claimed. */
const asUsual = (observed: bigint, coverage: number): bigint =>
  coverage === 1 ? observed : BigInt(Math.round(Number(observed) / coverage));

function isNotable({ value }: MeterReading, sums: Sums | undefined, noise: SeriesNoise): boolean {
  if (!sums) return false;
  const [billed, observed] =
    sums.billed === null
      ? [Number(sums.billedPico ?? 0n), Number(sums.observedPico ?? 0n)]
      : [Number(sums.billed), Number(sums.observed)];
  const whole = Math.max(billed, observed, 1);
  return [noise.coverage, 1].some((coverage) => {
    const share = Math.abs(billed - observed / coverage) / whole;
    return value * share > 10 * CENT && share > RESIDUAL_SIGMAS * noise.quantitySigma;
  });
}

function lineOf({ meter, tokenClass, observed }: MeterDay, expectedPico: Pico): FindingLine {
  const { serviceTier, isBatch, longContext, region, quantity, amountPico } = meter;
  const rates = { billedRate: null, expectedRate: null };
  const at = { tokenClass, serviceTier, isBatch, longContext, region };
  return {
    ...at,
    ...rates,
    billedQuantity: quantity,
    observedQuantity: observed,
    billedPico: amountPico,
    expectedPico,
  };
}
