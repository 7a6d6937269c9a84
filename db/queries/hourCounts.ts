import { QUANTITY_ONE, QUANTITY_SCALE } from '../../domain/billing/billedRow.js';
import { parseScaled } from '../../domain/money.js';
import { MICROS_PER_HOUR } from '../../domain/period.js';
import type { HourCount } from '../../domain/reconciliation/cells.js';

const SECONDS_PER_HOUR = 3600;

/**
 * An aggregate of what each row counts at its time in one text, `1735689600=15,1735693200=20`: seconds since 1970 and the
 * count, and where `weight` is given a whole number that tells whether the time counts at all. Neither added up by time nor in
 * its order: `readHourCounts` does both, for grouping by time and sorting cost Postgres more than reading the rows. Null where no row is `where`.
 */
export const hourCountsSql = (time: string, count: string, where: string, weight?: string) =>
  `string_agg(date_part('epoch', ${time})::int8 || '=' || ${count}${weight === undefined ? '' : ` || '=' || ${weight}`}, ',') filter (where ${where})`;

/**
 * Reads `hourCountsSql`: each time once with the sum of its counts, in their order, as the hours that hold them, of a clock so
 * many hours ahead of the one that they were read by. Left out are times of which the weights, or the counts where there are
 * none, sum to nothing.
 */
export function readHourCounts(text: string | null, aheadHours = 0): HourCount[] {
  if (text === null) return [];
  const parts = text
    .split(',')
    .map(readPart)
    .sort((a, b) => a.seconds - b.seconds);
  const counts: HourCount[] = [];
  for (let at = 0; at < parts.length; ) {
    const first = parts[at] as Part;
    let { quantity, weight } = first;
    for (at += 1; parts[at]?.seconds === first.seconds; at += 1) {
      quantity += (parts[at] as Part).quantity;
      weight += (parts[at] as Part).weight;
    }
    const hour = Math.floor(first.seconds / SECONDS_PER_HOUR) + aheadHours;
    if (Number.isNaN(weight) ? quantity > 0n : weight > 0)
      counts.push({ hourMicros: BigInt(hour) * MICROS_PER_HOUR, quantity });
  }
  return counts;
}

interface Part {
  seconds: number;
  quantity: bigint;
  /** NaN where there is none. */
  weight: number;
}

function readPart(part: string): Part {
  const at = part.indexOf('=');
  const end = part.indexOf('=', at + 1);
  return {
    seconds: Number(part.slice(0, at)),
    quantity: readQuantity(part.slice(at + 1, end < 0 ? undefined : end)),
    weight: end < 0 ? Number.NaN : Number(part.slice(end + 1)),
  };
}

function readQuantity(text: string): bigint {
  if (/^\d{1,15}$/.test(text)) return BigInt(text) * QUANTITY_ONE;
  const quantity = parseScaled(text, QUANTITY_SCALE);
  if (quantity === undefined) throw new RangeError(`not a finite numeric: ${text}`);
  return quantity;
}
