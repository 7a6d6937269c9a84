import { QUANTITY_ONE } from '../../../billing/billedRow.js';
import type { TokenClass } from '../../../events/event.js';
import { absPico } from '../../../money.js';
import { type DayRates, ORDINARY, type PeriodView } from '../../audit/dayRates.js';
import {
  DISCOUNT_PERCENT_MAX,
  SAME_RATIO_PARTS,
  SEEN_RATIO_PARTS,
  STEPS_PER_PERCENT,
} from '../calibration.js';
import {
  type Hypothesis,
  having,
  type MeterDay,
  type Run,
  type SeriesContext,
  type SeriesDay,
  sentenceOf,
  touchesEdge,
  type Variant,
} from './cause.js';
import { chargedMeters, type Ratio, sharedRatio } from './places.js';
import {
  amountAs,
  hasQuantities,
  multipleOf,
  otherCharge,
  otherPeriod,
  repriced,
  scaled,
  sumOf,
} from './predict.js';

const WORDS = {
  discount:
    'Everything was charged % percent below what is entered: a discount that no entered contract tells of.',
};

/**
 * The same round discount in every class, and no contract with it: none is entered, or one of a smaller discount. Under
 * an entered contract a discount that comes and goes is the bill's.
 */
export const contractTerms: Hypothesis = {
  kind: 'contract_terms',
  nature: 'rate',
  blame: 'none',
  needs: ['quantity'],
  variants: (day) => {
    const hasQuantities = day.meters.some(({ meter }) => meter.quantity !== null);
    const charged = hasQuantities ? chargedMeters(day.meters) : seenMeters(day);
    const ratio = hasQuantities ? sharedRatio(charged) : sumsOf(charged);
    if (!ratio || ratio.billedPico >= ratio.expectedPico) return [];
    const { billedPico, expectedPico } = ratio;
    const whole = 100n * STEPS_PER_PERCENT;
    const steps = ((expectedPico - billedPico) * whole + expectedPico / 2n) / expectedPico;
    if (steps === 0n || steps > DISCOUNT_PERCENT_MAX * STEPS_PER_PERCENT) return [];
    const predicted = (expectedPico * (whole - steps)) / whole;
    const parts = hasQuantities ? SAME_RATIO_PARTS : SEEN_RATIO_PARTS;
    if (absPico(predicted - billedPico) * parts > expectedPico) return [];
    const percentBelow = Number(steps) / Number(STEPS_PER_PERCENT);
    const isMeant = (meter: MeterDay) => charged.some((one) => one.index === meter.index);
    return having(
      { percentBelow },
      multipleOf(day, `discount:${percentBelow}`, whole - steps, whole, isMeant),
    );
  },
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => [
    'Enter the contract under /pricing/contract-rates with its first day: without it nobody can say whether it was applied.',
  ],
};

/** On a bill of amounts alone: what was observed at the agreed rates, in the place of the billed quantities. */
function seenMeters(day: SeriesDay): MeterDay[] {
  return day.meters.flatMap((one) => {
    const expectedPico = amountAs(day, one, one.observed);
    const isCharged = one.meter.amountPico > 0n && expectedPico !== null && expectedPico > 0n;
    return isCharged ? [{ ...one, expectedPico }] : [];
  });
}

function sumsOf(meters: readonly MeterDay[]): Ratio | undefined {
  const billedPico = sumOf(meters.map(({ meter }) => meter.amountPico));
  const expectedPico = sumOf(meters.map((one) => one.expectedPico ?? 0n));
  return billedPico > 0n && expectedPico > 0n ? { billedPico, expectedPico } : undefined;
}

const CONTRACT_RATE_WORDS = {
  list_price: 'The list price was charged instead of the contract’s.',
  discount_twice: 'The contract’s discount was taken off twice.',
  other_contract: 'The rates of the contract that held from % on were charged while another one held.',
};

/** Another price than the contract's: the list's, or that of a contract of other days. */
export const contractRate: Hypothesis = {
  kind: 'contract_rate_not_applied',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'contract'],
  variants: (day) =>
    day.pricedAs !== null && isUnderContract(day, day.pricedAs)
      ? [
          ...otherCharge(day, 'list_price', { rates: day.list }),
          // With amounts alone less than agreed in all classes may as well be terms, or events that count too much.
          // A discount that is larger from the first day on, or to the last, is one that was agreed and not entered.
          ...(hasQuantities(day)
            ? having({ isMoreDiscount: true, isAnyPrice: true, lastsAs: isInside }, discountTwice(day))
            : []),
          ...otherContracts(day, day.pricedAs),
        ]
      : [],
  describe: (variant) => sentenceOf(CONTRACT_RATE_WORDS, variant),
  advise: () => [
    'Send the clause of the contract that names the rates, and the first day on which they hold.',
  ],
};

const isInside = (run: Run, context: SeriesContext): boolean => !touchesEdge(run, context);

function isUnderContract(day: SeriesDay, model: string): boolean {
  const found = day.agreed.periodsOf(model);
  return found?.periods[found.now]?.contractId != null;
}

function discountTwice(day: SeriesDay): Variant[] {
  return repriced(day, 'discount_twice', (meter, quantity) => {
    const list = amountAs(day, meter, quantity, { rates: day.list });
    const agreed = amountAs(day, meter, quantity);
    return list === null || agreed === null ? null : scaled(agreed, agreed, list);
  });
}

/** Periods of other contracts; what the same contract makes of another list price is a matter of dates. */
function otherContracts(day: SeriesDay, model: string): Variant[] {
  const found = day.agreed.periodsOf(model);
  if (!found) return [];
  const now = found.periods[found.now];
  return found.periods
    .filter((period) => period.contractId !== null && period.contractId !== now?.contractId)
    .flatMap((period) =>
      otherCharge(day, `other_contract:${period.fromDay ?? 'the beginning'}`, { rates: period.rates }),
    );
}

const PRICE_DATES_WORDS = {
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
  describe: (variant) => sentenceOf(PRICE_DATES_WORDS, variant),
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
  describe: (variant) => sentenceOf(PRICE_DATES_WORDS, variant),
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
    // Periods that differ by their contract are the contract's matter; before a contract and after it the list holds.
    if (place === now || period.contractId !== current.contractId) return [];
    const isRegular = isTemporary && isCheaper(current.rates, period.rates, model);
    if (isRegular !== promotional) return [];
    const side = place < now ? 'before' : 'after';
    const name = isRegular ? `regular:${side}` : datedName(periods, place, now);
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

/** Neither input nor output dearer, and one of them cheaper. */
function isCheaper(a: DayRates, b: DayRates, model: string): boolean {
  const rate = (rates: DayRates, name: TokenClass) => rates.rate(model, name, ORDINARY)?.rate;
  const pairs = (['input', 'output'] as const).map((name) => [rate(a, name), rate(b, name)] as const);
  return (
    pairs.every(([one, other]) => one !== undefined && other !== undefined && one <= other) &&
    pairs.some(([one, other]) => one !== undefined && other !== undefined && one < other)
  );
}
