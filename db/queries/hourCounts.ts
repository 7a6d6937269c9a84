import { QUANTITY_ONE, QUANTITY_SCALE } from '../../domain/billing/billedRow.js';
import { parseScaled } from '../../domain/money.js';
import { MICROS_PER_HOUR } from '../../domain/period.js';
import type { HourCount } from '../../domain/reconciliation/cells.js';

const SECONDS_PER_HOUR = 3600;

/**
 * An aggregate of times in one text, `1735689600=15,1735693200=20`: seconds since 1970 and what each counts. A row an hour
 * would cost more to read than what is done with it. Null where no time is `where`.
 */
export const hourCountsSql = (time: string, count: string, where: string) =>
  `string_agg(extract(epoch from ${time})::int8 || '=' || ${count}, ',' order by ${time}) filter (where ${where})`;

/** Reads `hourCountsSql`, times as the hours that hold them, of a clock so many hours ahead of the one that they were read by. */
export function readHourCounts(text: string | null, aheadHours = 0): HourCount[] {
  if (text === null) return [];
  return text.split(',').map((part) => {
    const at = part.indexOf('=');
    const quantity = readQuantity(part.slice(at + 1));
    const hour = Math.floor(Number(part.slice(0, at)) / SECONDS_PER_HOUR) + aheadHours;
    return { hourMicros: BigInt(hour) * MICROS_PER_HOUR, quantity };
  });
}

function readQuantity(text: string): bigint {
  if (/^\d{1,15}$/.test(text)) return BigInt(text) * QUANTITY_ONE;
  const quantity = parseScaled(text, QUANTITY_SCALE);
  if (quantity === undefined) throw new RangeError(`not a finite numeric: ${text}`);
  return quantity;
}
