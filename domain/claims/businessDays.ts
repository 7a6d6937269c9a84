/**
 * Business days: every day but Saturdays, Sundays and the holidays of a calendar, each as long as it is in the calendar's
 * time zone.
 */
import { MICROS_PER_DAY, MICROS_PER_HOUR, microsOfDay, parseInstant } from '../period.js';

/** When an organization works. */
export interface WorkCalendar {
  /** IANA name. */
  timeZone: string;
  /** Days on which nobody works, `YYYY-MM-DD`. */
  holidays: readonly string[];
}

const MICROS_PER_SECOND = 1_000_000n;
const MICROS_PER_MILLI = 1_000n;
/** No time zone is as far as that from UTC. */
const OFFSET_MAX = 27n * MICROS_PER_HOUR;
/** 1970-01-01 was a Thursday, 0 is Sunday. */
const EPOCH_WEEKDAY = 4;
const DAYS_OF_WEEK = 7;

/** A calendar to count by; it remembers where days begin. Days are counted from 1970-01-01, as the calendar has them. */
export class BusinessDays {
  readonly #holidays: ReadonlySet<number>;
  readonly #format: Intl.DateTimeFormat;
  readonly #starts = new Map<number, bigint>();

  /** A time zone that is none, which only a hand can have written into the settings, counts as UTC. */
  constructor({ timeZone, holidays }: WorkCalendar) {
    this.#holidays = new Set(holidays.flatMap(numbersOf));
    this.#format = formatOf(timeZone);
  }

  /**
   * The time at which so many business days have passed since another: as far into its day as the other one. What passes
   * of days that are none does not count, so from a Saturday on it is the beginning of a day. Never goes back as the other
   * time goes on.
   */
  after(fromMicros: bigint, count: number): bigint {
    let day = this.#dayOf(fromMicros);
    let intoMicros = fromMicros - this.#startOf(day);
    if (!this.#isBusinessDay(day)) {
      intoMicros = 0n;
      day = this.#nextBusinessDay(day);
    }
    for (let left = count; left > 0; left -= 1) day = this.#nextBusinessDay(day);
    const [start, end] = [this.#startOf(day), this.#startOf(day + 1)];
    // Where clocks are put forward a day is shorter than the one that is counted from.
    return start + intoMicros < end ? start + intoMicros : end;
  }

  /** The first time of a day, `YYYY-MM-DD`. */
  startOfDay(day: string): bigint {
    return this.#startOf(numberOf(day));
  }

  #nextBusinessDay(day: number): number {
    let next = day + 1;
    while (!this.#isBusinessDay(next)) next += 1;
    return next;
  }

  #isBusinessDay(day: number): boolean {
    const weekday = (((day + EPOCH_WEEKDAY) % DAYS_OF_WEEK) + DAYS_OF_WEEK) % DAYS_OF_WEEK;
    return weekday !== 0 && weekday !== 6 && !this.#holidays.has(day);
  }

  /** By where days begin, so that an hour that clocks show twice around midnight belongs to one day only. */
  #dayOf(micros: bigint): number {
    let day = this.#shownDayOf(micros);
    while (micros < this.#startOf(day)) day -= 1;
    while (micros >= this.#startOf(day + 1)) day += 1;
    return day;
  }

  /** The first second at which clocks show this day or a later one: some zones have left days out. */
  #startOf(day: number): bigint {
    const known = this.#starts.get(day);
    if (known !== undefined) return known;
    const midnight = BigInt(day) * MICROS_PER_DAY;
    let [before, from] = [midnight - OFFSET_MAX, midnight + OFFSET_MAX];
    while (from - before > MICROS_PER_SECOND) {
      const middle = before + ((from - before) / MICROS_PER_SECOND / 2n) * MICROS_PER_SECOND;
      if (this.#shownDayOf(middle) >= day) from = middle;
      else before = middle;
    }
    this.#starts.set(day, from);
    return from;
  }

  #shownDayOf(micros: bigint): number {
    const millis = micros / MICROS_PER_MILLI - (micros % MICROS_PER_MILLI < 0n ? 1n : 0n);
    let [year, month, day] = [0, 0, 0];
    for (const { type, value } of this.#format.formatToParts(Number(millis))) {
      if (type === 'year') year = Number(value);
      else if (type === 'month') month = Number(value);
      else if (type === 'day') day = Number(value);
    }
    return Math.floor(Date.UTC(year, month - 1, day) / Number(MICROS_PER_DAY / MICROS_PER_MILLI));
  }
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const parts = { calendar: 'iso8601', year: 'numeric', month: 'numeric', day: 'numeric' } as const;
  try {
    return new Intl.DateTimeFormat('en-u-nu-latn', { ...parts, timeZone });
  } catch {
    return new Intl.DateTimeFormat('en-u-nu-latn', { ...parts, timeZone: 'UTC' });
  }
}

/** Days since 1970-01-01. */
function numberOf(day: string): number {
  return Number(microsOfDay(day) / MICROS_PER_DAY);
}

/** None of what looks like a day and is none: only a hand can have written it into the settings. */
function numbersOf(day: string): number[] {
  const instant = parseInstant(day);
  return instant?.dateOnly ? [Number(instant.micros / MICROS_PER_DAY)] : [];
}
