import { DomainError } from '../errors.js';
import {
  dayOf,
  exclusiveEnd,
  type Instant,
  isoFromMicros,
  MICROS_PER_DAY,
  microsOfDay,
  startOfDay,
} from '../period.js';

export type Month = string;

/** Four digits without a leading zero, and a month that has a next one within four digits. */
const MONTH = /^(?!0|9999-12)\d{4}-(0[1-9]|1[0-2])$/;

/** The text as a month from 1000-01 to 9999-11; undefined for other text. */
export function parseMonth(text: string): Month | undefined {
  return MONTH.test(text) ? text : undefined;
}

export function monthOf(micros: bigint): Month {
  return isoFromMicros(micros).slice(0, 7);
}

export function firstDayOf(month: Month): string {
  return `${month}-01`;
}

export function startOfMonth(month: Month): bigint {
  return microsOfDay(firstDayOf(month));
}

export function followingMonth(month: Month): Month {
  return nextMonth(firstDayOf(month)).slice(0, 7);
}

export function endOfMonth(month: Month): bigint {
  return startOfMonth(followingMonth(month));
}

/** Every month between the two, both included; empty if `last` is before `first`. */
export function monthsBetween(first: Month, last: Month): Month[] {
  const months: Month[] = [];
  for (let month = first; month <= last; month = followingMonth(month)) months.push(month);
  return months;
}

/** First day of the month before that of `day` (both `YYYY-MM-DD`). */
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

/** A closed month's totals never change; later changes are booked in the open period (docs/decisions/0013). */

export const PERIOD_STATUSES = ['open', 'closed'] as const;
type PeriodStatus = (typeof PERIOD_STATUSES)[number];

/**
 * Months close in order; the first closing includes all earlier months. Errors period_not_over,
 * period_out_of_order.
 */
export function decideClosing(
  month: Month,
  lastClosed: Month | undefined,
  nowMicros: bigint,
): 'close' | 'closed_already' {
  if (lastClosed !== undefined && month <= lastClosed) return 'closed_already';
  if (endOfMonth(month) > nowMicros) {
    throw new DomainError(
      'period_not_over',
      `${month} is not over yet (months end at midnight UTC); close it from ${followingMonth(month)}-01 on`,
    );
  }
  const next = lastClosed === undefined ? month : followingMonth(lastClosed);
  if (month !== next)
    throw new DomainError(
      'period_out_of_order',
      `${next} is still open; months close in order: close it first`,
    );
  return 'close';
}

/**
 * Refuses a first closing before the first call or bill, which is probably a typing error in the year. Error
 * period_out_of_order.
 */
export function assertBegun(month: Month, first: Month | undefined): void {
  if (first === undefined || month >= first) return;
  throw new DomainError(
    'period_out_of_order',
    `${month} lies before the first call or bill, which is of ${first}; close ${first} or a later month`,
  );
}

/**
 * The time at which a change counts: its own time, or for a closed month the UTC day of its arrival, in an open
 * month.
 */
export function bookedMicros(
  eventMicros: bigint,
  cameMicros: bigint,
  closedUntilMicros: bigint | null,
): bigint {
  if (closedUntilMicros === null || eventMicros >= closedUntilMicros) return eventMicros;
  const day = startOfDay(cameMicros);
  return day > closedUntilMicros ? day : closedUntilMicros;
}

/** Whether a month that ends before `closedUntilMicros` is closed. */
export function statusOfMonth(month: Month, closedUntilMicros: bigint | null): PeriodStatus {
  return closedUntilMicros !== null && startOfMonth(month) < closedUntilMicros ? 'closed' : 'open';
}

/**
 * Without `as_of` totals follow the books. With it every call counts in its own month, with the knowledge of that
 * time (docs/decisions/0013).
 */

/** The rows of a total, and the time at which each row counts. */
export type UsageView =
  /** Closed months do not change; later changes have the time of their arrival. */
  | { kind: 'books' }
  /** Every call at its own time, with present knowledge. */
  | { kind: 'now' }
  /** Every call at its own time, with the knowledge before this UTC day (`YYYY-MM-DD`); for closed months only. */
  | { kind: 'known'; beforeDay: string };

/** A closed month, needed to answer past `as_of` times. */
export interface ClosedMonth {
  month: Month;
  /** First microsecond after the month. */
  endsAtMicros: bigint;
  closedAtMicros: bigint;
}

export interface AsOfQuestion {
  asOf: Instant | undefined;
  /** Half-open; undefined: this side is unlimited. */
  fromMicros: bigint | undefined;
  toMicros: bigint | undefined;
  /** Names of the window's parameters, for error messages. */
  names: readonly [from: string, to: string];
  nowMicros: bigint;
}

/** The view of a question; past times must begin a UTC day. Error as_of_unanswerable with a remedy. */
export function viewAsOf(question: AsOfQuestion, closings: readonly ClosedMonth[]): UsageView {
  const { asOf, toMicros, nowMicros } = question;
  if (asOf === undefined) return { kind: 'books' };
  const untilMicros = asOf.dateOnly ? exclusiveEnd(asOf) : asOf.micros;
  if (untilMicros > nowMicros) return { kind: 'now' };
  const startsDay = startOfDay(untilMicros) === untilMicros;
  if (!startsDay) {
    const date = dayOf(untilMicros);
    throw unanswerable(
      `later changes are kept by UTC day: ask for as_of=${date} (that day's end) or as_of=${date}T00:00:00Z (its beginning)`,
    );
  }
  const last = closings.filter((closing) => closing.closedAtMicros < untilMicros).at(-1);
  if (!last) throw unanswerable(notKept(untilMicros, closings));
  if (toMicros === undefined || toMicros > last.endsAtMicros) throw unanswerable(openThen(question, last));
  return { kind: 'known', beforeDay: dayOf(untilMicros) };
}

function notKept(untilMicros: bigint, closings: readonly ClosedMonth[]): string {
  const first = closings[0];
  const before = `no month was closed before ${isoFromMicros(untilMicros)}, so what was known then is not kept; `;
  if (!first) return `${before}leave as_of out for what is known now, and close months to keep their figures`;
  return `${before}ask from as_of=${dayOf(first.closedAtMicros)} on, or leave as_of out`;
}

function openThen(question: AsOfQuestion, last: ClosedMonth): string {
  const lastDay = dayOf(last.endsAtMicros - MICROS_PER_DAY);
  const reaches = question.toMicros === undefined ? 'has no end' : 'reaches beyond it';
  const until = question.names[1];
  return `the last month closed by then was ${last.month}, and the window ${reaches}; what was known of an open month is not kept: set ${until}=${lastDay} or earlier, or leave as_of out`;
}

function unanswerable(sentence: string): DomainError {
  return new DomainError('as_of_unanswerable', `as_of: ${sentence}`, {
    issues: [{ in: 'query', field: 'as_of', message: sentence }],
  });
}
