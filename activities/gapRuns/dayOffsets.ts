import type { GapRun } from '../../db/reconciliation/gapRuns.js';
import { listHoursOfBoth } from '../../db/reconciliation/hoursOfBoth.js';
import { knownOffsetHours } from '../../domain/billing/billingDay.js';
import type { Provider } from '../../domain/providers.js';
import { tellDayOffset } from '../../usecases/reconciliation/dayOffset.js';
import type { RunWork } from './runWork.js';

/** A provider-day of a run's window. */
export interface MarkedDay {
  provider: Provider;
  day: string;
  /** The mark of its own inputs now, and the whole mark that it was published with; '' when it is not. */
  baseMark: string;
  publishedMark: string;
}

const POINT = '.';

/** A day's mark with the offset that it is matched with; `beside` tells what it depends on besides where it is shifted. */
export function markWithOffset(baseMark: string, offsetHours: number, beside: string): string {
  return `${baseMark}${POINT}${offsetHours}${offsetHours === 0 ? '' : `/${beside}`}`;
}

const offsetOf = (mark: string): number => Number.parseInt(mark.split(POINT)[1] ?? '0', 10);

/**
 * By how many hours each provider's clock is ahead of UTC; those that are not are left out. Estimated anew where an input
 * of any of the provider's days has changed, and as it is published where none has.
 */
export async function estimateOffsets(
  { orgDb }: RunWork,
  days: readonly MarkedDay[],
  toDay: string,
): Promise<GapRun['dayOffsets']> {
  const offsets: GapRun['dayOffsets'] = {};
  for (const provider of [...new Set(days.map((day) => day.provider))].sort()) {
    const own = days.filter((day) => day.provider === provider);
    const isUnchanged = own.every((day) => day.publishedMark.startsWith(`${day.baseMark}${POINT}`));
    const offset =
      knownOffsetHours(provider) ??
      (isUnchanged
        ? offsetOf(own.at(-1)?.publishedMark ?? '')
        : await tellDayOffset(toDay, (before) => listHoursOfBoth(orgDb, { provider, toDay: before })));
    if (offset !== 0) offsets[provider] = offset;
  }
  return offsets;
}
