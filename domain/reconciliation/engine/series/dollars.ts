/**
 * The dollars of a day: what an explanation takes of each meter's difference and what it leaves, to the pico-dollar. A
 * meter's difference between bill and right is rate (amount − quantity at the agreed rates) plus volume (what too many
 * units cost at them). No dollar is in two parts.
 */

import { QUANTITY_ONE } from '../../../billing/billedRow.js';
import { TOKEN_CLASSES, type TokenClass } from '../../../events/event.js';
import { absPico, divideHalfEven, type Pico } from '../../../money.js';
import { sumKnown } from '../../matching/classLines.js';
import { COUNTED_CENTS, NOISE_DIVISOR, RESIDUAL_SIGMAS, SCATTER } from '../calibration.js';
import { asBooked } from '../causes/bookedLate.js';
import type { MeterDay, SeriesDay, Variant } from '../causes/cause.js';
import { areModelsAnswered } from '../causes/places.js';
import { amountAs } from '../causes/predict.js';
import type { Excess, FindingLine, ResidualDay, ResidualUse } from './finding.js';
import { type Aspect, type SeriesNoise, sigmaOf } from './fit.js';
import { billedPicoOf, CENT, type DayReading, isMixAssumed, type MeterReading } from './reading.js';
import type { DayState, DayWork } from './states.js';

/** One meter's share in a difference; `meter` null: the day's bill as a whole. */
export interface MeterImpact {
  readonly meter: MeterDay | null;
  readonly billedPico: Pico;
  readonly ratePico: Pico;
  readonly volumePico: Pico;
  /** The units, of those billed, that the volume leaves as right; absent where the amounts were not made of units. */
  readonly rightQuantity?: bigint;
}

export interface DayParts {
  /** The part that the explanation accounts for. */
  readonly explained: readonly MeterImpact[];
  /** The part without any account: neither it, nor coverage, nor rounding. */
  readonly unexplained: readonly MeterImpact[];
}

/** A day without a difference. */
export const NO_PARTS: DayParts = { explained: [], unexplained: [] };

export const impactOf = (parts: readonly MeterImpact[]): Pico =>
  parts.reduce((total, part) => total + part.ratePico + part.volumePico, 0n);

const CENT_PICO = BigInt(CENT);

/** A state's division of the part of a day that its aspect is about. */
export function partsOf(
  aspect: Aspect,
  { reading, right }: Pick<DayWork, 'reading' | 'right'>,
  state: DayState | undefined,
  noise: SeriesNoise,
): DayParts {
  if (reading.depth === 'total') return partsOfTotal(reading, state, noise);
  const explained: MeterImpact[] = [];
  const unexplained: MeterImpact[] = [];
  const coverage = state?.fit.coverage ?? noise.coverage;
  reading.meters.forEach((one, at) => {
    const variant = state?.variant?.touches(one.of) ? state.variant : null;
    const predictions = state?.prediction.quantities;
    const [taken, left] =
      one.of.meter.quantity === null
        ? partsOfAmount(reading, one, variant, coverage, noise)
        : aspect === 'rates'
          ? partsOfRate(one, variant, right.amounts[at] ?? Number.NaN)
          : partsOfCount(reading, one, variant, predictions, coverage, noise);
    if (taken) explained.push(taken);
    if (left) unexplained.push(left);
  });
  return { explained, unexplained };
}

type Taken = readonly [taken: MeterImpact | null, left: MeterImpact | null];

/** The rate: amount − quantity at the agreed rates. `right`: what the counts' own explanation makes of the amount. */
function partsOfRate(one: MeterReading, variant: Variant | null, right: number): Taken {
  const { of } = one;
  const expected = of.expectedPico;
  if (expected === null) return [null, null];
  const rate = one.rateEvidence === 'none' ? 0n : of.meter.amountPico - expected;
  const part = { meter: of, billedPico: of.meter.amountPico, ratePico: rate, volumePico: 0n };
  if (variant) return [{ ...part, rightQuantity: of.meter.quantity ?? 0n }, null];
  const noise = max(of.meter.roundingPico + 1n, absPico(expected) / NOISE_DIVISOR);
  const isNoise = absPico(rate) <= noise || Math.abs(one.amount - right) <= Number(noise);
  return [null, isNoise || !tellsRate(one, rate) ? null : part];
}

/** The volume; and the rate where moved calls change it. */
function partsOfCount(
  reading: DayReading,
  one: MeterReading,
  variant: Variant | null,
  predictions: readonly number[] | undefined,
  coverage: number,
  noise: SeriesNoise,
): Taken {
  const { of } = one;
  const billed = of.meter.quantity ?? 0n;
  const expected = of.expectedPico;
  if (expected === null) return [null, null];
  const taken = variant ? excessOf(of, variant, coverage) : 0n;
  const atRates = amountAs(reading.day, of, billed - taken);
  const changesRate = one.rateEvidence !== 'none' && variant && variant.amountOf(of, billed) !== expected;
  const rate = changesRate ? of.meter.amountPico - expected : 0n;
  // Units too many cost no more than the line charged: free or cheaper ones are no loss at the agreed rates.
  let charged = max(0n, of.meter.amountPico) - rate;
  const worth = variant?.worthOf?.(of, absPico(taken)) ?? null;
  const whole = worth === null ? expected - (atRates ?? expected) : taken < 0n ? -worth : worth;
  const volume = taken === 0n ? 0n : min(whole, charged);
  charged -= max(0n, volume);
  const rest = min(
    restOfVolume(reading, one, billed - taken, atRates ?? expected, predictions, coverage, noise, taken),
    charged,
  );
  return [
    variant
      ? {
          meter: of,
          billedPico: of.meter.amountPico,
          ratePico: rate,
          volumePico: volume,
          rightQuantity: billed - taken,
        }
      : null,
    rest === 0n ? null : { meter: of, billedPico: of.meter.amountPico, ratePico: 0n, volumePico: rest },
  ];
}

/**
 * Whether the meter shows by itself that its rate is another: where calls determine the mix, beyond their uncertainty.
 */
function tellsRate(one: MeterReading, rate: Pico): boolean {
  if (one.rateEvidence !== 'soft') return one.rateEvidence === 'sharp';
  return !isMixAssumed(one) && Math.abs(Number(rate)) > SCATTER * one.rateSigma;
}

/** The units too many that the variant explains: never more than the bill has too many, nor of another sign. */
function excessOf(of: MeterDay, variant: Variant, coverage: number): bigint {
  const billed = of.meter.quantity ?? 0n;
  if (variant.provenOf) return variant.provenOf(of);
  const predicted = variant.quantityOf(of);
  if (predicted === null) {
    // More than was seen, and less than is usual for it, is neither too many units nor too few.
    const beyondUsual = billed - BigInt(Math.round(Number(of.observed) / coverage));
    return beyondUsual > 0n === billed > of.observed ? beyondUsual : 0n;
  }
  const used = variant.isOfBooking ? of.observed : asBooked(of, of.observed);
  const said = (variant.isOfBooking ? predicted : asBooked(of, predicted)) - used;
  const excess = billed - used;
  if (said === 0n || said > 0n !== excess > 0n) return 0n;
  // Of a day that holds a part of what is predicted, the rest of the excess may be unobserved calls.
  const beyondUnseen = coverage < 1 ? BigInt(Math.round(Number(billed) * coverage)) - used : excess;
  const seen = said > 0n && beyondUnseen > 0n && beyondUnseen < said ? beyondUnseen : excess;
  return absPico(said) < absPico(seen) ? said : seen;
}

function restOfVolume(
  reading: DayReading,
  one: MeterReading,
  remaining: bigint,
  atRates: Pico,
  predictions: readonly number[] | undefined,
  coverage: number,
  noise: SeriesNoise,
  taken: bigint,
): Pico {
  if (!reading.comparable) return 0n;
  const predicted = predictions?.[one.of.index];
  const quantity = predicted === undefined || Number.isNaN(predicted) ? one.billed * coverage : predicted;
  const sigma = Math.hypot(sigmaOf(one, noise), CENT / Math.max(one.value, 1));
  if (isScatter(one.billed * coverage, quantity, sigma)) return 0n;
  if (one.of.booked && isClassScatter(reading, one, predictions, coverage, noise)) return 0n;
  const usual = BigInt(Math.round((quantity - Number(taken) * coverage) / coverage));
  const usualPico = amountAs(reading.day, one.of, usual > 0n ? usual : 0n);
  const rest = usualPico === null || remaining === usual ? 0n : atRates - usualPico;
  // Services miss calls of different mixes: a line with more than was seen lacks nothing because other lines have still more.
  if (rest < 0n && taken === 0n && one.billed >= one.observed) return 0n;
  return absPico(rest) <= CENT_PICO ? 0n : rest;
}

/** Of a class of which a part is booked on another day, lines show nothing by themselves. */
function isClassScatter(
  { meters }: DayReading,
  one: MeterReading,
  predictions: readonly number[] | undefined,
  coverage: number,
  noise: SeriesNoise,
): boolean {
  let [billed, predicted] = [0, 0];
  meters.forEach((other, at) => {
    if (other.of.tokenClass !== one.of.tokenClass) return;
    billed += other.billed * coverage;
    predicted += predictions?.[at] ?? Number.NaN;
  });
  return isScatter(billed, predicted, sigmaOf(one, noise));
}

function isScatter(billed: number, predicted: number, sigma: number): boolean {
  if (billed <= 0 || predicted <= 0) return billed === predicted;
  return Math.abs(Math.log(billed / predicted)) <= SCATTER * sigma;
}

/** Amounts alone: what is right is the amount's share that the null predicts of what the variant does. */
function partsOfAmount(
  reading: DayReading,
  one: MeterReading,
  variant: Variant | null,
  coverage: number,
  noise: SeriesNoise,
): Taken {
  const { of } = one;
  const amount = of.meter.amountPico;
  if (!reading.comparable) return [null, null];
  const right = amountAs(reading.day, of, of.observed);
  if (right === null) return [null, null];
  const quantity = variant?.quantityOf(of) ?? null;
  // The bill charges usage of another meter there, not here: without this case the other's whole amount would be claimed.
  if (amount <= 0n && !(variant && quantity === 0n)) return [null, null];
  if (variant?.provenOf) {
    const units = variant.provenOf(of);
    const worth = amountAs(reading.day, of, absPico(units));
    return [worth === null ? null : impactOn(of, amount, units < 0n ? -worth : worth, variant, of), null];
  }
  if (variant) {
    const predicted = quantity === null ? null : variant.amountOf(of, quantity);
    const share =
      predicted === null || predicted <= 0n
        ? BigInt(Math.round(Number(right) / coverage))
        : divideHalfEven(amount * right, predicted);
    return [impactOn(of, amount, amount - share, variant, of), null];
  }
  const usual = Number(right) / coverage;
  if (isScatter(one.amount, usual, Math.hypot(sigmaOf(one, noise), CENT / Math.max(one.value, 1))))
    return [null, null];
  const rest = amount - BigInt(Math.round(usual));
  return [
    null,
    absPico(rest) <= CENT_PICO ? null : { meter: of, billedPico: amount, ratePico: 0n, volumePico: rest },
  ];
}

function impactOn(
  meter: MeterDay | null,
  billedPico: Pico,
  impact: Pico,
  variant: Variant,
  of: MeterDay,
): MeterImpact {
  const isRate = variant.quantityOf(of) === of.observed;
  return { meter, billedPico, ratePico: isRate ? impact : 0n, volumePico: isRate ? 0n : impact };
}

/** One amount for everything. */
function partsOfTotal(reading: DayReading, state: DayState | undefined, noise: SeriesNoise): DayParts {
  const amount = billedPicoOf(reading.day);
  const coverage = state?.fit.coverage ?? noise.coverage;
  const right = sumOf(reading, null);
  if (!reading.comparable || amount <= 0n || right === null || right <= 0n) return NO_PARTS;
  const variant = state?.variant ?? null;
  const first = reading.meters.find(({ of }) => variant?.touches(of));
  if (variant && first) {
    const predicted = sumOf(reading, variant);
    if (predicted === null || predicted <= 0n) return NO_PARTS;
    const impact = amount - divideHalfEven(amount * right, predicted);
    return { explained: [impactOn(null, amount, impact, variant, first.of)], unexplained: [] };
  }
  const usual = Number(right) / coverage;
  if (isScatter(Number(amount), usual, Math.hypot(noise.quantitySigma, CENT / Number(amount))))
    return NO_PARTS;
  const rest = amount - BigInt(Math.round(usual));
  return {
    explained: [],
    unexplained: [{ meter: null, billedPico: amount, ratePico: 0n, volumePico: rest }],
  };
}

function sumOf(reading: DayReading, variant: Variant | null): Pico | null {
  let total = 0n;
  for (const { of } of reading.meters) {
    const touched = variant?.touches(of) ? variant : null;
    const quantity = touched ? touched.quantityOf(of) : of.observed;
    if (quantity === null) return null;
    const amount = touched ? touched.amountOf(of, quantity) : amountAs(reading.day, of, quantity);
    if (amount === null) return null;
    total += amount;
  }
  return total;
}

const max = (a: Pico, b: Pico): Pico => (a > b ? a : b);
const min = (a: Pico, b: Pico): Pico => (a < b ? a : b);

/**
 * The difference of a series' bill and calls, by class: beyond its usual coverage or, since calls may be missing under
 * another model's name on all days, beyond none. Empty where that is nothing to speak of.
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
      beyondUsual: dayExcessOf(reading, sums, noise.coverage),
      beyondSeen: dayExcessOf(reading, sums, 1),
      billedPico: billedPicoOf(day),
      expectedOfBilledPico: sumKnown(sums.map((one) => one.billedPico)),
      expectedOfObservedPico: sumKnown(sums.map((one) => one.observedPico)),
      provisional: evidence.provisional,
      namedByAnswer: areModelsAnswered(evidence),
      lines: reading.meters.map(({ of }, at): FindingLine => lineOf(of, sums[at]?.observedPico ?? 0n)),
      uses: usesOf(day),
      untoldDiscount: day.untoldDiscount ?? 0,
    },
  ];
}

/** Both sides of the day by class and kind of use; none where a part of the use is charged on another day. */
function usesOf({ evidence, meters, agreed }: SeriesDay): ResidualUse[] {
  if (meters.some(({ booked }) => booked)) return [];
  const uses = new Map<string, ResidualUse>();
  const add = (at: Omit<ResidualUse, 'seen' | 'billed'>, seen: bigint, billed: bigint) => {
    if (seen === 0n && billed === 0n) return;
    const key = JSON.stringify(Object.values(at));
    const known = uses.get(key) ?? { ...at, seen: 0n, billed: 0n };
    uses.set(key, { ...known, seen: known.seen + seen, billed: known.billed + billed });
  };
  for (const { status, tokens, serviceTier, isBatch, contextBand } of evidence.observed) {
    if (status === 'error') continue;
    const at = { serviceTier: agreed.tier(serviceTier), isBatch, longContext: contextBand > 0, region: null };
    for (const tokenClass of TOKEN_CLASSES) add({ tokenClass, ...at }, tokens[tokenClass] * QUANTITY_ONE, 0n);
  }
  for (const { meter, tokenClass } of meters)
    for (const { circumstances, quantity, tokenClass: own = tokenClass } of meter.parts) {
      const { serviceTier, isBatch, longContext, contextBand, region } = circumstances;
      const at = { serviceTier, isBatch, longContext: longContext || contextBand > 0, region };
      add({ tokenClass: own, ...at }, 0n, quantity);
    }
  return [...uses.values()];
}

/**
 * A meter's two sides. Tokens in 1e-12, null where the bill has none; dollars at the agreed rates, null where unknown.
 */
interface Sums {
  billed: bigint | null;
  billedPico: Pico | null;
  observed: bigint;
  observedPico: Pico | null;
}

function sumsOf(day: SeriesDay, { of }: MeterReading, isUnbilled: boolean): Sums {
  const { quantity, amountPico } = of.meter;
  const used = asBooked(of, of.observed);
  const seen = { observed: used, observedPico: amountAs(day, of, used) };
  if (isUnbilled) return { ...seen, billed: 0n, billedPico: 0n };
  // An amount alone is its own cost: the rates at which it was charged are not visible.
  return { ...seen, billed: quantity, billedPico: quantity === null ? amountPico : of.expectedPico };
}

function dayExcessOf({ meters }: DayReading, sums: readonly Sums[], coverage: number): Excess {
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

/**
 * The expected quantity where so much of it is seen: an estimate, by which days are compared and nothing is claimed.
 */
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
    return value * share > COUNTED_CENTS * CENT && share > RESIDUAL_SIGMAS * noise.quantitySigma;
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
