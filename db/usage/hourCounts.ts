import { QUANTITY_ONE, QUANTITY_SCALE } from '../../domain/billing/billedRow.js';
import { parseScaled } from '../../domain/money.js';
import { MICROS_PER_HOUR } from '../../domain/period.js';
import type { HourCount, HourOfCalls } from '../../domain/reconciliation/matching/cells.js';

const SECONDS_PER_HOUR = 3600;

/**
 * SQL aggregate of each row's time and count in one text, `1735689600=15,1735693200=20`: seconds since 1970 and the
 * count; with `weight` also a whole number that decides whether the time counts at all. The text is neither summed by
 * time nor sorted: `readHourCounts` does both, because grouping and sorting cost Postgres more than reading the rows.
 * null: no row matches `where`.
 */
export const hourCountsSql = (time: string, count: string, where: string, weight?: string) =>
  `string_agg(date_part('epoch', ${time})::int8 || '=' || ${count}${weight === undefined ? '' : ` || '=' || ${weight}`}, ',') filter (where ${where})`;

/**
 * Parses `hourCountsSql`: sums the counts of each time and returns them in order, as hours of a clock that is
 * `aheadHours` ahead of the rows' clock. Times whose weights (or counts, without weights) sum to zero are left out.
 */
export function readHourCounts(text: string | null, aheadHours = 0): HourCount[] {
  if (text === null) return [];
  const parts = partsOf(text);
  const counts: HourCount[] = [];
  for (let at = 0; at < parts.length; ) {
    const { seconds, ...sum } = parts[at] as Part;
    for (at += 1; parts[at]?.seconds === seconds; at += 1) {
      sum.quantity += (parts[at] as Part).quantity;
      sum.weight += (parts[at] as Part).weight;
    }
    const hourMicros = BigInt(Math.floor(seconds / SECONDS_PER_HOUR) + aheadHours) * MICROS_PER_HOUR;
    if (Number.isNaN(sum.weight) ? sum.quantity > 0n : sum.weight > 0)
      counts.push({ hourMicros, quantity: sum.quantity });
  }
  return counts;
}

interface Part {
  seconds: number;
  quantity: bigint;
  /** NaN without a weight. */
  weight: number;
}

function partsOf(text: string): Part[] {
  const parts = text.split(',').map(readPart);
  return parts.sort((a, b) => a.seconds - b.seconds);
}

function readPart(part: string): Part {
  const at = part.indexOf('=');
  const end = part.indexOf('=', at + 1);
  return {
    seconds: Number(part.slice(0, at)),
    quantity: readQuantity(end < 0 ? part.slice(at + 1) : part.slice(at + 1, end)),
    weight: end < 0 ? Number.NaN : Number(part.slice(end + 1)),
  };
}

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

/**
 * Parses `hourCountsSql` with several whole numbers as the count, as `15/20/0`: their sums by time and, times
 * QUANTITY_ONE, the sum of all. Times whose weights sum to zero are left out.
 */
export function readHoursOfCalls(text: string | null, aheadHours = 0): HourOfCalls[] {
  if (text === null) return [];
  const hours = new Map<number, { weight: number; tokens: number[] }>();
  for (const part of text.split(',')) {
    const [time, counts = '', weight] = part.split('=');
    const hour = Math.floor(Number(time) / SECONDS_PER_HOUR) + aheadHours;
    const known = hours.get(hour) ?? { weight: 0, tokens: [] };
    hours.set(hour, known);
    known.weight += Number(weight);
    const own = counts.split('/');
    for (let at = 0; at < own.length; at += 1) known.tokens[at] = (known.tokens[at] ?? 0) + Number(own[at]);
  }
  return [...hours]
    .filter(([, { weight }]) => weight > 0)
    .sort(([a], [b]) => a - b)
    .map(([hour, { tokens }]) => ({
      hourMicros: BigInt(hour) * MICROS_PER_HOUR,
      quantity: BigInt(tokens.reduce((sum, one) => sum + one, 0)) * QUANTITY_ONE,
      tokens,
    }));
}
