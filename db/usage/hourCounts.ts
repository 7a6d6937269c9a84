import { QUANTITY_ONE, QUANTITY_SCALE } from '../../domain/billing/billedRow.js';
import { parseScaled } from '../../domain/money.js';
import { MICROS_PER_HOUR } from '../../domain/period.js';
import type { HourCount, HourOfCalls } from '../../domain/reconciliation/matching/cells.js';

const SECONDS_PER_HOUR = 3600;

/**
 * SQL aggregate of each row's time and count in one text, `1735689600=15,1735693200=20`: seconds since 1970 and the
 * count; with `calls` also the row's number of calls, `1735689600=15=2`. The text is neither summed by time nor sorted:
 * the readers below do both, because grouping and sorting cost Postgres more than reading the rows. null: no row matches
 * `where`.
 */
export const hourCountsSql = (time: string, count: string, where: string, calls?: string) =>
  `string_agg(date_part('epoch', ${time})::int8 || '=' || ${count}${calls === undefined ? '' : ` || '=' || ${calls}`}, ',') filter (where ${where})`;

/**
 * Parses `hourCountsSql` with decimal quantities as counts: their sums by time, in order. Times whose sum is not positive
 * are left out. Throws RangeError for a count that is not a finite number.
 */
export function readHourCounts(text: string | null): HourCount[] {
  return sumByTime<bigint>(text, (sum = 0n, count) => sum + readQuantity(count))
    .filter(([, quantity]) => quantity > 0n)
    .map(([seconds, quantity]) => ({ hourMicros: hourMicrosOf(seconds), quantity }));
}

/**
 * Parses `hourCountsSql` with calls and several whole numbers as the count, as `15/20/0`: their sums by time, in order,
 * and, times QUANTITY_ONE, the sum of all; as hours of a clock that is `aheadHours` ahead of the rows' clock. Times without
 * calls are left out.
 */
export function readHoursOfCalls(text: string | null, aheadHours = 0): HourOfCalls[] {
  return sumByTime<{ calls: number; tokens: number[] }>(
    text,
    (sum = { calls: 0, tokens: [] }, count, calls) => {
      sum.calls += Number(calls);
      for (let [from, place] = [0, 0]; from < count.length; place += 1) {
        const end = endOf(count, '/', from);
        sum.tokens[place] = (sum.tokens[place] ?? 0) + Number(count.slice(from, end));
        from = end + 1;
      }
      return sum;
    },
  )
    .filter(([, { calls }]) => calls > 0)
    .map(([seconds, { tokens }]) => ({
      hourMicros: hourMicrosOf(seconds, aheadHours),
      quantity: BigInt(tokens.reduce((total, one) => total + one, 0)) * QUANTITY_ONE,
      tokens,
    }));
}

/**
 * Adds up the parts of `hourCountsSql` that have the same time; the times are in order, in seconds since 1970. A day's
 * report has thousands of parts: cutting them out one by one takes half the time of splitting the text.
 */
function sumByTime<Sum>(
  text: string | null,
  add: (sum: Sum | undefined, count: string, calls: string) => Sum,
): [seconds: number, Sum][] {
  if (text === null) return [];
  const sums = new Map<number, Sum>();
  for (let from = 0; from < text.length; ) {
    const end = endOf(text, ',', from);
    const timeEnd = endOf(text, '=', from);
    const countEnd = Math.min(endOf(text, '=', timeEnd + 1), end);
    const seconds = Number(text.slice(from, timeEnd));
    const calls = text.slice(countEnd + 1, end);
    sums.set(seconds, add(sums.get(seconds), text.slice(timeEnd + 1, countEnd), calls));
    from = end + 1;
  }
  return [...sums].sort(([a], [b]) => a - b);
}

/** Place of the next mark, or the text's end. */
function endOf(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at < 0 ? text.length : at;
}

const hourMicrosOf = (seconds: number, aheadHours = 0) =>
  BigInt(Math.floor(seconds / SECONDS_PER_HOUR) + aheadHours) * MICROS_PER_HOUR;

/** Whole numbers of up to this many digits are parsed as numbers, which is exact and faster. */
const SAFE_DIGITS = 15;

function readQuantity(text: string): bigint {
  if (text.length <= SAFE_DIGITS) {
    const whole = Number(text);
    if (Number.isInteger(whole) && whole >= 0) return BigInt(whole) * QUANTITY_ONE;
  }
  const quantity = parseScaled(text, QUANTITY_SCALE);
  if (quantity === undefined) throw new RangeError(`not a finite numeric: ${text}`);
  return quantity;
}
