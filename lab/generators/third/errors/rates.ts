/** Wrong prices of right counts: bill, or bill and usage report, prove them. */
import { agreedPrices } from '../booking.js';
import { dayAt } from '../calendar.js';
import { stepWithin } from '../company.js';
import {
  FRESH,
  KEEP_LONG,
  KEEP_SHORT,
  listPrices,
  OUT,
  type Prices,
  READ,
  stepOn,
  times,
} from '../tariffs.js';
import type { Call } from '../traffic.js';
import {
  ALL,
  CLASSES,
  FULL,
  isOf,
  isPlain,
  type Kind,
  keepsShort,
  last,
  priced,
  reads,
  some,
  withMeter,
} from './kind.js';

/** The call's price before the last step of its model; undefined: there was none. */
function priceBefore(call: Call): Prices | undefined {
  const { tariff, perMille } = call.series;
  const step = stepOn(tariff, dayAt(call.at));
  const listed = step > 0 ? listPrices(tariff, step - 1, call.use) : undefined;
  return listed && times(listed, perMille);
}

/** Contracts grant a whole number of half percent, so these factors are no discount and no listed ratio. */
const ODD_FACTORS = [1_063, 1_137, 1_290, 1_370, 1_730] as const;

export const RATE_KINDS: readonly Kind[] = [
  {
    form: 'batch_at_full_price',
    cause: 'batch_discount_not_applied',
    weight: 5,
    proof: 'rate',
    order: 2,
    shownAt: CLASSES,
    isPossible: (series) => some(series, ({ batchShare }) => batchShare > 0),
    change(call, booking) {
      const full = call.use.isBatch ? agreedPrices(call, { isBatch: false }) : undefined;
      return full && priced(booking, () => full);
    },
  },
  {
    form: 'reads_at_fresh_price',
    cause: 'cache_read_rate_mismatch',
    weight: 5,
    proof: 'rate',
    order: 3,
    shownAt: CLASSES,
    isPossible: reads,
    change: (_, booking) => priced(booking, (prices) => withMeter(prices, READ, prices[FRESH] ?? 0n)),
  },
  {
    form: 'reads_at_half_price',
    cause: 'cache_read_rate_mismatch',
    weight: 2,
    proof: 'rate',
    order: 3,
    shownAt: CLASSES,
    isPossible: (series) =>
      reads(series) && (last(series)?.standard[READ] ?? 1) * 4 < (last(series)?.standard[FRESH] ?? 0),
    change: (_, booking) => priced(booking, (prices) => withMeter(prices, READ, (prices[FRESH] ?? 0n) / 2n)),
  },
  {
    form: 'short_writes_at_hour_price',
    cause: 'cache_write_rate_mismatch',
    weight: 3,
    proof: 'rate',
    order: 3,
    shownAt: CLASSES,
    isPossible: (series) => isOf('anthropic')(series) && keepsShort(series),
    change: (_, booking) =>
      priced(booking, (prices) => withMeter(prices, KEEP_SHORT, prices[KEEP_LONG] ?? 0n)),
  },
  {
    form: 'short_prompts_at_long_price',
    cause: 'long_context_rate_misapplied',
    weight: 3,
    proof: 'rate',
    order: 2,
    shownAt: CLASSES,
    isPossible: (series) => last(series)?.long !== undefined,
    change(call, booking) {
      const long = isPlain(call) ? agreedPrices(call, { isLong: true }) : undefined;
      return long && priced(booking, () => long);
    },
  },
  {
    form: 'standard_at_priority_price',
    cause: 'service_tier_rate_misapplied',
    weight: 4,
    proof: 'rate',
    order: 2,
    shownAt: ALL,
    isPossible: (series) => series.tariff.steps.every(({ priority }) => priority),
    change(call, booking) {
      const prices = isPlain(call) ? agreedPrices(call, { tier: 'priority' }) : undefined;
      return prices && priced(booking, () => prices);
    },
  },
  {
    form: 'global_at_place_price',
    cause: 'region_uplift_misapplied',
    weight: 5,
    proof: 'rate',
    order: 4,
    shownAt: FULL,
    isPossible: ({ tariff }) => tariff.elsewhere > 1_000,
    change: (call, booking) =>
      call.use.isElsewhere
        ? undefined
        : priced(booking, (prices) => times(prices, call.series.tariff.elsewhere)),
  },
  {
    form: 'old_price_kept',
    cause: 'price_effective_date_mismatch',
    otherNames: ['promotional_rate_not_applied'],
    weight: 10,
    proof: 'rate',
    order: 2,
    shownAt: CLASSES,
    isPossible: (series, _, period) => stepWithin(series.tariff, period, 3),
    change(call, booking) {
      const prices = priceBefore(call);
      return prices && priced(booking, () => prices);
    },
  },
  {
    form: 'list_instead_of_contract',
    cause: 'contract_rate_not_applied',
    weight: 9,
    proof: 'rate',
    order: 2,
    shownAt: ALL,
    isPossible: (series) => series.isContractEntered,
    change(call, booking) {
      const { tariff, at, use } = { ...call, ...call.series };
      const listed = listPrices(tariff, stepOn(tariff, dayAt(at)), use);
      return listed && priced(booking, () => listed);
    },
  },
  {
    form: 'odd_factor',
    cause: 'not_in_library',
    weight: 4,
    proof: 'rate',
    order: 5,
    shownAt: [],
    isPossible: () => true,
    change: (_, booking, { drawn }) =>
      priced(booking, (prices) =>
        withMeter(prices, OUT, times(prices, ODD_FACTORS[drawn % ODD_FACTORS.length] ?? 1_063)[OUT] ?? 0n),
      ),
  },
  {
    form: 'priority_at_standard_price',
    cause: 'service_tier_rate_misapplied',
    weight: 2,
    proof: 'rate',
    order: 2,
    shownAt: FULL,
    isPossible: (series) => some(series, ({ tier, tierShare }) => tier === 'priority' && tierShare > 0),
    change(call, booking) {
      const prices = call.use.tier === 'priority' ? agreedPrices(call, { tier: 'standard' }) : undefined;
      return prices && priced(booking, () => prices);
    },
  },
  {
    form: 'long_prompts_at_short_price',
    cause: 'long_context_rate_misapplied',
    weight: 2,
    proof: 'rate',
    order: 2,
    shownAt: FULL,
    isPossible: (series) => some(series, ({ longShare }) => longShare > 0),
    change(call, booking) {
      const prices = call.use.isLong ? agreedPrices(call, { isLong: false }) : undefined;
      return prices && priced(booking, () => prices);
    },
  },
];
