/**
 * What `as_of` asks for (docs/decisions/0013). Without it totals follow the books: closed months as they were closed,
 * later changes on the day on which they came. With it every call counts in its own month, as far as it was known.
 */
import { DomainError } from '../../errors.js';
import {
  dayOf,
  exclusiveEnd,
  type Instant,
  isoFromMicros,
  MICROS_PER_DAY,
  startOfDay,
} from '../../period.js';
import type { Month } from './month.js';

/** Which rows a total takes, and at which time each counts. */
export type UsageView =
  /** Closed months frozen, later changes dated when they came. */
  | { kind: 'books' }
  /** Every call at its own time, all that is known now. */
  | { kind: 'now' }
  /** Every call at its own time, what had come before this UTC day (`YYYY-MM-DD`); for closed months only. */
  | { kind: 'known'; beforeDay: string };

/** A closed month, for the question what was known when. */
export interface ClosedMonth {
  month: Month;
  /** First microsecond after the month. */
  endsAtMicros: bigint;
  closedAtMicros: bigint;
}

export interface AsOfQuestion {
  asOf: Instant | undefined;
  /** Half-open; an absent side is open. */
  fromMicros: bigint | undefined;
  toMicros: bigint | undefined;
  /** Names of the window's parameters, for the refusals. */
  names: readonly [from: string, to: string];
  nowMicros: bigint;
}

/**
 * The view that a question asks for. Changes are booked by UTC day, so a time in the past must be a day's beginning (a
 * date means its end); what was known is kept from a month's closing on. Error as_of_unanswerable, with what to do.
 */
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
