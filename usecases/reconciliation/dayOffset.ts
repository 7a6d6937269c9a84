import { findDayOffset, type HourOfBoth } from '../../domain/reconciliation/evidence/dayOffset.js';

/** Fourteen days at a time. */
const FORTNIGHTS_MAX = 3;

/**
 * By how many hours a provider's clock is ahead of UTC: what the newest fourteen days of its usage report before `toDay` tell,
 * or, where these do not tell, the fourteen before. A clock that is changed twice a year does not tell in the days about the
 * change, and would else be taken for UTC in these. 0 where none tell. `read` is `listHoursOfBoth` of the provider.
 */
export async function tellDayOffset(
  toDay: string,
  read: (toDay: string) => Promise<{ hours: readonly HourOfBoth[]; fromDay: string | null }>,
): Promise<number> {
  let before = toDay;
  for (let at = 0; at < FORTNIGHTS_MAX; at += 1) {
    const { hours, fromDay } = await read(before);
    if (fromDay === null) return 0;
    const offset = findDayOffset(hours);
    if (offset !== undefined) return offset;
    before = fromDay;
  }
  return 0;
}
