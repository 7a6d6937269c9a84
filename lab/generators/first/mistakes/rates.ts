/** Mistakes of the rate: the actual usage is billed at a wrong price. */

import type { Charge } from '../../bills/ledger.js';
import {
  INPUT,
  type ListRates,
  periodAt,
  type Rates,
  READ,
  ratesOf,
  scaled,
  WRITE_1H,
  WRITE_5M,
} from '../../bills/rateBook.js';
import { dayNumber, dayOf } from '../../support/days.js';
import type { Series } from '../series.js';
import { atRates, changed, isOrdinary, type Kind, type Mistake, withRate } from './mistake.js';
import { hasDoubleTier } from './quantities.js';

/** The contract of the series applies to wrong rates too. */
const agreed = (rates: Rates, series: Series): Rates => scaled(rates, series.contractPerMille);

const rate = (list: ListRates, series: Series): Rates => agreed(ratesOf(list), series);

const asUs = (rates: Rates, charge: Charge, series: Series): Rates =>
  charge.geo === 'us' && series.book.usPerMille ? scaled(rates, series.book.usPerMille) : rates;

export const batchForgotten: Kind = (series, { random }) => {
  if (series.habits.batchShare === 0) return undefined;
  const isLabelled = random.chance(0.3);
  return {
    form: isLabelled ? 'batch_counted_as_standard' : 'batch_at_standard_rates',
    cause: 'batch_discount_not_applied',
    nature: isLabelled ? 'label' : 'rate',
    bill: (call, right, seconds) => {
      if (!call.isBatch) return right;
      const period = periodAt(series.book, dayOf(seconds));
      const list = call.isLong ? period.long?.standard : period.standard;
      if (!list) return right;
      const dear = (charge: Charge) => asUs(rate(list, series), charge, series);
      return isLabelled
        ? changed(right, (charge) => ({ ...charge, isBatch: false, rates: dear(charge) }))
        : atRates(right, dear);
    },
  };
};

/** The reverse: ordinary calls at batch rates. */
export const batchGivenAway: Kind = (series) => {
  if (!periodAt(series.book, dayNumber('2026-11-01')).batch) return undefined;
  return {
    form: 'standard_at_batch_rates',
    cause: 'batch_discount_not_applied',
    otherNames: ['service_tier_rate_misapplied'],
    nature: 'rate',
    isUniform: true,
    bill: (call, right, seconds) => {
      const list = periodAt(series.book, dayOf(seconds)).batch;
      if (!isOrdinary(call) || !list) return right;
      return atRates(right, (charge) => asUs(rate(list, series), charge, series));
    },
  };
};

export const readAtInput: Kind = (series) =>
  series.habits.promptMix[READ] === 0
    ? undefined
    : {
        form: 'cache_read_at_input_rate',
        cause: 'cache_read_rate_mismatch',
        nature: 'rate',
        bill: (_call, right) => atRates(right, ({ rates }) => withRate(rates, READ, rates[INPUT] as bigint)),
      };

export const inputAtRead: Kind = () => ({
  form: 'input_at_cache_read_rate',
  cause: 'cache_read_rate_mismatch',
  otherNames: ['list_rate_mismatch'],
  nature: 'rate',
  bill: (_call, right) => atRates(right, ({ rates }) => withRate(rates, INPUT, rates[READ] as bigint)),
});

const writes =
  (from: number, to: number, form: string): Kind =>
  (series) =>
    (series.habits.promptMix[from] ?? 0) < 0.02 || (to === WRITE_1H && series.provider !== 'anthropic')
      ? undefined
      : {
          form,
          cause: 'cache_write_rate_mismatch',
          nature: 'rate',
          bill: (_call, right) => atRates(right, ({ rates }) => withRate(rates, from, rates[to] as bigint)),
        };

export const write5mAt1h = writes(WRITE_5M, WRITE_1H, 'cache_write_5m_at_1h_rate');
export const write1hAt5m = writes(WRITE_1H, WRITE_5M, 'cache_write_1h_at_5m_rate');
export const writeAsInput = writes(WRITE_5M, INPUT, 'cache_write_at_input_rate');

export const longOnShort: Kind = (series, { random }) => {
  if (!series.book.periods.some((period) => period.long)) return undefined;
  const isLabelled = random.chance(0.4);
  return {
    form: isLabelled ? 'short_requests_counted_as_long' : 'short_requests_at_long_rates',
    cause: 'long_context_rate_misapplied',
    nature: isLabelled ? 'label' : 'rate',
    bill: (call, right, seconds) => {
      const list = periodAt(series.book, dayOf(seconds)).long?.standard;
      if (!isOrdinary(call) || !list) return right;
      const dear = (charge: Charge) => asUs(rate(list, series), charge, series);
      return isLabelled
        ? changed(right, (charge) => ({ ...charge, isLong: true, rates: dear(charge) }))
        : atRates(right, dear);
    },
  };
};

export const shortOnLong: Kind = (series) =>
  series.habits.longShare === 0
    ? undefined
    : {
        form: 'long_requests_at_short_rates',
        cause: 'long_context_rate_misapplied',
        nature: 'rate',
        bill: (call, right, seconds) => {
          const list = periodAt(series.book, dayOf(seconds)).standard;
          if (!call.isLong || call.isBatch) return right;
          return atRates(right, (charge) => asUs(rate(list, series), charge, series));
        },
      };

export const dearTier: Kind = (series) => {
  const period = series.book.periods.at(-1);
  const tier = period?.priority ? 'priority' : period?.fast ? 'fast' : undefined;
  if (!tier || !period) return undefined;
  return {
    form: `standard_at_${tier}_rates`,
    cause: 'service_tier_rate_misapplied',
    // Without quantities in the bill, twice the amount can also be a day that is billed twice.
    otherNames: hasDoubleTier(series) ? ['duplicate_charge'] : [],
    nature: 'rate',
    isUniform: true,
    // Exactly twice the amount is also the cost of a day that is charged twice.
    hasTwin: period[tier]?.[INPUT] === period.standard[INPUT] * 2,
    bill: (call, right, seconds) => {
      const list = periodAt(series.book, dayOf(seconds))[tier];
      if (!isOrdinary(call) || !list) return right;
      return atRates(right, (charge) => asUs(rate(list, series), charge, series));
    },
  };
};

export const cheapTier: Kind = (series) =>
  series.habits.priorityShare === 0
    ? undefined
    : {
        form: 'priority_at_standard_rates',
        cause: 'service_tier_rate_misapplied',
        nature: 'rate',
        bill: (call, right, seconds) =>
          call.tier === 'priority'
            ? atRates(right, () => rate(periodAt(series.book, dayOf(seconds)).standard, series))
            : right,
      };

const US_PER_MILLE = 1_100;

export const upliftOnGlobal: Kind = (series) =>
  series.book.usPerMille === undefined
    ? undefined
    : {
        form: 'us_uplift_on_global',
        cause: 'region_uplift_misapplied',
        nature: 'rate',
        isUniform: true,
        bill: (call, right) =>
          call.geo === 'us' ? right : atRates(right, ({ rates }) => scaled(rates, US_PER_MILLE)),
      };

export const upliftForgotten: Kind = (series) =>
  series.habits.usShare === 0
    ? undefined
    : {
        form: 'us_uplift_forgotten',
        cause: 'region_uplift_misapplied',
        nature: 'rate',
        isUniform: true,
        bill: (call, right) =>
          call.geo === 'us'
            ? atRates(right, ({ rates }) => rates.map((one) => (one * 1_000n) / BigInt(US_PER_MILLE)))
            : right,
      };

const contract =
  (form: string, factor: (rates: Rates, perMille: number) => Rates): Kind =>
  (series) =>
    series.contractPerMille === 1_000
      ? undefined
      : {
          form,
          cause: 'contract_rate_not_applied',
          nature: 'rate',
          isUniform: true,
          bill: (_call, right) => atRates(right, ({ rates }) => factor(rates, series.contractPerMille)),
        };

export const contractForgotten = contract('contract_forgotten', (rates, perMille) =>
  rates.map((one) => (one * 1_000n) / BigInt(perMille)),
);
export const contractTwice = contract('contract_applied_twice', (rates, perMille) => scaled(rates, perMille));

/** Scales every class by the ratio of two periods' standard rates, for any tier. */
function repriced(right: Parameters<Mistake['bill']>[1], from: ListRates, to: ListRates) {
  const [now, then] = [ratesOf(from), ratesOf(to)];
  return atRates(right, ({ rates }) =>
    rates.map((one, at) => (now[at] === 0n ? one : (one * (then[at] as bigint)) / (now[at] as bigint))),
  );
}

/** The price before a past cut. */
export const oldPrice: Kind = (series) => {
  const [before, after] = series.book.periods;
  if (!before || !after?.from || after.from > '2026-12') return undefined;
  const isPromotion = series.book.model === 'gpt-5.6-sol';
  return {
    form: 'old_price_after_cut',
    cause: 'price_effective_date_mismatch',
    otherNames: isPromotion ? ['promotional_rate_not_applied'] : [],
    nature: 'rate',
    bill: (_call, right, seconds) =>
      periodAt(series.book, dayOf(seconds)) === after
        ? repriced(right, after.standard, before.standard)
        : right,
  };
};

/** The price after a future cut. */
export const newPriceTooEarly: Kind = (series, { firstDay }) => {
  const [before, after] = series.book.periods;
  if (!before || !after?.from || dayNumber(after.from) <= firstDay + 3 || after.from > '2026-12')
    return undefined;
  return {
    form: 'new_price_before_cut',
    cause: 'price_effective_date_mismatch',
    otherNames: ['promotional_rate_not_applied'],
    nature: 'rate',
    bill: (_call, right, seconds) =>
      periodAt(series.book, dayOf(seconds)) === before
        ? repriced(right, before.standard, after.standard)
        : right,
  };
};

/** The announced price while the introductory one still applies. */
export const promotionForgotten: Kind = (series) => {
  const [now, later] = series.book.periods;
  if (!now || !later?.from || later.from < '2026-12') return undefined;
  return {
    form: 'introductory_price_forgotten',
    cause: 'promotional_rate_not_applied',
    otherNames: ['price_effective_date_mismatch'],
    nature: 'rate',
    isUniform: true,
    hasTwin: true,
    bill: (_call, right) => repriced(right, now.standard, later.standard),
  };
};
