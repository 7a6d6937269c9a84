/** The predictions of hypotheses: amounts of a meter under other circumstances, other rates or another class. */
import { QUANTITY_ONE } from '../../../billing/billedRow.js';
import type { TokenClass } from '../../../events/event.js';
import { divideHalfEven, type Pico } from '../../../money.js';
import { STANDARD_TIER } from '../../../pricing/rateCards.js';
import type { Circumstances, DayRates } from '../../audit/dayRates.js';
import { chargeProduct } from '../../matching/classLines.js';
import type { MeterDay, SeriesDay, Variant } from './cause.js';

const CHARGE_DIVISOR = QUANTITY_ONE * 1_000_000n;

/** The changes of a charge against the agreed one; a field that is absent stays. */
export interface Otherwise {
  rates?: DayRates;
  model?: string;
  tokenClass?: TokenClass;
  circumstances?: (circumstances: Circumstances) => Circumstances;
}

/**
 * A quantity of the meter, used as the meter's was, at the rates that would hold otherwise; rounded once. Null where the
 * model has no price, or where a rate that `otherwise` asks for is given by no source: an assumed one explains nothing.
 */
export function amountAs(
  day: SeriesDay,
  meter: MeterDay,
  quantity: bigint,
  otherwise: Otherwise = {},
): Pico | null {
  const model = otherwise.model ?? day.pricedAs;
  if (model === null) return null;
  const rates = otherwise.rates ?? day.agreed;
  const isOther = otherwise.rates ?? otherwise.model ?? otherwise.tokenClass;
  let product = 0n;
  let whole = 0n;
  for (const { circumstances, quantity: weight, tokenClass: used } of meter.mix) {
    const tokenClass = otherwise.tokenClass ?? used ?? meter.tokenClass;
    const under = otherwise.circumstances?.(circumstances) ?? circumstances;
    const found = rates.rate(model, tokenClass, under);
    if (!found || (found.assumed && (isOther !== undefined || under !== circumstances))) return null;
    product += chargeProduct(weight, found.rate);
    whole += weight;
  }
  if (whole === quantity) return divideHalfEven(product, CHARGE_DIVISOR);
  if (whole !== 0n) return divideHalfEven(product * quantity, CHARGE_DIVISOR * whole);
  return amountOfOneRate(day, meter, quantity, otherwise);
}

/** Without a mix the first part's circumstances hold for all. */
function amountOfOneRate(
  day: SeriesDay,
  meter: MeterDay,
  quantity: bigint,
  otherwise: Otherwise,
): Pico | null {
  const [first] = meter.mix;
  if (!first || quantity === 0n) return quantity === 0n ? 0n : null;
  return amountAs(day, { ...meter, mix: [{ ...first, quantity }] }, quantity, otherwise);
}

/** A part of the meter's quantity; null amounts stay null. */
export function scaled(amount: Pico | null, numerator: bigint, denominator: bigint): Pico | null {
  return amount === null || denominator === 0n ? null : divideHalfEven(amount * numerator, denominator);
}

/** A variant by which some meters are charged otherwise; the rest as they should. */
export function rateVariant(
  day: SeriesDay,
  name: string,
  amountOf: (meter: MeterDay, quantity: bigint) => Pico | null,
  isTouched: (meter: MeterDay) => boolean,
): Variant {
  return {
    name,
    amountOf: (meter, quantity) =>
      isTouched(meter) ? amountOf(meter, quantity) : amountAs(day, meter, quantity),
    quantityOf: (meter) => meter.observed,
    touches: isTouched,
  };
}

/**
 * A variant by which some meters count otherwise, at the rates that hold. `quantities` by the meters' places; null: free;
 * a meter that is not named counts what was observed.
 */
export function quantityVariant(
  day: SeriesDay,
  name: string,
  quantities: ReadonlyMap<number, bigint | null>,
): Variant {
  return {
    name,
    amountOf: (meter, quantity) => amountAs(day, meter, quantity),
    quantityOf: (meter) => {
      const other = quantities.get(meter.index);
      return other === undefined ? meter.observed : other;
    },
    touches: (meter) => {
      const other = quantities.get(meter.index);
      return other !== undefined && other !== meter.observed;
    },
  };
}

/** The same where calls alone give the quantities, to the unit. */
export function countedVariant(
  day: SeriesDay,
  name: string,
  quantities: ReadonlyMap<number, bigint>,
): Variant {
  return { ...quantityVariant(day, name, quantities), isCounted: true };
}

/**
 * Charges under other circumstances. Only meters that they would change are touched, and without any there is no variant.
 */
export function otherCircumstances(
  day: SeriesDay,
  name: string,
  change: (circumstances: Circumstances) => Circumstances,
): Variant[] {
  return otherCharge(day, name, { circumstances: change });
}

/**
 * Charges otherwise, for the meters that `isMeant` takes and whose amount that changes; none where it changes nothing.
 */
export function otherCharge(
  day: SeriesDay,
  name: string,
  otherwise: Otherwise,
  isMeant?: (meter: MeterDay) => boolean,
): Variant[] {
  return repriced(day, name, (meter, quantity) => amountAs(day, meter, quantity, otherwise), isMeant);
}

/** The same by any amount; it is null where nothing gives it. */
export function repriced(
  day: SeriesDay,
  name: string,
  amountOf: (meter: MeterDay, quantity: bigint) => Pico | null,
  isMeant: (meter: MeterDay) => boolean = () => true,
): Variant[] {
  const touched = new Set<number>();
  for (const meter of day.meters) {
    if (!isMeant(meter)) continue;
    const probe = weightOf(meter);
    const other = amountOf(meter, probe);
    if (other !== null && other !== amountAs(day, meter, probe)) touched.add(meter.index);
  }
  return touched.size === 0 ? [] : [rateVariant(day, name, amountOf, ({ index }) => touched.has(index))];
}

/** A quantity large enough that two different rates give two different amounts. */
function weightOf(meter: MeterDay): bigint {
  const whole = meter.mix.reduce((total, part) => total + part.quantity, 0n);
  return whole > 0n ? whole : 1_000_000n * QUANTITY_ONE;
}

/** Charges at a multiple of what is right, for the meters that `isMeant` takes. */
export function multipleOf(
  day: SeriesDay,
  name: string,
  numerator: bigint,
  denominator: bigint,
  isMeant: (meter: MeterDay) => boolean = () => true,
): Variant[] {
  if (numerator === denominator || !day.meters.some(isMeant)) return [];
  return [
    rateVariant(
      day,
      name,
      (meter, quantity) => scaled(amountAs(day, meter, quantity), numerator, denominator),
      isMeant,
    ),
  ];
}

/**
 * A quantity at the rates of another price period. What a period does not list for a tier is taken in the proportion in
 * which its standard rate differs: price changes are announced for a model, not for each of its tiers.
 */
export function amountInPeriod(
  day: SeriesDay,
  meter: MeterDay,
  quantity: bigint,
  period: DayRates,
): Pico | null {
  const model = day.pricedAs;
  if (model === null) return null;
  let product = 0n;
  let whole = 0n;
  for (const { circumstances, quantity: weight, tokenClass = meter.tokenClass } of meter.mix) {
    const then = period.rate(model, tokenClass, circumstances);
    const now = day.agreed.rate(model, tokenClass, circumstances);
    const plain = { ...circumstances, serviceTier: 'standard', isBatch: false };
    const standardThen = period.rate(model, tokenClass, plain);
    const standardNow = day.agreed.rate(model, tokenClass, plain);
    if (!then || !now || !standardThen || !standardNow || standardThen.assumed) return null;
    const isKnown = !then.assumed || standardNow.rate === 0n;
    product += chargeProduct(
      weight,
      isKnown ? then.rate : divideHalfEven(now.rate * standardThen.rate, standardNow.rate),
    );
    whole += weight;
  }
  if (whole === 0n) return amountAs(day, meter, quantity, { rates: period });
  return whole === quantity
    ? divideHalfEven(product, CHARGE_DIVISOR)
    : divideHalfEven(product * quantity, CHARGE_DIVISOR * whole);
}

/** Charges at the rates of another price period; none where they are the day's. */
export function otherPeriod(day: SeriesDay, name: string, period: DayRates): Variant[] {
  return repriced(day, name, (meter, quantity) => amountInPeriod(day, meter, quantity, period));
}

/** Charges at what one price collection lists; meters for which it lists nothing are charged as they should be. */
export function otherSourceVariant(day: SeriesDay, name: string, model: string, source: string): Variant[] {
  const touched = new Map<number, { right: Pico; listed: Pico }>();
  for (const { index, mix, tokenClass } of day.meters) {
    const [first] = mix;
    const isOneUse = first && mix.every((part) => sameUse(part.circumstances, first.circumstances));
    const right = isOneUse && day.agreed.rate(model, tokenClass, first.circumstances)?.rate;
    const listed = isOneUse && day.agreed.rateOfSource(model, source, tokenClass, first.circumstances);
    if (right && listed && listed !== right) touched.set(index, { right, listed });
  }
  if (touched.size === 0) return [];
  return [
    rateVariant(
      day,
      name,
      (meter, quantity) => {
        const rates = touched.get(meter.index);
        return rates ? divideHalfEven(chargeProduct(quantity, rates.listed), CHARGE_DIVISOR) : null;
      },
      (meter) => touched.has(meter.index),
    ),
  ];
}

function sameUse(a: Circumstances, b: Circumstances): boolean {
  return (
    a.serviceTier === b.serviceTier &&
    a.isBatch === b.isBatch &&
    a.longContext === b.longContext &&
    a.contextBand === b.contextBand &&
    a.region === b.region
  );
}

/** A change of circumstances that leaves alone what it does not change. */
export function under(change: Partial<Circumstances>): (circumstances: Circumstances) => Circumstances {
  const keys = Object.keys(change) as (keyof Circumstances)[];
  return (circumstances) =>
    keys.every((key) => circumstances[key] === change[key]) ? circumstances : { ...circumstances, ...change };
}

/** Calls of the standard service as batch calls. */
export const asBatch = (at: Circumstances): Circumstances =>
  at.isBatch || at.serviceTier !== STANDARD_TIER ? at : { ...at, isBatch: true };

/** Whether the bill, or the usage report beside it, counts: else its amounts are compared with the events alone. */
export function hasQuantities(day: SeriesDay): boolean {
  return day.meters.some(({ meter }) => meter.quantity !== null);
}

/** Classes of what is read from a cache or written to it. */
export const CACHED: readonly TokenClass[] = ['cache_read', 'cache_write_5m', 'cache_write_1h'];

/** The meters of a class. */
export function metersOf(day: SeriesDay, ...classes: readonly TokenClass[]): MeterDay[] {
  return day.meters.filter((meter) => classes.includes(meter.tokenClass));
}

export const sumOf = (values: readonly bigint[]): bigint =>
  values.reduce((total, value) => total + value, 0n);

/** Whether these ratios are one, within so many percent of the largest. */
export function isOneRatioOf(ratios: readonly bigint[], percent: bigint): boolean {
  const [first = 0n] = ratios;
  const most = ratios.reduce((best, one) => (one > best ? one : best), first);
  const least = ratios.reduce((best, one) => (one < best ? one : best), first);
  return (most - least) * 100n <= most * percent;
}

export const classesOf = (meters: readonly MeterDay[]): TokenClass[] => [
  ...new Set(meters.map((meter) => meter.tokenClass)),
];

/** The counts of the provider's usage report of these classes together; 0 where it has none. */
export const reportedOf = ({ evidence }: SeriesDay, ...classes: readonly string[]): bigint =>
  sumOf(evidence.usage.flatMap((one) => (classes.includes(one.tokenClass) ? [one.quantity] : [])));

/** A class of a day as a whole: what is billed (nothing where the bill has no counts), seen, and reported. */
export interface ClassCounts {
  readonly tokenClass: TokenClass;
  readonly meters: readonly MeterDay[];
  readonly billed: bigint;
  readonly observed: bigint;
  readonly reported: bigint;
}

export function countsByClass(day: SeriesDay): ClassCounts[] {
  return classesOf(day.meters).map((tokenClass) => {
    const meters = metersOf(day, tokenClass);
    const billed = sumOf(meters.map(({ meter }) => meter.quantity ?? 0n));
    const observed = sumOf(meters.map((meter) => meter.observed));
    return { tokenClass, meters, billed, observed, reported: reportedOf(day, tokenClass) };
  });
}

/** A circumstance that the line of a bill names. */
type Field = 'region' | 'longContext' | 'serviceTier' | 'isBatch';

/**
 * Use that a line of the bill holds and the provider's usage report counts under other circumstances
 * (matching/joinTotals.ts): the provider's two reports contradict each other, and the line shows how the use was charged.
 * No call is needed for it. Here cache writes on the line of another lifetime, charged as the line names it.
 */
export function asLinesLast(day: SeriesDay, name: string): Variant[] {
  const isTouched = ({ meter, mix }: MeterDay) =>
    mix.some(({ tokenClass }) => tokenClass !== undefined && tokenClass !== meter.tokenClass);
  if (!day.meters.some(isTouched)) return [];
  const amountOf = (meter: MeterDay, quantity: bigint) =>
    amountAs(day, meter, quantity, { tokenClass: meter.tokenClass });
  return [rateVariant(day, name, amountOf, isTouched)];
}

/** Charged as the lines name it, against the report; none where no line differs in this field. */
export function asLinesName(day: SeriesDay, name: string, field: Field): Variant[] {
  const isTouched = ({ meter, mix }: MeterDay) =>
    meter.crossed === true && mix.some(({ circumstances }) => circumstances[field] !== meter[field]);
  if (!day.meters.some(isTouched)) return [];
  return [
    rateVariant(
      day,
      name,
      (meter, quantity) =>
        amountAs(day, meter, quantity, { circumstances: (at) => namedOtherwise(at, meter, field) }),
      isTouched,
    ),
  ];
}

function namedOtherwise(at: Circumstances, { meter }: MeterDay, field: Field): Circumstances {
  const named = meter[field];
  return at[field] === named || (named === null && field !== 'region') ? at : { ...at, [field]: named };
}
