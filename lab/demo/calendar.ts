/**
 * The demo's days. Day 0 is the last one, which is yesterday, and day −88 the first: with today they are the 90
 * days of the longest gap period. Every figure of the demo is at such an offset.
 */
import { rfc3339 } from '../bills/pages.js';

export const DAY_COUNT = 89;
export const DAY_SECONDS = 86_400;
export const HOUR_SECONDS = 3_600;

export class Calendar {
  readonly #endDay: number;

  /** `endDay`: the last day, `YYYY-MM-DD` UTC. */
  constructor(endDay: string) {
    const seconds = Date.parse(`${endDay}T00:00:00Z`) / 1_000;
    if (!/^\d{4}-\d{2}-\d{2}$/.test(endDay) || Number.isNaN(seconds))
      throw new RangeError(`endDay must be a day such as 2026-11-20, not "${endDay}"`);
    this.#endDay = seconds / DAY_SECONDS;
  }

  /** First second of a day, Unix time. */
  startSeconds(offset: number): number {
    return (this.#endDay + offset) * DAY_SECONDS;
  }

  /** `YYYY-MM-DD` */
  dayText(offset: number): string {
    return rfc3339(this.startSeconds(offset)).slice(0, 10);
  }

  isWeekend(offset: number): boolean {
    // 1970-01-01 was a Thursday.
    const weekday = (((this.#endDay + offset + 4) % 7) + 7) % 7;
    return weekday === 0 || weekday === 6;
  }

  /** Offsets of all days, ascending. */
  offsets(): number[] {
    return Array.from({ length: DAY_COUNT }, (_, index) => index - DAY_COUNT + 1);
  }
}
