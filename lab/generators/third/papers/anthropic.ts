/** Anthropic's cost report and its usage report of messages (Admin API reference, "Usage & Cost"). */
import { type Charge, type Counted, dollars, groupBy } from '../books.js';
import { DAY, instant } from '../calendar.js';
import { FRESH, KEEP_LONG, KEEP_SHORT, OUT, READ } from '../tariffs.js';

const TYPES = [
  'uncached_input_tokens',
  'cache_read_input_tokens',
  'cache_creation.ephemeral_5m_input_tokens',
  'cache_creation.ephemeral_1h_input_tokens',
  'output_tokens',
] as const;
const PHRASES = [
  'Input Tokens',
  'Input Tokens, Cache Read',
  'Input Tokens, Cache Write',
  'Input Tokens, Cache Write (1h)',
  'Output Tokens',
] as const;

/** Cents with five decimals. */
const CENTS = 100n;
const CENT_DECIMALS = 5;

const windowOf = (isLong: boolean) => (isLong ? '200k-1M' : '0-200k');
const geoOf = (isElsewhere: boolean) => (isElsewhere ? 'us' : 'global');

export function anthropicCostPages(charges: readonly Charge[]): string {
  const buckets = groupBy(charges, ({ day }) => String(day)).map((ofDay) => {
    const start = (ofDay[0] as Charge).day * DAY;
    const results = ofDay.map((one) => ({
      amount: dollars(one.pico * CENTS, CENT_DECIMALS),
      currency: 'USD',
      cost_type: 'tokens',
      description: `${one.model} Usage - ${PHRASES[one.meter]}${one.isBatch ? ' (Batch)' : ''}`,
      model: one.model,
      token_type: TYPES[one.meter],
      service_tier: one.isBatch ? 'batch' : 'standard',
      context_window: windowOf(one.isLong),
      inference_geo: geoOf(one.isElsewhere),
      workspace_id: one.project,
    }));
    return { starting_at: instant(start), ending_at: instant(start + DAY), results };
  });
  return JSON.stringify([{ data: buckets, has_more: false, next_page: null }]);
}

/** By the hour in every dimension (`isFull`), or by the day, model and tier alone. */
export function anthropicUsagePages(counted: readonly Counted[], isFull: boolean): string {
  const width = isFull ? 3_600 : DAY;
  const startOf = ({ hour }: Counted) => Math.floor(hour / width) * width;
  const buckets = groupBy(counted, (one) => String(startOf(one))).map((inside) => {
    const start = startOf(inside[0] as Counted);
    const groups = groupBy(inside, (one) =>
      [one.model, one.isBatch, ...(isFull ? [one.keyId, one.project, one.isLong, one.isElsewhere] : [])].join(
        ' ',
      ),
    );
    const results = groups.map((group) => {
      const [first] = group as [Counted, ...Counted[]];
      const sum = (meter: number) => group.reduce((all, { counts }) => all + (counts[meter] ?? 0), 0);
      return {
        uncached_input_tokens: sum(FRESH),
        cache_read_input_tokens: sum(READ),
        cache_creation: {
          ephemeral_5m_input_tokens: sum(KEEP_SHORT),
          ephemeral_1h_input_tokens: sum(KEEP_LONG),
        },
        output_tokens: sum(OUT),
        server_tool_use: { web_search_requests: 0 },
        api_key_id: isFull ? first.keyId : null,
        workspace_id: isFull ? first.project : null,
        model: first.model,
        service_tier: first.isBatch ? 'batch' : 'standard',
        context_window: isFull ? windowOf(first.isLong) : null,
        inference_geo: isFull ? geoOf(first.isElsewhere) : null,
      };
    });
    return { starting_at: instant(start), ending_at: instant(start + width), results };
  });
  return JSON.stringify([{ data: buckets, has_more: false, next_page: null }]);
}
