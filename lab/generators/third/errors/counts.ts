/** Wrong counts, wrong lines, and usage that is not the company's. */
import { agreedPrices, type Booking, dearerThan, type Line, lineOf } from '../booking.js';
import { FOREIGN_ACCOUNT } from '../company.js';
import { KEEP_LONG, KEEP_SHORT, OUT, times } from '../tariffs.js';
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
  moved,
  onBill,
  reads,
  some,
  twiceMetered,
} from './kind.js';

export const COUNT_KINDS: readonly Kind[] = [
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
];

/** A stranger's call: the company's own booking has nothing of it. */
function intrusion(call: Call, keyId: string, project = call.service.project): Booking {
  const line = { ...lineOf(call, call.counts), keyId, project };
  return { cost: [line], report: [line] };
}
