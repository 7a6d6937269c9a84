/**
 * Days of which clearly fewer calls were seen than of others. Nothing is wrong with their bill, and every explanation is
 * judged with a share of its own; but a reader of the gap wants to know that it consists of these calls.
 */
import { FEWER_WEIGHS, LESS, LESS_SIGMA_MIN, SIGMAS, UNSEEN_PRIOR } from '../calibration.js';
import type { Variant } from '../causes/cause.js';
import { amountAs } from '../causes/predict.js';
import { unobservedUsage } from '../causes/repeats.js';
import type { SeriesNoise } from './fit.js';
import type { DayReading } from './reading.js';
import { type DayState, type DayWork, NULL_STATE, type State } from './states.js';

/** Stands for the null where it rests on a share of its own: no state that competes. */
export const FEWER_SEEN: State = {
  kind: 'unobserved_usage',
  variant: 'fewer_seen',
  traits: {},
  hypothesis: unobservedUsage,
  logPrior: Math.log(UNSEEN_PRIOR),
};

/** The day as one of which fewer calls were seen; undefined where it is as usual, or its bill has no quantities. */
export function fewerSeen({ reading, right, states }: DayWork, noise: SeriesNoise): DayState | undefined {
  const none = states.get(NULL_STATE);
  if (!none || !reading.judged || !reading.comparable || reading.depth !== 'quantities') return undefined;
  const usual = Math.min(1, noise.coverage);
  const share = seenShare(reading);
  const lack = Math.log(usual / share);
  if (lack < LESS || lack < SIGMAS * Math.max(noise.quantitySigma, LESS_SIGMA_MIN)) return undefined;
  const variant: Variant = {
    name: FEWER_SEEN.variant,
    amountOf: (meter, quantity) => amountAs(reading.day, meter, quantity),
    // Whatever the bill has beyond what was seen.
    quantityOf: () => null,
    touches: (meter) => (meter.meter.quantity ?? 0n) > meter.observed,
  };
  return {
    fit: { ...none.fit, coverage: share },
    prediction: right,
    variant,
  };
}

/** The share of the billed quantities that was seen, by what they cost; 1 where the day has none. */
function seenShare({ day, meters }: DayReading): number {
  let [billed, seen] = [0, 0];
  for (const { of } of meters) {
    billed += Number(of.expectedPico ?? 0n);
    seen += Number(amountAs(day, of, of.observed) ?? 0n);
  }
  return billed > 0 && seen > 0 ? seen / billed : 1;
}

/** Classes that every call has: a prompt and an answer. */
const OF_EVERY_CALL: readonly string[] = ['input', 'output'];

/**
 * Unobserved calls lack input and output, in any mixture, and every other class that they use: a service that caches nothing
 * lacks no cached tokens. A wrong count lacks one class.
 */
export function lacksCalls({ reading }: DayWork, noise: SeriesNoise): boolean {
  const classes = new Map<string, ClassOfDay>();
  let whole = 0;
  for (const { of, billed, observed, value } of reading.meters) {
    const known = classes.get(of.tokenClass) ?? { billed: 0, seen: 0, value: 0 };
    whole += value;
    classes.set(of.tokenClass, {
      billed: known.billed + billed,
      seen: known.seen + observed,
      value: known.value + value,
    });
  }
  const usual = Math.min(1, noise.coverage);
  const weighs = [...classes].filter(([, { value }]) => value >= FEWER_WEIGHS * whole);
  if (weighs.every(([, { billed, seen }]) => seen < billed * usual * (1 - LESS / 2))) return true;
  const lackOf = (name: string, { billed, seen }: ClassOfDay): number => {
    const sigma = noise.classSigmas.get(name) ?? noise.quantitySigma;
    return Math.log((billed * usual) / seen) / Math.max(sigma, LESS_SIGMA_MIN);
  };
  return (
    OF_EVERY_CALL.every((name) => {
      const of = classes.get(name);
      return of !== undefined && lackOf(name, of) > SIGMAS;
    }) && weighs.every(([name, of]) => lackOf(name, of) > -SIGMAS)
  );
}

/** Counts of a class on all meters of a day, and what they cost. */
interface ClassOfDay {
  billed: number;
  seen: number;
  value: number;
}
