import { dayOf, MICROS_PER_DAY, MICROS_PER_HOUR, microsOfDay, startOfDay } from '../period.js';
import type { Biller } from '../providers.js';

/** Google bills in Pacific Time. Every other provider's clock has a fixed offset from UTC, mostly zero. */
const PACIFIC: ReadonlySet<Biller> = new Set(['google']);

/** Hours that the provider's clock is ahead of UTC (standard time); undefined: it must be inferred from usage. */
export function knownOffsetHours(provider: Biller): number | undefined {
  return PACIFIC.has(provider) ? -8 : undefined;
}

/** The half-open UTC times of a day as the provider bills it; `offsetHours`: how far its clock is ahead of UTC. */
export function timesOfBillingDay(
  provider: Biller,
  day: string,
  offsetHours: number,
): { startMicros: bigint; endMicros: bigint } {
  if (PACIFIC.has(provider)) return timesOfPacificDay(day);
  const startMicros = microsOfDay(day) - BigInt(offsetHours) * MICROS_PER_HOUR;
  return { startMicros, endMicros: startMicros + MICROS_PER_DAY };
}

/** The day, `YYYY-MM-DD`, on which a provider with a known clock bills a time, microseconds since 1970. */
export function billingDayOf(provider: Biller, micros: bigint): string {
  return PACIFIC.has(provider) ? pacificDayOf(micros) : dayOf(micros);
}

/**
 * Microseconds by which the provider's clock is ahead of UTC at the start of its day; hours of the day use that
 * clock.
 */
export function aheadMicrosOf(provider: Biller, day: string, offsetHours: number): bigint {
  return microsOfDay(day) - timesOfBillingDay(provider, day, offsetHours).startMicros;
}

/** Google bills in US Pacific Time (Cloud Billing export, `invoice.month`): UTC-8, in summer UTC-7 (Energy Policy Act of 2005). */
const STANDARD_HOURS = 8n;
const SUMMER_HOURS = 7n;

function hoursBehind(micros: bigint): bigint {
  const year = dayOf(micros).slice(0, 4);
  const begins = sundayOf(`${year}-03-08`) + 10n * MICROS_PER_HOUR;
  const ends = sundayOf(`${year}-11-01`) + 9n * MICROS_PER_HOUR;
  return micros >= begins && micros < ends ? SUMMER_HOURS : STANDARD_HOURS;
}

/** The first Sunday on or after a day. 1970-01-01 was a Thursday. */
function sundayOf(day: string): bigint {
  const micros = microsOfDay(day);
  const weekday = (micros / MICROS_PER_DAY + 4n) % 7n;
  return micros + ((7n - weekday) % 7n) * MICROS_PER_DAY;
}

/** The Pacific day, `YYYY-MM-DD`, of a time. */
export function pacificDayOf(micros: bigint): string {
  return dayOf(micros - hoursBehind(micros) * MICROS_PER_HOUR);
}

/** The half-open times of a Pacific day: 24 hours, or 23 or 25 when the clock changes. */
export function timesOfPacificDay(day: string): { startMicros: bigint; endMicros: bigint } {
  return { startMicros: midnightOf(day), endMicros: midnightOf(dayOf(microsOfDay(day) + MICROS_PER_DAY)) };
}

/** No clock change is at midnight, so the offset at 06:00 UTC is also that of midnight. */
function midnightOf(day: string): bigint {
  const start = startOfDay(microsOfDay(day));
  return start + hoursBehind(start + 6n * MICROS_PER_HOUR) * MICROS_PER_HOUR;
}
