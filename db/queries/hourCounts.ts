import { QUANTITY_ONE, QUANTITY_SCALE } from '../../domain/billing/billedRow.js';
import { parseScaled } from '../../domain/money.js';
import { MICROS_PER_HOUR } from '../../domain/period.js';
import type { HourCount } from '../../domain/reconciliation/cells.js';

/**
 * An aggregate of hours in one text, `482136=15,482137=20`: hours since 1970 and what each counts. A row an hour would cost
 * more to read than what is done with it. Null where no hour is `where`.
 */
export const hourCountsSql = (hour: string, count: string, where: string) =>
  `string_agg((extract(epoch from ${hour}) / 3600)::int8 || '=' || ${count}, ',' order by ${hour}) filter (where ${where})`;

/** Reads `hourCountsSql`; hours of a clock so many hours ahead of the one that they were read by. */
export function readHourCounts(text: string | null, aheadHours = 0): HourCount[] {
  if (text === null) return [];
  return text.split(',').map((part) => {
    const at = part.indexOf('=');
    const quantity = readQuantity(part.slice(at + 1));
    return { hourMicros: BigInt(Number(part.slice(0, at)) + aheadHours) * MICROS_PER_HOUR, quantity };
  });
}

function readQuantity(text: string): bigint {
  if (/^\d{1,15}$/.test(text)) return BigInt(text) * QUANTITY_ONE;
  const quantity = parseScaled(text, QUANTITY_SCALE);
  if (quantity === undefined) throw new RangeError(`not a finite numeric: ${text}`);
  return quantity;
}
