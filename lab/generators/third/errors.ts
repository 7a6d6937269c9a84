/**
 * The mistakes of providers, each as a change of one call's booking. A mistake has a window that begins and ends at any
 * minute, and may concern one key or one place only. Several mistakes may change one booking, one after the other;
 * each has as impact what it adds.
 */
import type { GeneratedVisibility } from '../world.js';
import { agreedPrices, type Booking, dearerThan, type Line, lineOf } from './booking.js';
import { DAY, dayAt, numberOfDay } from './calendar.js';
import { FOREIGN_ACCOUNT, type Period, type Series, stepWithin } from './company.js';
import type { Dice } from './dice.js';
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
} from './tariffs.js';
import type { Call } from './traffic.js';

/**
 * The proof of a mistake: the bill alone (`rate`), a contradiction between bill and usage report or a key on the bill
 * (`sealed`), or the company's calls (`count`).
 */
export type Proof = 'rate' | 'sealed' | 'count';

export interface Mistake {
  id: string;
  kind: Kind;
  series: Series;
  /** Half-open, Unix seconds. */
  from: number;
  to: number;
  /** The only affected key, or the only affected place; both undefined: all. */
  keyId: string | undefined;
  isElsewhere: boolean | undefined;
  /** A number that a kind drew for the whole window. */
  drawn: number;
  partner: Series | undefined;
}

export interface Kind {
  form: string;
  cause: string;
  otherNames?: readonly string[];
  weight: number;
  proof: Proof;
  /** Mistakes of lower order are made first. */
  order: number;
  /** Visibilities whose documents could show it. */
  shownAt: readonly GeneratedVisibility[];
  /** Its longest window in days; absent: three weeks. */
  longest?: number;
  /** Additional calls of a stranger, as a share of the series' calls. */
  intruders?: number;
  /** undefined: any. A failed attempt must be refused by the provider as the client reports it. */
  needs?: 'answers';
  isPossible(series: Series, company: readonly Series[], period: Period): boolean;
  /** The wrong booking; undefined: this call is not affected. */
  change(call: Call, booking: Booking, mistake: Mistake): Booking | undefined;
}

const ALL: readonly GeneratedVisibility[] = ['V3', 'V2', 'V1', 'V0'];
const CLASSES: readonly GeneratedVisibility[] = ['V3', 'V2', 'V1'];
const FULL: readonly GeneratedVisibility[] = ['V3'];

const last = (series: Series) => series.tariff.steps[series.tariff.steps.length - 1];
const some = (series: Series, has: (service: Series['services'][number]) => boolean) =>
  series.services.some(has);
const reads = (series: Series) => some(series, ({ readShare }) => readShare > 0.1);
const keepsShort = (series: Series) => some(series, (one) => one.writeShare > 0.02 && !one.keepsLong);
const isOf =
  (...providers: string[]) =>
  (series: Series) =>
    providers.includes(series.account.provider);
const isPlain = ({ use }: Call) => !use.isBatch && !use.isLong && use.tier === 'standard';

/** Changes each line of the bill, and not the usage report. */
function onBill(booking: Booking, change: (line: Line) => Line): Booking {
  return { ...booking, cost: booking.cost.map(change) };
}

const priced = (booking: Booking, change: (prices: Prices, line: Line) => Prices) =>
  onBill(booking, (line) => ({ ...line, prices: change(line.prices, line) }));

const withMeter = (prices: Prices, meter: number, price: bigint): Prices =>
  prices.map((known, at) => (at === meter ? price : known));

function moved(counts: readonly number[], from: number, to: number): number[] {
  const result = [...counts];
  result[to] = (result[to] ?? 0) + (result[from] ?? 0);
  result[from] = 0;
  return result;
}

/** The cached tokens once more as fresh input. */
const twiceMetered = (counts: readonly number[]): number[] =>
  counts.map((count, at) =>
    at === FRESH ? count + (counts[READ] ?? 0) + (counts[KEEP_SHORT] ?? 0) + (counts[KEEP_LONG] ?? 0) : count,
  );

/** The days since the last price step, or undefined before it. */
function priceBefore(call: Call): Prices | undefined {
  const { tariff, perMille } = call.series;
  const step = stepOn(tariff, dayAt(call.at));
  const listed = step > 0 ? listPrices(tariff, step - 1, call.use) : undefined;
  return listed && times(listed, perMille);
}

/** Contracts grant a whole number of half percent, so these factors are no discount and no listed ratio. */
const ODD_FACTORS = [1_063, 1_137, 1_290, 1_370, 1_730] as const;

export const KINDS: readonly Kind[] = [
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
    form: 'short_writes_on_hour_line',
    cause: 'cache_write_rate_mismatch',
    weight: 3,
    proof: 'sealed',
    order: 1,
    shownAt: CLASSES,
    isPossible: (series) => isOf('anthropic')(series) && keepsShort(series),
    change: (_, booking) =>
      onBill(booking, (line) => ({ ...line, counts: moved(line.counts, KEEP_SHORT, KEEP_LONG) })),
  },
  {
    form: 'cached_also_as_fresh',
    cause: 'cached_tokens_double_metered',
    weight: 4,
    proof: 'count',
    order: 1,
    shownAt: CLASSES,
    isPossible: reads,
    change: (_, { cost, report }) => {
      const twice = (line: Line) => ({ ...line, counts: twiceMetered(line.counts) });
      return { cost: cost.map(twice), report: report.map(twice) };
    },
  },
  {
    form: 'cached_also_as_fresh_on_bill',
    cause: 'cached_tokens_double_metered',
    weight: 3,
    proof: 'sealed',
    order: 1,
    shownAt: CLASSES,
    isPossible: (series) => isOf('openai')(series) && reads(series),
    change: (_, booking) => onBill(booking, (line) => ({ ...line, counts: twiceMetered(line.counts) })),
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
    form: 'short_prompts_on_long_line',
    cause: 'long_context_rate_misapplied',
    weight: 3,
    proof: 'sealed',
    order: 2,
    shownAt: CLASSES,
    isPossible: (series) => last(series)?.long !== undefined && isOf('anthropic')(series),
    change(call, booking) {
      const prices = isPlain(call) ? agreedPrices(call, { isLong: true }) : undefined;
      return prices && onBill(booking, (line) => ({ ...line, prices, use: { ...line.use, isLong: true } }));
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
    form: 'standard_on_priority_line',
    cause: 'service_tier_rate_misapplied',
    weight: 3,
    proof: 'sealed',
    order: 2,
    shownAt: ALL,
    isPossible: (series) => isOf('openai')(series) && series.tariff.steps.every(({ priority }) => priority),
    change(call, booking) {
      const prices = isPlain(call) ? agreedPrices(call, { tier: 'priority' }) : undefined;
      return (
        prices && onBill(booking, (line) => ({ ...line, prices, use: { ...line.use, tier: 'priority' } }))
      );
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
    form: 'global_on_place_line',
    cause: 'region_uplift_misapplied',
    weight: 3,
    proof: 'sealed',
    order: 4,
    shownAt: FULL,
    isPossible: (series) => isOf('anthropic')(series) && series.tariff.elsewhere > 1_000,
    change: (call, booking) =>
      call.use.isElsewhere
        ? undefined
        : onBill(booking, (line) => ({
            ...line,
            prices: times(line.prices, call.series.tariff.elsewhere),
            use: { ...line.use, isElsewhere: true },
          })),
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
    form: 'failed_attempts_charged',
    cause: 'failed_request_billed',
    weight: 4,
    proof: 'count',
    order: 0,
    shownAt: FULL,
    needs: 'answers',
    isPossible: (series) => some(series, ({ errorShare }) => errorShare > 0.03),
    change(call) {
      if (call.outcome !== 'error') return undefined;
      const line = lineOf(call, call.counts);
      return { cost: [line], report: [line] };
    },
  },
  {
    form: 'hours_charged_twice',
    cause: 'duplicate_charge',
    weight: 4,
    longest: 1.2,
    proof: 'sealed',
    order: 8,
    shownAt: FULL,
    isPossible: isOf('openai', 'anthropic'),
    change: (_, { cost, report }) => ({ cost: [...cost, ...cost], report }),
  },
  {
    form: 'charged_as_dearer_model',
    cause: 'model_misattribution',
    weight: 4,
    proof: 'count',
    order: 2,
    shownAt: FULL,
    needs: 'answers',
    isPossible: (series, company) =>
      !isOf('aws_bedrock')(series) && dearerThan(series, company) !== undefined,
    change(call, booking, { partner }) {
      if (!partner || !isPlain(call)) return undefined;
      const prices = agreedPrices({ ...call, series: partner });
      const other = (line: Line): Line => ({
        ...line,
        tariff: partner.tariff,
        prices: prices ?? line.prices,
      });
      return prices && { cost: booking.cost.map(other), report: booking.report.map(other) };
    },
  },
  {
    form: 'revoked_key',
    cause: 'unauthorized_key_usage',
    longest: 8,
    weight: 4,
    proof: 'sealed',
    order: 0,
    shownAt: FULL,
    intruders: 0.12,
    isPossible: isOf('openai'),
    change: (call) => intrusion(call, `${call.service.keyId}_old`),
  },
  {
    form: 'unknown_key',
    cause: 'unauthorized_key_usage',
    longest: 8,
    weight: 3,
    proof: 'sealed',
    order: 0,
    shownAt: FULL,
    intruders: 0.1,
    isPossible: isOf('openai'),
    change: (call) => intrusion(call, 'key_stranger'),
  },
  {
    form: 'unknown_linked_account',
    cause: 'unauthorized_key_usage',
    longest: 8,
    weight: 4,
    proof: 'sealed',
    order: 0,
    shownAt: FULL,
    intruders: 0.1,
    isPossible: isOf('aws_bedrock'),
    change: (call) => intrusion(call, FOREIGN_ACCOUNT, FOREIGN_ACCOUNT),
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
    form: 'output_counted_longer',
    cause: 'token_count_inflation',
    weight: 2,
    proof: 'count',
    order: 1,
    // A client that counts otherwise looks the same.
    shownAt: [],
    isPossible: () => true,
    change: (_, { cost, report }, { drawn }) => {
      const longer = (line: Line): Line => ({
        ...line,
        counts: line.counts.map((count, at) =>
          at === OUT ? count + Math.ceil((count * (4 + (drawn % 20))) / 100) : count,
        ),
      });
      return { cost: cost.map(longer), report: report.map(longer) };
    },
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

/** A stranger's call: the company's own booking has nothing of it. */
function intrusion(call: Call, keyId: string, project = call.service.project): Booking {
  const line = { ...lineOf(call, call.counts), keyId, project };
  return { cost: [line], report: [line] };
}

/** Four fifths of the series have one to four mistakes; their windows may overlap. */
export function planMistakes(
  dice: Dice,
  series: Series,
  company: readonly Series[],
  period: Period,
): Mistake[] {
  const possible = KINDS.filter((kind) => kind.isPossible(series, company, period));
  const mistakes: Mistake[] = [];
  const count = dice.happens(0.8) ? dice.count(1, 4) : 0;
  while (mistakes.length < count) {
    const left = possible.filter(({ cause }) => mistakes.every(({ kind }) => kind.cause !== cause));
    const kind = dice.weighted(left);
    if (!kind) break;
    mistakes.push(planMistake(dice, kind, series, company, period, mistakes.length + 1));
  }
  return mistakes.sort((a, b) => a.kind.order - b.kind.order);
}

function planMistake(
  dice: Dice,
  kind: Kind,
  series: Series,
  company: readonly Series[],
  period: Period,
  number: number,
): Mistake {
  const { from, to } = windowOf(dice, kind, series, period);
  const keys = [...new Set(series.services.map(({ keyId }) => keyId))];
  const hasPlaces = series.services.some(({ elsewhereShare }) => elsewhereShare > 0);
  const draw = dice.share();
  // Costs and usage of Azure name no key.
  const isOneKey =
    draw < 0.3 && keys.length > 1 && !kind.intruders && series.account.provider !== 'azure_openai';
  const isOnePlace = !isOneKey && draw < 0.45 && hasPlaces && kind.cause !== 'region_uplift_misapplied';
  return {
    id: `${series.id}!${number}`,
    kind,
    series,
    from,
    to,
    keyId: isOneKey ? dice.oneOf(keys) : undefined,
    isElsewhere: isOnePlace ? dice.happens(0.5) : undefined,
    drawn: dice.count(0, 999),
    partner: kind.cause === 'model_misattribution' ? dearerThan(series, company) : undefined,
  };
}

/** A third lasts about a day, a sixth three weeks. It never fills the period, and begins and ends at any minute. */
function windowOf(dice: Dice, kind: Kind, series: Series, period: Period): { from: number; to: number } {
  const draw = dice.share();
  const drawn =
    draw < 0.32
      ? dice.within(0.7, 1.4)
      : draw < 0.65
        ? dice.within(2, 6)
        : draw < 0.84
          ? dice.within(7, 14)
          : dice.within(18, 22);
  const days = Math.min(drawn, kind.longest ?? drawn);
  const step = series.tariff.steps.at(-1)?.from ?? '';
  // An old price is kept from the day on which the new one should have begun.
  if (kind.form === 'old_price_kept') {
    const from = numberOfDay(step) * DAY;
    return { from, to: Math.floor(from + Math.max(days, 1.5) * DAY) };
  }
  const earliest = (period.first + 2) * DAY;
  const latest = (period.last - 1) * DAY - days * DAY;
  const from = Math.floor(dice.within(earliest, latest));
  return { from, to: Math.floor(from + days * DAY) };
}

/** Whether a mistake concerns a call. */
export function concerns({ from, to, keyId, isElsewhere }: Mistake, { at, service, use }: Call): boolean {
  if (at < from || at >= to) return false;
  if (keyId !== undefined && service.keyId !== keyId) return false;
  return isElsewhere === undefined || use.isElsewhere === isElsewhere;
}
