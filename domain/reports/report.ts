import { MICROS_PER_DAY, microsOfDay, shiftDay } from '../period.js';

/** The sections of a management report, in the order in which they appear. */
export const REPORT_SECTIONS = ['summary', 'spend', 'violations', 'enforcement', 'reconciliation'] as const;
export type ReportSection = (typeof REPORT_SECTIONS)[number];

/** Sections in their fixed order, each once; all of them where none is named. */
export function sectionsOf(named: readonly ReportSection[] | undefined): ReportSection[] {
  return REPORT_SECTIONS.filter((section) => named === undefined || named.includes(section));
}

/** `request`: somebody asked for it. `schedule`: its time had come. */
export const REPORT_CAUSES = ['request', 'schedule'] as const;
export type ReportCause = (typeof REPORT_CAUSES)[number];

/** Longest period of one report. */
export const REPORT_DAYS_MAX = 366;
/** A report is kept for so long after it was generated. */
export const REPORT_KEPT_DAYS = 90;

/** UTC days, both included, `YYYY-MM-DD`. */
export interface ReportPeriod {
  fromDay: string;
  toDay: string;
}

export function daysOfPeriod({ fromDay, toDay }: ReportPeriod): number {
  return Number((microsOfDay(toDay) - microsOfDay(fromDay)) / MICROS_PER_DAY) + 1;
}

/** The days before a period, as many as it has. */
export function periodBefore(period: ReportPeriod): ReportPeriod {
  const days = daysOfPeriod(period);
  return { fromDay: shiftDay(period.fromDay, -days), toDay: shiftDay(period.fromDay, -1) };
}

/** A period as half-open times. */
export function windowOfPeriod({ fromDay, toDay }: ReportPeriod): { fromMicros: bigint; toMicros: bigint } {
  return { fromMicros: microsOfDay(fromDay), toMicros: microsOfDay(shiftDay(toDay, 1)) };
}

/** The period that one point of a trend covers. */
export type TrendGrain = 'day' | 'week' | 'month';

/** Points of a trend that a page has room for. */
const DAYS_SHOWN_MAX = 35;
const WEEKS_SHOWN_MAX_DAYS = 140;

export function grainOf(period: ReportPeriod): TrendGrain {
  const days = daysOfPeriod(period);
  if (days <= DAYS_SHOWN_MAX) return 'day';
  return days <= WEEKS_SHOWN_MAX_DAYS ? 'week' : 'month';
}

/** The parts of a period: days, weeks from Monday to Sunday, or months; the first and the last may be shorter. */
export function partsOfPeriod(period: ReportPeriod): ReportPeriod[] {
  const grain = grainOf(period);
  const parts: ReportPeriod[] = [];
  for (let day = period.fromDay; day <= period.toDay; ) {
    const end = endOfPart(day, grain);
    const toDay = end < period.toDay ? end : period.toDay;
    parts.push({ fromDay: day, toDay });
    day = shiftDay(toDay, 1);
  }
  return parts;
}

function endOfPart(day: string, grain: TrendGrain): string {
  if (grain === 'day') return day;
  if (grain === 'week') return shiftDay(day, (7 - weekdayOf(day)) % 7);
  return shiftDay(`${shiftDay(`${day.slice(0, 7)}-01`, 31).slice(0, 7)}-01`, -1);
}

/** 1 for Monday to 7 for Sunday. */
export function weekdayOf(day: string): number {
  // 1970-01-01 was a Thursday.
  const since = Number(microsOfDay(day) / MICROS_PER_DAY) + 3;
  return (((since % 7) + 7) % 7) + 1;
}
