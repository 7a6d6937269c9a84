/**
 * Closing months: a closed month's totals never move. A change that comes later is booked in the
 * open period, so that the sum over all time stays right (docs/decisions/0013).
 */
import { DomainError } from '../../errors.js';
import { startOfDay } from '../../period.js';
import { endOfMonth, followingMonth, type Month, startOfMonth } from './month.js';

export const PERIOD_STATUSES = ['open', 'closed'] as const;
export type PeriodStatus = (typeof PERIOD_STATUSES)[number];

/**
 * Whether a month is to be closed now, or is closed already. Months close in order; the first one that an
 * organization closes takes all that lies before it along. Errors period_not_over, period_out_of_order.
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
 * Refuses the first closing of a month before the first call or bill, most likely a slip in the year: every month from it
 * on would have to be closed by itself. `first` is the month of that call or bill; undefined: there is none yet. Error
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
 * The time at which a change counts in the totals. `closedUntilMicros` is the end of the last month whose closing did
 * not know the change; null: none. A call of an open time counts when it was made. A change of a closed time counts at
 * the start of the UTC day on which it came, and never in a month that was closed without it.
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
