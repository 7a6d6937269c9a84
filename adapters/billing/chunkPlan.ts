import type { Feed } from '../../domain/billing/billedRow.js';
import { MICROS_PER_DAY, microsOfDay, startOfDay } from '../../domain/period.js';
import type { ReportChunk } from './connector.js';

/** One report of a provider: how finely it is told and how many buckets one page holds at most. */
export interface ReportFacts {
  report: string;
  feed: Feed;
  /** Buckets of one page by width; a report without `1h` is told by the day only. */
  bucketsMax: { '1d': number; '1h'?: number };
}

const MICROS_PER_HOUR = MICROS_PER_DAY / 24n;
/** Usage of the days that began so many days before today is asked by the hour, of older ones by the day. */
export const HOURLY_DAYS = 31n;

/**
 * Chunks of every report for the half-open window of UTC days, each at most one page: reports in the order given, in
 * each the latest days first, so that what is looked at first is there first.
 */
export function planChunks(
  reports: readonly ReportFacts[],
  window: { fromDay: string; toDay: string },
  nowMicros: bigint,
): ReportChunk[] {
  const from = microsOfDay(window.fromDay);
  const to = microsOfDay(window.toDay);
  const hourlyFrom = startOfDay(nowMicros) - HOURLY_DAYS * MICROS_PER_DAY;
  return reports.flatMap((facts) => {
    const hours = facts.bucketsMax['1h'];
    if (hours === undefined) return cut(facts, '1d', facts.bucketsMax['1d'], from, to);
    const border = hourlyFrom < from ? from : hourlyFrom > to ? to : hourlyFrom;
    return [
      ...cut(facts, '1h', hours, border, to),
      ...cut(facts, '1d', facts.bucketsMax['1d'], from, border),
    ];
  });
}

function cut(
  { report, feed }: ReportFacts,
  bucketWidth: '1d' | '1h',
  bucketsMax: number,
  from: bigint,
  to: bigint,
): ReportChunk[] {
  const widthMicros = bucketWidth === '1d' ? MICROS_PER_DAY : MICROS_PER_HOUR;
  const spanMicros = BigInt(bucketsMax) * widthMicros;
  const chunks: ReportChunk[] = [];
  for (let endMicros = to; endMicros > from; endMicros -= spanMicros) {
    const startMicros = endMicros - spanMicros < from ? from : endMicros - spanMicros;
    chunks.push({ report, feed, bucketWidth, startMicros, endMicros });
  }
  return chunks;
}
