import { dayOf, MICROS_PER_DAY, MICROS_PER_HOUR, microsOfDay } from '../period.js';
import type { Biller } from '../providers.js';
import { pacificDayOf, timesOfPacificDay } from './pacificDay.js';

/** Google bills in Pacific Time; every other provider by a clock that keeps one distance from UTC, mostly none. */
const PACIFIC: ReadonlySet<Biller> = new Set(['google']);

/**
 * By how many hours a provider's clock is known to be ahead of UTC, without looking at its usage: Pacific Standard Time.
 * Summer time is in `timesOfBillingDay`. Undefined where it is not known.
 */
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

/** The day, `YYYY-MM-DD`, on which a provider whose clock is UTC's or known bills a time, microseconds since 1970. */
export function billingDayOf(provider: Biller, micros: bigint): string {
  return PACIFIC.has(provider) ? pacificDayOf(micros) : dayOf(micros);
}

/** Microseconds by which a provider's clock is ahead of UTC when its day begins; hours of the day are told by that clock. */
export function aheadMicrosOf(provider: Biller, day: string, offsetHours: number): bigint {
  return microsOfDay(day) - timesOfBillingDay(provider, day, offsetHours).startMicros;
}
