import { MICROS_PER_DAY, microsOfDay } from '../../period.js';
import type { Run, SeriesContext } from './hypothesis.js';

/** Share of a series' days from which on a run is how the series always is. */
const MOST_PERCENT = 80n;

function daysBetween(first: string, last: string): bigint {
  return (microsOfDay(last) - microsOfDay(first)) / MICROS_PER_DAY + 1n;
}

/** Whether a run is nearly all that there is: a fault of the measuring does not come and go. */
export function coversMost(run: Run, context: Run): boolean {
  return (
    daysBetween(run.firstDay, run.lastDay) * 100n >=
    daysBetween(context.firstDay, context.lastDay) * MOST_PERCENT
  );
}

/** Whether it begins with the series or lasts to its end: nothing shows then that the old price came back. */
export function touchesEdge(run: Run, context: SeriesContext): boolean {
  return run.firstDay <= context.firstDay || run.lastDay >= context.lastDay;
}

/** Whether it lasts more than a day: on one day alone many things look like a rate or a count of their own. */
export function lasts(run: Run): boolean {
  return run.firstDay < run.lastDay;
}

const EPISODE_DAYS_MIN = 5n;
const EPISODE_PERCENT_MAX = 40n;

/** A stretch of some days within a longer history, with an end on both sides: something happened, and was put right. */
export function isEpisode(run: Run, context: SeriesContext): boolean {
  const days = daysBetween(run.firstDay, run.lastDay);
  const all = daysBetween(context.firstDay, context.lastDay);
  return days >= EPISODE_DAYS_MIN && days * 100n <= all * EPISODE_PERCENT_MAX && !touchesEdge(run, context);
}
