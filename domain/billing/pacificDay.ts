import { dayOf, MICROS_PER_DAY, MICROS_PER_HOUR, microsOfDay, startOfDay } from '../period.js';

/**
 * Days as Google bills them: in US and Canadian Pacific Time, whatever the time zone of the customer (Google Cloud
 * documentation, "Billing export", `invoice.month`). The clock is eight hours behind UTC, and seven from the second
 * Sunday of March at two in the morning until the first Sunday of November at two (Energy Policy Act of 2005, in force
 * since 2007; older days do not come up).
 */
const STANDARD_HOURS = 8n;
const SUMMER_HOURS = 7n;

/** The hours that Pacific Time is behind UTC at a time, microseconds since 1970. */
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

/** The Pacific day, `YYYY-MM-DD`, that holds a time. */
export function pacificDayOf(micros: bigint): string {
  return dayOf(micros - hoursBehind(micros) * MICROS_PER_HOUR);
}

/** The half-open times of a Pacific day: 24 hours, 23 or 25 where the clock is changed. */
export function timesOfPacificDay(day: string): { startMicros: bigint; endMicros: bigint } {
  return { startMicros: midnightOf(day), endMicros: midnightOf(dayOf(microsOfDay(day) + MICROS_PER_DAY)) };
}

/** No clock is changed at midnight, so what holds at six in the morning UTC holds there too. */
function midnightOf(day: string): bigint {
  const start = startOfDay(microsOfDay(day));
  return start + hoursBehind(start + 6n * MICROS_PER_HOUR) * MICROS_PER_HOUR;
}
