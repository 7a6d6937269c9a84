/**
 * Costs of a day's last hours that are charged on the next day. A provider's costs and its usage report are written by two
 * processes: the report has the time of a call, the costs that of their booking, so that both need not agree on one day
 * (billing-facts A.1). Over the days that are concerned they count the same, in every class.
 */

import { QUANTITY_ONE } from '../../../billing/billedRow.js';
import { absPico, divideHalfEven } from '../../../money.js';
import { isTokenClass } from '../../audit/dayRates.js';
import { DAYS_MAX, SAME_COUNT_PARTS, SURE_ROUNDINGS } from '../calibration.js';
import type { Booked, Hypothesis, MeterDay, SeriesDay, Variant } from './cause.js';
import { scaledTo } from './moves.js';
import { amountAs, sumOf } from './predict.js';

/** The use of a meter, as far as it is booked on the day. */
export function asBooked({ booked }: MeterDay, quantity: bigint): bigint {
  return booked ? (quantity * booked.on) / booked.of : quantity;
}

/** Costs of the last hours on the next day's bill, where the usage report counts them on their own day. */
export const bookedLate: Hypothesis = {
  kind: 'timing_shift',
  nature: 'quantity',
  blame: 'none',
  needs: ['quantity', 'usage_report'],
  variants: (day) => (day.meters.some((meter) => meter.booked) ? [shiftOf(day)] : []),
  describe: () => 'Costs of a day’s last hours were charged on the next day.',
  advise: () => ['Nothing to do: over these days the bill and the provider’s usage report count the same.'],
};

function shiftOf(day: SeriesDay): Variant {
  return {
    name: 'booked_late',
    isOfBooking: true,
    amountOf: (meter, quantity) => amountAs(day, meter, quantity),
    quantityOf: (meter) => asBooked(meter, meter.observed),
    touches: (meter) => asBooked(meter, meter.observed) !== meter.observed,
  };
}

/** The booked part of each class of a day that books on the next one, or holds what the day before lacks. */
export function bookedPartsOf(day: SeriesDay): ReadonlyMap<string, Booked> | undefined {
  const own = countsOf(day);
  if (!own || ![...own.values()].some(differs)) return undefined;
  if (!firstDays(day).some((first) => windowFrom(first)?.includes(day))) return undefined;
  return new Map([...own].filter(([, counts]) => counts.of > 0n));
}

/** The day, and days before it whose use may still be booked on it. */
function firstDays(day: SeriesDay): SeriesDay[] {
  const found = [day];
  for (let one = day.before; one && found.length < DAYS_MAX; one = one.before) found.push(one);
  return found;
}

/**
 * The days from this one on which nothing is booked that a day before did not lack, to the one that makes up for all.
 */
function windowFrom(first: SeriesDay): SeriesDay[] | undefined {
  const sums = new Map<string, Booked>();
  const window: SeriesDay[] = [];
  for (let day: SeriesDay | null | undefined = first; day && window.length < DAYS_MAX; day = day.after) {
    const counts = countsOf(day);
    if (!counts) return undefined;
    window.push(day);
    for (const [name, one] of counts) add(sums, name, one);
    const all = [...sums.values()];
    if (all.some((one) => differs(one) && one.on > one.of)) return undefined;
    if (!all.some(differs)) return window.length > 1 ? window : undefined;
  }
  return undefined;
}

const differs = ({ on, of }: Booked): boolean => absPico(on - of) * SAME_COUNT_PARTS > of;

function add(sums: Map<string, Booked>, name: string, { on, of }: Booked): void {
  const known = sums.get(name) ?? { on: 0n, of: 0n };
  sums.set(name, { on: known.on + on, of: known.of + of });
}

/** Billed and reported, by class; undefined where the bill has no counts of its own, or the day no report. */
function countsOf({ evidence, meters }: SeriesDay): ReadonlyMap<string, Booked> | undefined {
  const { usage, provisional } = evidence;
  if (usage.length === 0 || provisional) return undefined;
  const classes = new Map<string, Booked>();
  for (const { meter, tokenClass } of meters) {
    if (meter.quantity === null || meter.quantitySource === 'usage') return undefined;
    add(classes, tokenClass, { on: meter.quantity, of: 0n });
  }
  for (const { tokenClass, quantity } of usage)
    if (isTokenClass(tokenClass)) add(classes, tokenClass, { on: 0n, of: quantity });
  return classes;
}

/**
 * The meters of days whose counts are the usage report's alone, and whose costs are booked late: each with the tokens that its
 * amount paid for. Over such days every line has one ratio of charged to right amounts, which is one or its ratio on the day
 * beside, and no day before the last has more of it: so it shows what was booked when, also at a wrong rate.
 */
export function metersAsBooked(days: readonly SeriesDay[]): ReadonlyMap<SeriesDay, MeterDay[]> {
  const found = new Map<SeriesDay, MeterDay[]>();
  for (const first of days) {
    const window = [first];
    for (let next = first.after; next && window.length < DAYS_MAX && !found.has(first); next = next.after) {
      window.push(next);
      if (isBookedLate(window)) for (const day of window) found.set(day, asPaid(window, day));
    }
  }
  return found;
}

/** A line's charged and right amounts, their rounding and its tokens, over days. */
function lineOver(days: readonly (SeriesDay | null | undefined)[], key: string) {
  const own = days.flatMap((day) => day?.meters.filter((one) => keyOf(one) === key && isCharged(one)) ?? []);
  return {
    charged: sumOf(own.map(({ meter }) => meter.amountPico)),
    right: sumOf(own.map((one) => one.expectedPico ?? 0n)),
    slack: sumOf(own.map(({ meter }) => meter.roundingPico + 1n)),
    counted: sumOf(own.map(({ meter }) => meter.quantity ?? 0n)),
  };
}

const isCharged = ({ meter }: MeterDay): boolean => meter.amountPico !== 0n;
const keyOf = ({ meter }: MeterDay): string =>
  [meter.tokenClass, meter.serviceTier, meter.isBatch, meter.longContext, meter.region].join();

function isBookedLate(window: readonly SeriesDay[]): boolean {
  const all = window.flatMap(({ meters }) => meters.filter(isCharged));
  const isApart = all.every(({ meter }) => meter.quantitySource === 'usage' && !meter.crossed);
  if (!isApart || window.some(({ evidence }) => evidence.provisional)) return false;
  let late = 0;
  for (const key of new Set(all.map(keyOf))) {
    const { charged, right, slack } = lineOver(window, key);
    const beside = [window[0]?.before, window.at(-1)?.after].map((day) => lineOver([day], key));
    const isUsual = [{ charged: 1n, right: 1n, slack: 0n }, ...beside].some((one) => {
      const apart = absPico(charged * one.right - right * one.charged);
      return one.right > 0n && apart <= slack * one.right + one.slack * right;
    });
    const ahead = window.slice(0, -1).map((_, at) => {
      const own = lineOver(window.slice(0, at + 1), key);
      return own.charged * right - own.right * charged;
    });
    if (!isUsual || ahead.some((one) => one > slack * right)) return false;
    if (-(ahead[0] ?? 0n) > BigInt(SURE_ROUNDINGS) * slack * right) late += 1;
  }
  return late > 1;
}

function asPaid(window: readonly SeriesDay[], { meters, ...day }: SeriesDay): MeterDay[] {
  const paid = meters.map((one): MeterDay => {
    const { charged, counted } = lineOver(window, keyOf(one));
    if (!isCharged(one) || charged === 0n) return one;
    const quantity = divideHalfEven(one.meter.amountPico * counted, charged * QUANTITY_ONE) * QUANTITY_ONE;
    const mix = scaledTo(one.mix, quantity);
    const own = { ...one, meter: { ...one.meter, quantity, parts: mix }, mix };
    return { ...own, expectedPico: amountAs({ ...day, meters }, own, quantity) };
  });
  const countOf = (some: readonly MeterDay[], { tokenClass }: MeterDay) =>
    sumOf(some.map((one) => (one.tokenClass === tokenClass ? (one.meter.quantity ?? 0n) : 0n)));
  return paid.map((one) => {
    const of = countOf(meters, one);
    return of > 0n ? { ...one, booked: { on: countOf(paid, one), of } } : one;
  });
}
