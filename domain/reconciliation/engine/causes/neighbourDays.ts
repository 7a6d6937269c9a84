/** Use of one day that is billed on the next: no mistake, unless it was billed on both. */
import { ALIKE, ALIKE_PERCENT, RIGHT_PARTS, WEIGHS_PARTS } from '../calibration.js';
import { type Hypothesis, type MeterDay, type SeriesDay, sentenceOf, type Variant } from './cause.js';
import { placeKey } from './places.js';
import { amountAs, countedVariant, isOneRatioOf, quantityVariant } from './predict.js';

const WORDS = {
  to_next: 'A part of the day’s use was billed on the next day.',
  from_next: 'A part of the next day’s use was billed on this day.',
  to_before: 'A part of the day’s use was billed on the day before.',
  from_before: 'A part of the use of the day before was billed on this day.',
  previous_day_alike:
    'As much was billed on the first day of a month as that day and the one before used, both of the same mixture.',
  previous_day_again: 'The use of the last day of a month was billed again on the first day of the next.',
};

/** Two days that together are right, each alone is not. */
export const timingShift: Hypothesis = {
  kind: 'timing_shift',
  nature: 'quantity',
  blame: 'none',
  needs: ['quantity'],
  variants: (day) => [...shifted(day, day.after, 'next'), ...shifted(day, day.before, 'before')],
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ['Nothing to do: over both days the bill is right.'],
};

/** Use of the month's last day on the bills of both months. */
export const periodDoubleCount: Hypothesis = {
  kind: 'period_double_count',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage'],
  variants: (day) => dayBeforeAgain(day, true),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ['Put the two months’ bills beside each other: the last day stands on both.'],
};

/**
 * The same where both days' use is of one mixture: a part of the first day's unobserved calls is billed likewise, as are
 * those of a job that runs once a month.
 */
export const periodDoubleCountAlike: Hypothesis = {
  ...periodDoubleCount,
  highest: 'LOW',
  variants: (day) => dayBeforeAgain(day, false),
  advise: () => [
    'Put the two months’ bills beside each other, and look for calls of the first day that nobody sends: a job of once a month looks the same.',
  ],
};

function dayBeforeAgain(day: SeriesDay, isOfOtherMix: boolean): Variant[] {
  const { before } = day;
  if (day.day.slice(8) !== '01' || !before || excessShare(before) !== 'right') return [];
  const byKey = byPlace(before);
  const quantities = new Map<number, bigint>();
  for (const meter of day.meters) {
    const again = byKey.get(placeKey(meter))?.observed ?? 0n;
    if (again > 0n) quantities.set(meter.index, meter.observed + again);
  }
  if (quantities.size === 0 || isProportional(day, quantities) === isOfOtherMix) return [];
  return [countedVariant(day, isOfOtherMix ? 'previous_day_again' : 'previous_day_alike', quantities)];
}

function isProportional(day: SeriesDay, quantities: ReadonlyMap<number, bigint>): boolean {
  const dollars = dollarsOf(day)?.observed ?? 0n;
  const grown = day.meters.flatMap((meter) => {
    const worth = amountAs(day, meter, quantities.get(meter.index) ?? meter.observed) ?? 0n;
    if (worth * WEIGHS_PARTS < dollars) return [];
    const quantity = quantities.get(meter.index) ?? meter.observed;
    return meter.observed === 0n ? [null] : [(quantity * 10_000n) / meter.observed];
  });
  const shares = grown.filter((one) => one !== null);
  if (shares.length < grown.length || shares.length === 0) return shares.length === 0;
  return isOneRatioOf(shares, ALIKE_PERCENT);
}

/** Billed less than was seen, on a day that the provider may still restate. */
export const lateUsage: Hypothesis = {
  kind: 'late_usage_adjustment',
  nature: 'quantity',
  blame: 'none',
  needs: ['quantity'],
  variants: (day) =>
    day.evidence.provisional && excessShare(day) === 'less'
      ? [quantityVariant(day, 'still_rising', new Map(day.meters.map((meter) => [meter.index, null])))]
      : [],
  describe: () => 'Not all of the day’s use is on the bill yet: the provider may still add to it.',
  advise: () => ['Fetch or import these days again when the provider is done with them.'],
};

function byPlace(day: SeriesDay): Map<string, MeterDay> {
  return new Map(day.meters.map((meter) => [placeKey(meter), meter]));
}

/** The ratio of a day's billed quantities to the observed ones, at the agreed rates. */
function excessShare(day: SeriesDay): 'right' | 'more' | 'less' | 'unknown' {
  const dollars = dollarsOf(day);
  if (!dollars) return 'unknown';
  const difference = dollars.billed - dollars.observed;
  const size = difference < 0n ? -difference : difference;
  if (size * RIGHT_PARTS <= dollars.observed) return 'right';
  return difference > 0n ? 'more' : 'less';
}

/** Billed and observed quantities at the agreed rates; undefined where one of them is unknown. */
function dollarsOf(day: SeriesDay): { billed: bigint; observed: bigint } | undefined {
  let billed = 0n;
  let observed = 0n;
  for (const meter of day.meters) {
    const ours = amountAs(day, meter, meter.observed);
    if (meter.expectedPico === null || ours === null) return undefined;
    billed += meter.expectedPico;
    observed += ours;
  }
  return { billed, observed };
}

/** Both days' sums agree in every class that matters, while the day alone is off. */
function shifted(day: SeriesDay, other: SeriesDay | null | undefined, side: 'next' | 'before'): Variant[] {
  const alone = excessShare(day);
  if (!other || (alone !== 'more' && alone !== 'less')) return [];
  const neighbours = byPlace(other);
  const own = byPlace(day);
  const quantities = new Map<number, bigint>();
  for (const [key, meter] of own) {
    const beside = neighbours.get(key);
    const rest = (beside?.observed ?? 0n) - (beside?.meter.quantity ?? 0n);
    const predicted = meter.observed + rest;
    if (predicted < 0n) return [];
    quantities.set(meter.index, predicted);
  }
  if (!agreesOverall(day, quantities)) return [];
  return [quantityVariant(day, `${alone === 'more' ? 'from' : 'to'}_${side}`, quantities)];
}

/** The predicted quantities cost what the billed ones do, within two percent. */
function agreesOverall(day: SeriesDay, quantities: ReadonlyMap<number, bigint>): boolean {
  let difference = 0n;
  let whole = 0n;
  for (const meter of day.meters) {
    const predicted = amountAs(day, meter, quantities.get(meter.index) ?? meter.observed);
    if (predicted === null || meter.expectedPico === null) return false;
    const apart = predicted - meter.expectedPico;
    difference += apart < 0n ? -apart : apart;
    whole += meter.expectedPico;
  }
  return difference * ALIKE <= whole;
}
