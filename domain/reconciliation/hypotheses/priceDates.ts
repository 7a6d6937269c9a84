import { QUANTITY_ONE } from '../../billing/billedRow.js';
import type { TokenClass } from '../../events/event.js';
import type { DayRates, PeriodView } from '../audit/dayRates.js';
import type { Hypothesis, SeriesDay, Variant } from './hypothesis.js';
import { otherPeriod } from './predict.js';
import { sentenceOf } from './words.js';

const WORDS = {
  not_yet: 'The price from before % was charged while the later one held.',
  too_early: 'The price from % on was charged while the earlier one held.',
  regular: 'The regular price was charged, while a temporary lower one held.',
};

const ASK = ['Point to the day from which the provider’s price list gives the rate.'];

/** The price of an earlier or a later period. */
export const priceEffectiveDate: Hypothesis = {
  kind: 'price_effective_date_mismatch',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source'],
  variants: (day) => ofPeriods(day, false),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};

/**
 * A temporary price that was not given. By the price history: the period that holds has an end, the period after it is
 * dearer, and it is no dearer than the one before it. Any other change is a matter of dates.
 */
export const promotionalRate: Hypothesis = {
  kind: 'promotional_rate_not_applied',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source'],
  variants: (day) => ofPeriods(day, true),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};

function ofPeriods(day: SeriesDay, promotional: boolean): Variant[] {
  const model = day.pricedAs;
  const found = model === null ? undefined : day.agreed.periodsOf(model);
  if (!found || model === null) return [];
  const { periods, now } = found;
  const current = periods[now];
  if (!current) return [];
  const isTemporary = isPromotion(periods, now, model);
  const variants = periods.flatMap((period, place) => {
    if (place === now || !sameContract(period, current)) return [];
    const isRegular = isTemporary && isCheaper(current.rates, period.rates, model);
    if (isRegular !== promotional) return [];
    const name = isRegular ? regularName(place < now) : datedName(periods, place, now);
    return otherPeriod(day, name, period.rates);
  });
  return variants.filter(
    (one, at) => !variants.slice(0, at).some((earlier) => isSamePrediction(day, one, earlier)),
  );
}

/** A price that came back is one price. */
function isSamePrediction(day: SeriesDay, a: Variant, b: Variant): boolean {
  return day.meters.every((meter) => a.amountOf(meter, PROBE) === b.amountOf(meter, PROBE));
}

/** A million tokens. */
const PROBE = 1_000_000n * QUANTITY_ONE;

/** Periods that differ by their contract are the contract's matter; before a contract and after it the list holds. */
function sameContract(a: PeriodView, b: PeriodView): boolean {
  return a.contractId === b.contractId;
}

function regularName(isBefore: boolean): string {
  return isBefore ? 'regular:before' : 'regular:after';
}

function datedName(periods: readonly PeriodView[], place: number, now: number): string {
  return place < now
    ? `not_yet:${periods[place]?.toDay ?? ''}`
    : `too_early:${periods[place]?.fromDay ?? ''}`;
}

function isPromotion(periods: readonly PeriodView[], now: number, model: string): boolean {
  const [before, current, after] = [periods[now - 1], periods[now], periods[now + 1]];
  if (!current || current.toDay === null || !after) return false;
  if (!isCheaper(current.rates, after.rates, model)) return false;
  return !before || isCheaper(current.rates, before.rates, model);
}

const ORDINARY = {
  serviceTier: 'standard',
  isBatch: false,
  longContext: false,
  contextBand: 0,
  region: null,
} as const;

/** Neither input nor output dearer, and one of them cheaper. */
function isCheaper(a: DayRates, b: DayRates, model: string): boolean {
  const rate = (rates: DayRates, name: TokenClass) => rates.rate(model, name, ORDINARY)?.rate;
  const pairs = (['input', 'output'] as const).map((name) => [rate(a, name), rate(b, name)] as const);
  return (
    pairs.every(([one, other]) => one !== undefined && other !== undefined && one <= other) &&
    pairs.some(([one, other]) => one !== undefined && other !== undefined && one < other)
  );
}
