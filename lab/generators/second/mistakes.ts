/**
 * Mistakes of providers as changes of single charges. Each begins and ends at any hour, affects one series, and
 * has as impact the difference between its charges and those by the documented rates.
 */
import {
  type BookPeriod,
  INPUT,
  listRates,
  OUTPUT,
  periodAt,
  type Rates,
  READ,
  scaled,
  WRITE_1H,
  WRITE_5M,
} from '../bills/rateBook.js';
import { DAY_SECONDS } from '../support/days.js';
import type { Random } from '../support/random.js';
import type { GeneratedVisibility } from '../world.js';
import { REVOKED_AFTER_SECONDS, type SeriesPlan } from './series.js';
import type { RealCall } from './traffic.js';

/** The charge of a call: quantities and rates, and the words on the bill. */
export interface Charged {
  tokens: readonly number[];
  rates: Rates;
  isLong: boolean;
  keyId: string;
}

export interface MistakeKind {
  cause: string;
  otherNames?: readonly string[];
  form: string;
  /** Relative frequency among the possible kinds. */
  weight: number;
  isPossible(series: SeriesPlan, days: { firstDay: number; lastDay: number }): boolean;
  /** The wrong charges; undefined: the call is not affected. `right` is undefined for a call that costs nothing. */
  change(call: RealCall, right: Charged | undefined, random: Random): readonly Charged[] | undefined;
  /** Visibilities at which the bill and complete calls suffice to identify it. */
  seenAt: readonly GeneratedVisibility[];
  /** Quantities identify it, so most of the calls must be reported too. */
  needsCalls: boolean;
  /** Only the provider's answers identify it. */
  needsAnswers?: boolean;
}

const ALL: readonly GeneratedVisibility[] = ['V3', 'V2', 'V1', 'V0'];
const BY_CLASS: readonly GeneratedVisibility[] = ['V3', 'V2', 'V1'];
const BY_QUANTITY: readonly GeneratedVisibility[] = ['V3', 'V2'];

const periodOf = (call: RealCall): BookPeriod =>
  periodAt(call.series.model, Math.floor(call.endSeconds / DAY_SECONDS));

/** The call's rates with other requested options; undefined: the list has none. */
function ratesIf(call: RealCall, change: Partial<RealCall['asked']>): Rates | undefined {
  try {
    return listRates(call.series.model, periodOf(call), { ...call.asked, ...change });
  } catch {
    return undefined;
  }
}

/** With one class's rate replaced. */
function withRate(rates: Rates, tokenClass: number, rate: bigint): Rates {
  return rates.map((known, at) => (at === tokenClass ? rate : known));
}

const isPlain = (call: RealCall): boolean =>
  !call.asked.isBatch && !call.asked.isLong && call.asked.tier === 'standard';

/** A change of the rates of the affected calls. */
const rate =
  (ratesOf: (call: RealCall, right: Charged) => Rates | undefined) =>
  (call: RealCall, right: Charged | undefined): readonly Charged[] | undefined => {
    const rates = right && ratesOf(call, right);
    return right && rates ? [{ ...right, rates }] : undefined;
  };

const hasReads = (series: SeriesPlan) => series.readShare > 0.1;
const hasWrites = (series: SeriesPlan) => series.writeShare > 0.02;

/** A key of the series that was no longer used at that time, at a provider whose costs name keys. */
function revokedBefore(series: SeriesPlan, seconds: number): string | undefined {
  if (series.model.provider === 'anthropic') return undefined;
  return series.keys.find(
    ({ untilSeconds }) => untilSeconds !== null && untilSeconds + REVOKED_AFTER_SECONDS <= seconds,
  )?.keyId;
}

/** The price period of the model before the one in force on the first day; undefined: there is none. */
function dropOf(series: SeriesPlan, days: { firstDay: number }): BookPeriod | undefined {
  const { periods } = series.model;
  const now = periods.indexOf(periodAt(series.model, days.firstDay));
  return now > 0 ? periods[now - 1] : undefined;
}

export const OVERCHARGES: readonly MistakeKind[] = [
  {
    cause: 'batch_discount_not_applied',
    form: 'batch_at_standard',
    weight: 3,
    isPossible: (series) => series.batchShare > 0,
    change: rate((call) => (call.asked.isBatch ? ratesIf(call, { isBatch: false }) : undefined)),
    seenAt: ALL,
    needsCalls: false,
  },
  {
    cause: 'cache_read_rate_mismatch',
    form: 'reads_at_input',
    weight: 3,
    isPossible: hasReads,
    change: rate((_, right) => withRate(right.rates, READ, right.rates[INPUT] ?? 0n)),
    seenAt: ALL,
    needsCalls: false,
  },
  {
    cause: 'cache_write_rate_mismatch',
    form: 'short_writes_as_long',
    weight: 2,
    isPossible: (series) => hasWrites(series) && !series.hourWrites && series.model.provider === 'anthropic',
    change: rate((_, right) => withRate(right.rates, WRITE_5M, right.rates[WRITE_1H] ?? 0n)),
    seenAt: BY_CLASS,
    needsCalls: false,
  },
  {
    cause: 'cached_tokens_double_metered',
    form: 'cached_as_input_too',
    weight: 3,
    isPossible: (series) => hasReads(series) || hasWrites(series),
    change: (_, right) =>
      right && [
        {
          ...right,
          tokens: right.tokens.map((count, at) =>
            at === INPUT
              ? count +
                (right.tokens[READ] ?? 0) +
                (right.tokens[WRITE_5M] ?? 0) +
                (right.tokens[WRITE_1H] ?? 0)
              : count,
          ),
        },
      ],
    seenAt: ALL,
    needsCalls: true,
  },
  {
    cause: 'long_context_rate_misapplied',
    form: 'short_as_long',
    weight: 2,
    isPossible: (series, { firstDay }) =>
      periodAt(series.model, firstDay).long !== undefined && series.model.provider !== 'google',
    change: (call, right) => {
      const rates = isPlain(call) ? ratesIf(call, { isLong: true }) : undefined;
      return right && rates && [{ ...right, rates, isLong: true }];
    },
    seenAt: BY_CLASS,
    needsCalls: true,
  },
  {
    cause: 'service_tier_rate_misapplied',
    form: 'standard_at_priority',
    weight: 2,
    isPossible: (series, { firstDay }) => periodAt(series.model, firstDay).priority !== undefined,
    change: rate((call) => (isPlain(call) ? ratesIf(call, { tier: 'priority' }) : undefined)),
    seenAt: ALL,
    needsCalls: false,
  },
  {
    cause: 'region_uplift_misapplied',
    form: 'global_at_us',
    weight: 2,
    isPossible: (series) => series.model.usPerMille !== undefined && series.model.provider === 'anthropic',
    change: rate((call, right) =>
      call.asked.geo === 'global' ? scaled(right.rates, call.series.model.usPerMille ?? 1_000) : undefined,
    ),
    seenAt: BY_QUANTITY,
    needsCalls: false,
  },
  {
    cause: 'price_effective_date_mismatch',
    otherNames: ['promotional_rate_not_applied'],
    form: 'price_drop_ignored',
    weight: 6,
    isPossible: (series, days) => dropOf(series, days) !== undefined,
    change: rate((call) => {
      const period = isPlain(call)
        ? dropOf(call.series, { firstDay: Math.floor(call.endSeconds / DAY_SECONDS) })
        : undefined;
      return period && listRates(call.series.model, period, call.asked);
    }),
    seenAt: ALL,
    needsCalls: false,
  },
  {
    cause: 'contract_rate_not_applied',
    form: 'list_instead_of_contract',
    weight: 6,
    isPossible: (series) => series.contract?.isReported === true,
    change: rate((call) => ratesIf(call, {})),
    seenAt: ALL,
    needsCalls: false,
  },
  {
    cause: 'failed_request_billed',
    form: 'attempts_charged',
    weight: 2,
    isPossible: () => true,
    change: (call) => {
      const rates = call.status === 'error' ? ratesIf(call, {}) : undefined;
      return rates && [{ tokens: call.tokens, rates, isLong: call.asked.isLong, keyId: call.keyId }];
    },
    seenAt: BY_QUANTITY,
    needsCalls: true,
    needsAnswers: true,
  },
  {
    cause: 'unauthorized_key_usage',
    form: 'revoked_key',
    weight: 8,
    isPossible: (series, { firstDay }) => revokedBefore(series, firstDay * DAY_SECONDS) !== undefined,
    change: (call, right, random) => {
      const day = Math.floor(call.endSeconds / DAY_SECONDS);
      const keyId = revokedBefore(call.series, day * DAY_SECONDS);
      return right && keyId !== undefined && random.chance(0.3) ? [right, { ...right, keyId }] : undefined;
    },
    // Only OpenAI's costs and files contain the key; coarser reports do not.
    seenAt: ['V3'],
    needsCalls: true,
  },
  {
    cause: 'unauthorized_key_usage',
    form: 'foreign_key',
    weight: 1,
    isPossible: (series) => series.model.provider === 'openai',
    change: (_call, right, random) =>
      right && random.chance(0.3) ? [right, { ...right, keyId: 'key_foreign' }] : undefined,
    // An unregistered key may be the company's own.
    seenAt: [],
    needsCalls: true,
  },
  {
    cause: 'duplicate_charge',
    form: 'every_request_twice',
    weight: 1,
    isPossible: () => true,
    change: (_, right, random) => (right && random.chance(0.2) ? [right, right] : undefined),
    seenAt: [],
    needsCalls: true,
  },
  ...[1_070, 1_170, 1_430].map(
    (perMille): MistakeKind => ({
      cause: 'not_in_library',
      form: `output_times_${perMille}`,
      weight: 0.7,
      isPossible: () => true,
      change: rate((_, right) =>
        withRate(right.rates, OUTPUT, ((right.rates[OUTPUT] ?? 0n) * BigInt(perMille)) / 1_000n),
      ),
      seenAt: [],
      needsCalls: false,
    }),
  ),
];

export const UNDERCHARGES: readonly MistakeKind[] = [
  {
    cause: 'long_context_rate_misapplied',
    form: 'long_as_short',
    weight: 2,
    isPossible: (series, { firstDay }) => periodAt(series.model, firstDay).long !== undefined,
    change: (call, right) => {
      const rates = call.asked.isLong && !call.asked.isBatch ? ratesIf(call, { isLong: false }) : undefined;
      return right && rates && [{ ...right, rates, isLong: false }];
    },
    seenAt: BY_QUANTITY,
    needsCalls: true,
  },
  {
    cause: 'cache_write_rate_mismatch',
    form: 'long_writes_as_short',
    weight: 2,
    isPossible: (series) => hasWrites(series) && series.hourWrites,
    change: rate((_, right) => withRate(right.rates, WRITE_1H, right.rates[WRITE_5M] ?? 0n)),
    seenAt: BY_CLASS,
    needsCalls: false,
  },
  {
    cause: 'service_tier_rate_misapplied',
    form: 'priority_at_standard',
    weight: 3,
    isPossible: (series) => series.tier === 'priority' && series.tierShare > 0,
    change: rate((call) =>
      call.asked.tier === 'priority' ? ratesIf(call, { tier: 'standard' }) : undefined,
    ),
    seenAt: BY_QUANTITY,
    needsCalls: false,
  },
];

/** Draws a possible kind by weight. */
export function drawKind(
  random: Random,
  kinds: readonly MistakeKind[],
  series: SeriesPlan,
  days: { firstDay: number; lastDay: number },
): MistakeKind | undefined {
  const possible = kinds.filter((kind) => kind.isPossible(series, days));
  let left = random.next() * possible.reduce((sum, { weight }) => sum + weight, 0);
  for (const kind of possible) {
    left -= kind.weight;
    if (left <= 0) return kind;
  }
  return possible.at(-1);
}
