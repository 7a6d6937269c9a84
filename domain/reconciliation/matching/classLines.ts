import { type BilledClass, QUANTITY_ONE } from '../../billing/billedRow.js';
import { TOKEN_CLASSES } from '../../events/event.js';
import type { Pico } from '../../money.js';
import { type Circumstances, type DayRates, isTokenClass } from '../audit/dayRates.js';
import type { BillableInput } from './bucket.js';
import type { ClassLine } from './cells.js';
import { chargeProduct, picoFromChargeProduct } from './charge.js';
import type { Meter } from './meters.js';

export const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n);

/** Sum of parts that must all be known. */
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

/** A meter's quantity at list; null where quantity or rate is unknown, 0 for a class that costs nothing and is only counted. */
export function expectedOfMeter(meter: Meter, pricedAs: string | null, rates: DayRates): Pico | null {
  const tokenClass = meter.tokenClass;
  if (!isTokenClass(tokenClass)) return meter.amountPico === 0n ? 0n : null;
  if (meter.quantity === null || pricedAs === null) return null;
  let product = 0n;
  for (const part of meter.parts) {
    const expected = rates.rate(pricedAs, tokenClass, part.circumstances);
    if (!expected) return null;
    product += chargeProduct(part.quantity, expected.rate);
  }
  return picoFromChargeProduct(product);
}

/** Observed tokens of a class at the provider's rates; places are taken in the proportion that the bill shows. */
function expectedOfObserved(
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
