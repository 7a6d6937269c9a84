import { isoFromMicros, microsOfDay } from '../../period.js';

/** A UTC calendar month, `YYYY-MM`. */
export type Month = string;

/** Four digits without a leading zero, and not the last month that there is: the one after it has no name. */
const MONTH = /^(?!0|9999-12)\d{4}-(0[1-9]|1[0-2])$/;

/** The text as a month from 1000-01 to 9999-11; undefined for anything else. */
export function parseMonth(text: string): Month | undefined {
  return MONTH.test(text) ? text : undefined;
}

/** The month that holds a time. */
export function monthOf(micros: bigint): Month {
  return isoFromMicros(micros).slice(0, 7);
}

export function firstDayOf(month: Month): string {
  return `${month}-01`;
}

/** First microsecond of a month. */
export function startOfMonth(month: Month): bigint {
  return microsOfDay(firstDayOf(month));
}

export function followingMonth(month: Month): Month {
  return nextMonth(firstDayOf(month)).slice(0, 7);
}

/** First microsecond after a month. */
export function endOfMonth(month: Month): bigint {
  return startOfMonth(followingMonth(month));
}

/** Every month from one to another, both included; empty when the second lies before the first. */
export function monthsBetween(first: Month, last: Month): Month[] {
  const months: Month[] = [];
  for (let month = first; month <= last; month = followingMonth(month)) months.push(month);
  return months;
}

/** First day of the month before the one that holds `day` (both `YYYY-MM-DD`). */
export function previousMonth(day: string): string {
  const [year = 0, month = 0] = day.split('-').map(Number);
  return month === 1
    ? `${year - 1}-12-01`
    : `${String(year).padStart(4, '0')}-${String(month - 1).padStart(2, '0')}-01`;
}

/** First day of the month after the one that begins on `firstDay`. */
export function nextMonth(firstDay: string): string {
  const [year = 0, month = 0] = firstDay.split('-').map(Number);
  return month === 12
    ? `${year + 1}-01-01`
    : `${String(year).padStart(4, '0')}-${String(month + 1).padStart(2, '0')}-01`;
}
