/**
 * That a mistake of counting gives a direction and not the counts: over some days what it predicts has to be what was billed,
 * up to a part of what it is about.
 */
import { touchedOf } from './history.js';
import type { RunOfDays } from './runs.js';

/** A day or two may be off by scatter alone. */
const DAYS_MIN = 3;
const MISSED_MAX = 0.25;
/** Of what is told for sure: as much as some calls' count on the day beside, or an attempt that was not seen. */
const MISSED_SURE = 0.05;

/** Whether what a run's explanation predicts is farther from the bill than a quarter of what it has too many or too few. */
export function missesCounts(run: RunOfDays): boolean {
  if (run.state.hypothesis?.blame !== 'provider' || run.days.length < DAYS_MIN) return false;
  return missedShare(run) > MISSED_MAX;
}

/** Whether it gives the counts themselves, so that nothing else could have left them so. */
export const givesCounts = (run: RunOfDays): boolean => missedShare(run) <= MISSED_SURE;

/** How far its counts are from the bill's, in dollars, as a share of what it is about; 0 where it takes them from the bill. */
function missedShare(run: RunOfDays): number {
  if (run.state.hypothesis?.nature !== 'quantity') return 0;
  let [missed, moved] = [0, 0];
  for (const { judged } of run.days) {
    const { shown } = judged;
    if (!shown?.variant || shown.variant.provenOf) return 0;
    for (const { of, billed, observed, value } of touchedOf(judged)) {
      const predicted = shown.prediction.quantities[of.index] ?? Number.NaN;
      if (Number.isNaN(predicted) || !(billed > 0)) continue;
      const perUnit = value / Math.max(billed, predicted, observed, 1);
      missed += perUnit * Math.abs(billed * Math.min(1, shown.fit.coverage) - predicted);
      moved += perUnit * Math.abs(predicted - observed);
    }
  }
  return missed === 0 ? 0 : missed / moved;
}
