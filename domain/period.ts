/**
 * Times are UTC microseconds and periods are half-open; only this file converts the inclusive dates of the
 * interface.
 */
export const MICROS_PER_DAY = 86_400_000_000n;
export const MICROS_PER_HOUR = 3_600_000_000n;
const MICROS_PER_MILLI = 1000n;
/** 9999-12-31T23:59:59.999999Z: the last time that ISO 8601 writes with a four-digit year. */
export const LATEST_MICROS = 253_402_300_799_999_999n;
/** 0001-01-01: the earliest accepted day. */
const EARLIEST_MICROS = -62_135_596_800_000_000n;

const ISO =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(Z|z|[+-]\d{2}:?\d{2})?)?$/;

export interface Instant {
  micros: bigint;
  /** The text was a date without a time. */
  dateOnly: boolean;
}

/** Reads ISO 8601; UTC without an offset, cut to microseconds. Undefined for impossible times and years outside 1 to 9999. */
export function parseInstant(text: string): Instant | undefined {
  const match = ISO.exec(text.trim());
  if (!match) return undefined;
  const [, year, month, day, hour, minute, second, fraction, offset] = match;
  const date = new Date(0);
  // Date.UTC maps the years 0 to 99 to 1900 to 1999, so it is not used.
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  const millis = date.setUTCHours(Number(hour ?? 0), Number(minute ?? 0), Number(second ?? 0));
  if (Number.isNaN(millis) || Number(year) < 1) return undefined;
  if (
    date.getUTCFullYear() !== Number(year) ||
    date.getUTCMonth() !== Number(month) - 1 ||
    date.getUTCDate() !== Number(day)
  )
    return undefined;
  if (Number(hour ?? 0) > 23 || Number(minute ?? 0) > 59 || Number(second ?? 0) > 59) return undefined;
  const micros =
    BigInt(millis) * MICROS_PER_MILLI + BigInt((fraction ?? '').padEnd(6, '0').slice(0, 6) || '0');
  const offsetMinutes = offsetMinutesOf(offset);
  if (offsetMinutes === undefined) return undefined;
  const utc = micros - BigInt(offsetMinutes) * 60_000_000n;
  return utc < EARLIEST_MICROS || utc > LATEST_MICROS
    ? undefined
    : { micros: utc, dateOnly: hour === undefined };
}

function offsetMinutesOf(offset: string | undefined): number | undefined {
  if (offset === undefined || offset === 'Z' || offset === 'z') return 0;
  const hours = Number(offset.slice(1, 3));
  const minutes = Number(offset.slice(-2));
  if (hours > 14 || minutes > 59) return undefined;
  return (offset[0] === '-' ? -1 : 1) * (hours * 60 + minutes);
}

/** Inclusive upper bound of the interface → exclusive bound: the next microsecond, or the next day for a date. */
export function exclusiveEnd(instant: Instant): bigint {
  const end = instant.dateOnly ? instant.micros + MICROS_PER_DAY : instant.micros + 1n;
  return end > LATEST_MICROS ? LATEST_MICROS : end;
}

export function spanMicros(from: Instant, to: Instant): bigint {
  return (to.dateOnly ? exclusiveEnd(to) : to.micros) - from.micros;
}

const MICROS_PER_MINUTE = 60_000_000;
/** The minute that was written last, and its text up to the seconds: most times of a batch are of few minutes. */
let lastMinute = { minute: Number.NaN, text: '' };

/** Microseconds → RFC 3339 in UTC with six decimals, or with none if they are zero. */
export function isoFromMicros(micros: bigint): string {
  const exact = Number(micros);
  return exact >= 0 && Number.isSafeInteger(exact) ? isoFromSafeMicros(exact) : isoFromAnyMicros(micros);
}

function isoFromSafeMicros(micros: number): string {
  const minute = Math.floor(micros / MICROS_PER_MINUTE);
  if (minute !== lastMinute.minute)
    lastMinute = { minute, text: new Date(minute * 60_000).toISOString().slice(0, 17) };
  const rest = micros - minute * MICROS_PER_MINUTE;
  const seconds = Math.floor(rest / 1_000_000);
  const fraction = rest - seconds * 1_000_000;
  const whole = `${lastMinute.text}${seconds < 10 ? '0' : ''}${seconds}`;
  return fraction === 0 ? `${whole}Z` : `${whole}.${fraction.toString().padStart(6, '0')}Z`;
}

function isoFromAnyMicros(micros: bigint): string {
  const millis = micros / MICROS_PER_MILLI - (micros % MICROS_PER_MILLI < 0n ? 1n : 0n);
  const date = new Date(Number(millis)).toISOString();
  const sub = micros - millis * MICROS_PER_MILLI;
  const fraction = `${date.slice(20, 23)}${sub.toString().padStart(3, '0')}`;
  return fraction === '000000' ? `${date.slice(0, 19)}Z` : `${date.slice(0, 19)}.${fraction}Z`;
}

export function microsFromDate(date: Date): bigint {
  return BigInt(date.getTime()) * MICROS_PER_MILLI;
}

export function startOfDay(micros: bigint): bigint {
  const rest = ((micros % MICROS_PER_DAY) + MICROS_PER_DAY) % MICROS_PER_DAY;
  return micros - rest;
}

export function dayOf(micros: bigint): string {
  return isoFromMicros(startOfDay(micros)).slice(0, 10);
}

export function microsOfDay(day: string): bigint {
  const instant = parseInstant(day);
  if (!instant?.dateOnly) throw new RangeError(`not a day: ${day}`);
  return instant.micros;
}

/** The UTC day `days` after `day` (before it if negative), limited to the years 1 to 9999. */
export function shiftDay(day: string, days: number): string {
  const micros = microsOfDay(day) + BigInt(days) * MICROS_PER_DAY;
  return dayOf(micros > LATEST_MICROS ? LATEST_MICROS : micros < EARLIEST_MICROS ? EARLIEST_MICROS : micros);
}

/** The time `days` before `micros`, but not before the year 1. */
export function daysBefore(micros: bigint, days: bigint): bigint {
  const before = micros - days * MICROS_PER_DAY;
  return before < EARLIEST_MICROS ? EARLIEST_MICROS : before;
}

/** The UTC days from `fromDay` to `toDay`, ascending and without `toDay`. */
export function listDays(fromDay: string, toDay: string): string[] {
  const days: string[] = [];
  for (let at = microsOfDay(fromDay); at < microsOfDay(toDay); at += MICROS_PER_DAY) days.push(dayOf(at));
  return days;
}

export const GAP_PERIODS = ['7d', '30d', '90d'] as const;
export type GapPeriod = (typeof GAP_PERIODS)[number];

export const GAP_PERIOD_DAYS: Readonly<Record<GapPeriod, number>> = { '7d': 7, '30d': 30, '90d': 90 };

/** The last `count` UTC days including today, half-open: `toDay` is tomorrow. */
export function lastDays(count: number, nowMicros: bigint): { fromDay: string; toDay: string } {
  const toDay = shiftDay(dayOf(nowMicros), 1);
  return { fromDay: shiftDay(toDay, -count), toDay };
}

/** The days of a gap period as half-open times. The period includes today: `end` is the end of today. */
export function gapWindow(period: GapPeriod, nowMicros: bigint): { start: bigint; end: bigint } {
  const { fromDay, toDay } = lastDays(GAP_PERIOD_DAYS[period], nowMicros);
  return { start: microsOfDay(fromDay), end: microsOfDay(toDay) };
}

export function isoOrNull(micros: bigint | null): string | null {
  return micros === null ? null : isoFromMicros(micros);
}
