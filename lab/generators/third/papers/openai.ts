/** OpenAI's organization costs and its usage of completions (API reference, "Usage" and "Costs"). */
import { type Charge, type Counted, dollars, groupBy } from '../books.js';
import { DAY } from '../calendar.js';
import { FRESH, KEEP_LONG, KEEP_SHORT, OUT, READ } from '../tariffs.js';

const WORDS = ['input', 'cached input', 'cache writes', 'cache writes', 'output'] as const;

function label({ tier, model, meter, isLong }: Charge): string {
  const surface = tier === 'standard' ? '' : `${tier} | `;
  return `${surface}${model}, ${WORDS[meter]}${isLong ? ', long context' : ''}`;
}

/** With keys and quantities (`isFull`), or by project and line alone. */
export function openaiCostPages(charges: readonly Charge[], isFull: boolean): string {
  const buckets = groupBy(charges, ({ day }) => String(day)).map((ofDay) => {
    const start = (ofDay[0] as Charge).day * DAY;
    const lines = groupBy(ofDay, (one) => [label(one), one.project, isFull ? one.keyId : ''].join(' '));
    const results = lines.map((line) => {
      const [first] = line as [Charge, ...Charge[]];
      const pico = line.reduce((sum, one) => sum + one.pico, 0n);
      return {
        object: 'organization.costs.result',
        amount: { value: Number(dollars(pico, 12)), currency: 'usd' },
        line_item: label(first),
        project_id: first.project,
        organization_id: first.accountId,
        api_key_id: isFull ? first.keyId : null,
        ...(isFull
          ? { quantity: line.reduce((sum, one) => sum + one.count, 0), quantity_unit: 'tokens' }
          : {}),
      };
    });
    return { object: 'bucket', start_time: start, end_time: start + DAY, results };
  });
  return JSON.stringify([{ object: 'page', data: buckets, has_more: false, next_page: null }]);
}

/** By the hour and key (`isFull`), or by the day, model, batch and tier alone. */
export function openaiUsagePages(counted: readonly Counted[], isFull: boolean): string {
  const width = isFull ? 3_600 : DAY;
  const startOf = ({ hour }: Counted) => Math.floor(hour / width) * width;
  const buckets = groupBy(counted, (one) => String(startOf(one))).map((inside) => {
    const start = startOf(inside[0] as Counted);
    const groups = groupBy(inside, (one) =>
      [one.model, one.isBatch, one.tier, ...(isFull ? [one.project, one.keyId] : [])].join(' '),
    );
    const results = groups.map((group) => {
      const [first] = group as [Counted, ...Counted[]];
      const sum = (...meters: number[]) =>
        group.reduce((all, { counts }) => all + meters.reduce((part, at) => part + (counts[at] ?? 0), 0), 0);
      return {
        object: 'organization.usage.completions.result',
        input_tokens: sum(FRESH, READ, KEEP_SHORT, KEEP_LONG),
        input_cached_tokens: sum(READ),
        input_cache_write_tokens: sum(KEEP_SHORT, KEEP_LONG),
        input_uncached_tokens: sum(FRESH),
        output_tokens: sum(OUT),
        num_model_requests: group.reduce((all, { requests }) => all + requests, 0),
        project_id: isFull ? first.project : null,
        api_key_id: isFull ? first.keyId : null,
        model: first.model,
        batch: first.isBatch,
        service_tier: first.tier === 'standard' ? 'default' : first.tier,
      };
    });
    return { object: 'bucket', start_time: start, end_time: start + width, results };
  });
  return JSON.stringify([{ object: 'page', data: buckets, has_more: false, next_page: null }]);
}
