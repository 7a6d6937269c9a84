/**
 * Costs of a day's last hours that are charged on the next day. A provider's costs and its usage report are written by two
 * processes: the report has the time of a call, the costs that of their booking, so that both need not agree on one day
 * (billing-facts A.1). Over the days that are concerned they count the same, in every class.
 */

import { absPico } from '../../../money.js';
import { isTokenClass } from '../../audit/dayRates.js';
import { DAYS_MAX, SAME_COUNT_PARTS } from '../calibration.js';
import type { Booked, Hypothesis, MeterDay, SeriesDay, Variant } from './cause.js';
import { amountAs } from './predict.js';

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
