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
import { lineKey } from './cause.js';
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

/** The days from this one, none with more than earlier ones lacked, to one that makes up for all or may still change. */
function windowFrom(first: SeriesDay): SeriesDay[] | undefined {
  const sums = new Map<string, Booked>();
  const window: SeriesDay[] = [];
  for (let day: SeriesDay | null | undefined = first; day && window.length < DAYS_MAX; day = day.after) {
    const counts = countsOf(day);
    if (!counts) return day.evidence.provisional && sums.size > 0 ? window : undefined;
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
  const linesOf = new Map<SeriesDay | null | undefined, Lines>(days.map((day) => [day, chargedLines(day)]));
  for (const first of days) {
    const window: SeriesDay[] = [];
    const sums: Lines[] = [];
    for (let day: SeriesDay | null | undefined = first; day && window.length < DAYS_MAX; day = day.after) {
      if (found.has(first) || !isCountedByReport(day)) break;
      const sum = together(sums.at(-1) ?? new Map(), linesOf.get(day) ?? []);
      window.push(day);
      sums.push(sum);
      if (isBookedLate(sums, [linesOf.get(first.before), linesOf.get(day.after)]))
        for (const one of window) found.set(one, asPaid(sum, one));
    }
  }
  return found;
}

/** Amounts and tokens of one line over some days. */
type Line = readonly [charged: bigint, right: bigint, slack: bigint, counted: bigint];
type Lines = ReadonlyMap<string, Line>;

const NOTHING: Line = [0n, 0n, 0n, 0n];
const AS_PRICED: Line = [1n, 1n, 0n, 0n];

function chargedLines({ meters }: SeriesDay): Lines {
  const charged = meters.filter(isCharged).map((one): [string, Line] => {
    const { amountPico, roundingPico, quantity } = one.meter;
    return [lineKey(one), [amountPico, one.expectedPico ?? 0n, roundingPico + 1n, quantity ?? 0n]];
  });
  return together(new Map(), charged);
}

function together(before: Lines, more: Iterable<[string, Line]>): Lines {
  const sum = new Map(before);
  for (const [key, [charged, right, slack, counted]] of more) {
    const [paid, owed, room, tokens] = sum.get(key) ?? NOTHING;
    sum.set(key, [paid + charged, owed + right, room + slack, tokens + counted]);
  }
  return sum;
}

const isCharged = ({ meter }: MeterDay): boolean => meter.amountPico !== 0n;
const isCountedByReport = ({ evidence, meters }: SeriesDay): boolean =>
  !evidence.provisional &&
  meters.every((one) => !isCharged(one) || (one.meter.quantitySource === 'usage' && !one.meter.crossed));

/** `sums`: the lines from the first day to each of the days; `beside`: those of the day before them and of the day after. */
function isBookedLate(sums: readonly Lines[], beside: readonly (Lines | undefined)[]): boolean {
  const lines = [...(sums.at(-1) ?? [])];
  // Whether some days have more of a line than all of them, or less of it, by so many times its rounding.
  const isApart = (days: Lines | undefined, [key, all]: [string, Line], sign: bigint, times: bigint) => {
    const [[charged, right, slack], [paid, owed]] = [all, days?.get(key) ?? NOTHING];
    return sign * (paid * right - owed * charged) > times * slack * right;
  };
  const late = lines.filter((one) => isApart(sums[0], one, -1n, BigInt(SURE_ROUNDINGS)));
  if (late.length < 2) return false;
  return lines.every((one) => {
    const [key, [charged, right, slack]] = one;
    const usual = [AS_PRICED, ...beside.map((others) => others?.get(key) ?? NOTHING)];
    const isUsual = usual.some(([paid, owed, room]) => {
      const apart = absPico(charged * owed - right * paid);
      return owed > 0n && apart <= slack * owed + room * right;
    });
    return isUsual && !sums.slice(0, -1).some((days) => isApart(days, one, 1n, 1n));
  });
}

function asPaid(lines: Lines, { meters, ...day }: SeriesDay): MeterDay[] {
  const paid = meters.map((one): MeterDay => {
    const [charged, , , counted] = lines.get(lineKey(one)) ?? NOTHING;
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
