/**
 * That a mistake of counting gives a direction and not the counts: over some days what it predicts has to be what was billed,
 * up to a part of what it is about.
 */
import { touchedOf } from './history.js';
import type { RunOfDays } from './runs.js';

/** A day or two may be off by scatter alone. */
const DAYS_MIN = 3;
const MISSED_MAX = 0.25;

/** Whether what a run's explanation predicts is farther from the bill than a quarter of what it has too many or too few. */
export function missesCounts(run: RunOfDays): boolean {
  const { hypothesis } = run.state;
  if (hypothesis?.nature !== 'quantity' || hypothesis.blame !== 'provider' || run.days.length < DAYS_MIN)
    return false;
  let [missed, moved] = [0, 0];
  for (const { judged } of run.days) {
    const { shown } = judged;
    if (!shown?.variant || shown.variant.provenOf) return false;
    for (const { of, billed, observed, value } of touchedOf(judged)) {
      const predicted = shown.prediction.quantities[of.index] ?? Number.NaN;
      if (Number.isNaN(predicted) || !(billed > 0)) continue;
      const perUnit = value / Math.max(billed, predicted, observed, 1);
      missed += perUnit * Math.abs(billed * Math.min(1, shown.fit.coverage) - predicted);
      moved += perUnit * Math.abs(predicted - observed);
    }
  }
  return missed > MISSED_MAX * moved;
}
