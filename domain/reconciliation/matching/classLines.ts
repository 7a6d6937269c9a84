import { type BilledClass, QUANTITY_ONE } from '../../billing/billedRow.js';
import { TOKEN_CLASSES } from '../../events/event.js';
import { absPico, divideHalfEven, PICO_PER_USD, type Pico } from '../../money.js';
import { type Circumstances, type DayRates, isTokenClass } from '../audit/dayRates.js';
import type { BillableInput } from './bucket.js';
import { type BucketReason, type ClassLine, GRADES, type Grade, type Visibility } from './cells.js';
import type { Meter } from './meters.js';

export const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n);

/** The sum of the parts; null: some part is unknown. */
export function sumKnown(values: readonly (Pico | null)[]): Pico | null {
  let total = 0n;
  for (const value of values) {
    if (value === null) return null;
    total += value;
  }
  return total;
}

/** The classes of a bucket, billed ones first. */
export function linesOf(meters: readonly Meter[], input: BillableInput, rates: DayRates): ClassLine[] {
  const classes = new Set<BilledClass>(meters.map((meter) => meter.tokenClass));
  for (const name of TOKEN_CLASSES)
    if (input.billable.some((cell) => cell.tokens[name] > 0n)) classes.add(name);
  return [...classes].map((tokenClass) =>
    lineOf(
      tokenClass,
      meters.filter((meter) => meter.tokenClass === tokenClass),
      input,
      rates,
    ),
  );
}

function lineOf(
  tokenClass: BilledClass,
  meters: readonly Meter[],
  input: BillableInput,
  rates: DayRates,
): ClassLine {
  const observedQuantity = isTokenClass(tokenClass)
    ? sum(input.billable.map((cell) => cell.tokens[tokenClass])) * QUANTITY_ONE
    : 0n;
  const hasQuantity = meters.every((meter) => meter.quantity !== null);
  const splits = new Set(meters.map((meter) => meter.split));
  return {
    tokenClass,
    billedQuantity: hasQuantity ? sum(meters.map((meter) => meter.quantity ?? 0n)) : null,
    observedQuantity,
    billedPico: sum(meters.map((meter) => meter.amountPico)),
    expectedOfBilledPico: sumKnown(meters.map((meter) => expectedOfMeter(meter, input.pricedAs, rates))),
    expectedOfObservedPico: expectedOfObserved(tokenClass, meters, input, rates),
    split: splits.has('none')
      ? 'none'
      : splits.has('observed_mix')
        ? 'observed_mix'
        : splits.has('bill')
          ? 'bill'
          : splits.size > 0
            ? 'usage_report'
            : 'none',
    rows: meters.reduce((rows, meter) => rows + meter.rows, 0),
  };
}

/**
 * A meter's quantity at list; null: the quantity or the rate is unknown; 0: the class is only counted and costs
 * nothing.
 */
export function expectedOfMeter(meter: Meter, pricedAs: string | null, rates: DayRates): Pico | null {
  const tokenClass = meter.tokenClass;
  if (!isTokenClass(tokenClass)) return meter.amountPico === 0n ? 0n : null;
  if (meter.quantity === null || pricedAs === null) return null;
  let product = 0n;
  for (const part of meter.parts) {
    const expected = rates.rate(pricedAs, part.tokenClass ?? tokenClass, part.circumstances);
    if (!expected) return null;
    product += chargeProduct(part.quantity, expected.rate);
  }
  return picoFromChargeProduct(product);
}

/** Observed tokens of a class at the provider's rates; places are divided in the proportion of the bill. */
export function expectedOfObserved(
  tokenClass: BilledClass,
  meters: readonly Meter[],
  input: BillableInput,
  rates: DayRates,
): Pico | null {
  if (!isTokenClass(tokenClass)) return 0n;
  const places = placesOf(meters);
  let product = 0n;
  let divisor = 0n;
  for (const [, share] of places) divisor += share;
  for (const cell of input.billable) {
    const tokens = cell.tokens[tokenClass];
    if (tokens === 0n) continue;
    if (input.pricedAs === null) return null;
    for (const [region, share] of places) {
      const circumstances: Circumstances = {
        serviceTier: rates.tier(cell.serviceTier),
        isBatch: cell.isBatch,
        longContext: cell.contextBand > 0,
        contextBand: cell.contextBand,
        region,
      };
      const expected = rates.rate(input.pricedAs, tokenClass, circumstances);
      if (!expected) return null;
      product += chargeProduct(tokens * QUANTITY_ONE, expected.rate) * share;
    }
  }
  return picoFromChargeProduct(divisor === 0n ? 0n : roundedDivide(product, divisor));
}

function roundedDivide(product: bigint, divisor: bigint): bigint {
  return (product + divisor / 2n) / divisor;
}

function placesOf(meters: readonly Meter[]): Map<string | null, bigint> {
  const places = new Map<string | null, bigint>();
  for (const meter of meters) {
    for (const part of meter.parts) {
      places.set(part.circumstances.region, (places.get(part.circumstances.region) ?? 0n) + part.quantity);
    }
  }
  const used = [...places].filter(([, share]) => share > 0n);
  return used.length > 0 ? new Map(used) : new Map([[null, 1n]]);
}

const TOKENS_PER_RATE_UNIT = 1_000_000n;
/** Quantity × rate per pico-dollar. */
export const CHARGE_DIVISOR = QUANTITY_ONE * TOKENS_PER_RATE_UNIT;

/** Quantity (1e-12 units) × rate (pico-dollars per million) before rounding. */
export function chargeProduct(quantity: bigint, rate: Pico): bigint {
  return quantity * rate;
}

/** Sum of charge products → pico-dollars, rounded half to even once. */
export function picoFromChargeProduct(product: bigint): Pico {
  return divideHalfEven(product, CHARGE_DIVISOR);
}

/** The charged rate per million tokens, rounded half to even; the quantity must be positive. */
export function billedRate(amountPico: Pico, quantity: bigint): Pico {
  return divideHalfEven(amountPico * CHARGE_DIVISOR, quantity);
}

/** Largest remainder method, earlier parts first; if all weights are zero, the first part gets everything. */
export function apportion(whole: bigint, weights: readonly bigint[]): bigint[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0n);
  if (weights.length === 0) return [];
  if (total === 0n) return weights.map((_, at) => (at === 0 ? whole : 0n));
  const negative = whole < 0n;
  const size = negative ? -whole : whole;
  const parts = weights.map((weight, at) => ({
    at,
    part: (size * weight) / total,
    rest: (size * weight) % total,
  }));
  let left = size - parts.reduce((sum, { part }) => sum + part, 0n);
  for (const entry of [...parts].sort((a, b) =>
    a.rest === b.rest ? a.at - b.at : a.rest > b.rest ? -1 : 1,
  )) {
    if (left === 0n) break;
    entry.part += 1n;
    left -= 1n;
  }
  return parts.map(({ part }) => (negative ? -part : part));
}

/** Minimum probability of each grade, before gates and visibility (docs/reconciliation.md). */
export const BANDS: readonly [Grade, number][] = [
  ['HIGH', 0.95],
  ['MEDIUM', 0.8],
  ['LOW', 0.5],
];

/** The best grade for each visibility. */
const VISIBILITY_CAPS: Record<Visibility, Grade> = { V0: 'LOW', V1: 'MEDIUM', V2: 'HIGH', V3: 'HIGH' };

export interface GradeEvidence {
  /** null: unmatched. */
  probability: number | null;
  visibility: Visibility;
  provisional: boolean;
  /** The billed dollars are unknown, so the grade is at most LOW. */
  unconverted?: boolean;
  /** Gates of HIGH that need no hypotheses: one missing gate caps the grade at MEDIUM, two at LOW. */
  gates: { quantityKnown: boolean; classesComplete: boolean; accountKnown: boolean };
}

export function gradeOf(evidence: GradeEvidence): Grade {
  const { probability } = evidence;
  if (probability === null || evidence.provisional) return 'UNVERIFIED';
  const missing = Object.values(evidence.gates).filter((holds) => !holds).length;
  return lowerOf(gradeAt(probability, missing, evidence.visibility), evidence.unconverted ? 'LOW' : 'HIGH');
}

/** The grade of a probability, lowered by missing gates of HIGH and by the visibility. */
export function gradeAt(probability: number, missingGates: number, visibility: Visibility): Grade {
  const band = BANDS.find(([, from]) => probability >= from)?.[0] ?? 'UNVERIFIED';
  return lowerOf(band, capAt(missingGates, visibility));
}

/** The best grade with this number of missing gates of HIGH and this visibility. */
export function capAt(missingGates: number, visibility: Visibility): Grade {
  const byGates: Grade = missingGates === 0 ? 'HIGH' : missingGates === 1 ? 'MEDIUM' : 'LOW';
  return lowerOf(byGates, VISIBILITY_CAPS[visibility]);
}

export function lowerOf(a: Grade, b: Grade): Grade {
  return GRADES.indexOf(a) > GRADES.indexOf(b) ? a : b;
}

export function higherOf(a: Grade, b: Grade): Grade {
  return GRADES.indexOf(a) < GRADES.indexOf(b) ? a : b;
}

const TOLERANCE_MIN_PICO = PICO_PER_USD / 100n;
const TOLERANCE_DIVISOR = 1_000n;

/**
 * Billed and computed amounts are equal up to the largest of a cent, the rows' rounding, and 0.1 % of the billed
 * amount.
 */
export function tolerancePico(billedPico: Pico, roundingPico: Pico): Pico {
  const share = absPico(billedPico) / TOLERANCE_DIVISOR;
  return [TOLERANCE_MIN_PICO, roundingPico, share].reduce((most, value) => (value > most ? value : most));
}

const FLAG_MIN_PICO = PICO_PER_USD;
const FLAG_DIVISOR = 50n;

/** A gap is flagged from the larger of a dollar and 2 % of the billed amount. */
export function flagThresholdPico(billedPico: Pico): Pico {
  const share = absPico(billedPico) / FLAG_DIVISOR;
  return share > FLAG_MIN_PICO ? share : FLAG_MIN_PICO;
}

const NEVER_FLAGGED: ReadonlySet<BucketReason> = new Set([
  'not_observable',
  'not_yet_observed',
  'free_allowance',
  'not_in_cost_report',
  'unconverted',
]);

/** Whether a reason explains a gap well enough never to flag it. */
export function isNeverFlagged(reason: BucketReason | null): boolean {
  return reason !== null && NEVER_FLAGGED.has(reason);
}
