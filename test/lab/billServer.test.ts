import { describe, expect, it } from 'vitest';
import type { UsageCell } from '../../domain/reconciliation/matching/cells.js';
import { readBucketTexts } from '../../lab/bench/reconciliation/bucketTexts.js';
import { billedCellsOf, usageCellsOf } from '../../lab/bench/reconciliation/cells.js';
import { fetchBills } from '../../lab/bench/reconciliation/fetchRows.js';
import type { BillDocument, GeneratedWorld } from '../../lab/generators/world.js';

const DAY_SECONDS = 86_400;
const FIRST = Date.parse('2026-06-01T00:00:00Z') / 1_000;
const DAYS = 75;
const dayAt = (n: number) => new Date((FIRST + n * DAY_SECONDS) * 1_000).toISOString().slice(0, 10);

const world = {
  firstDay: dayAt(0),
  lastDay: dayAt(DAYS - 1),
  readAtSeconds: FIRST + DAYS * DAY_SECONDS + 3_600,
} as GeneratedWorld;

const openaiBucket = (start: number, width: number, result: string) =>
  `{"object":"bucket","start_time":${start},"end_time":${start + width},"results":[${result}]}`;
const page = (buckets: string[]) =>
  `{"object":"page","data":[${buckets.join(',')}],"has_more":false,"next_page":null}`;

function document(feed: BillDocument['feed'], buckets: string[]): BillDocument {
  return { provider: 'openai', accountId: 'org-acme', feed, text: `[${page(buckets)}]` };
}

const cost = (value: string) =>
  `{"object":"organization.costs.result","amount":{"value":${value},"currency":"usd"},"line_item":"gpt-5.4-2026-03-05, input","project_id":"proj_a","organization_id":"org-acme","api_key_id":"key_1","quantity":1000,"quantity_unit":"tokens"}`;
const usage = (tokens: number) =>
  `{"object":"organization.usage.completions.result","input_tokens":${tokens},"input_cached_tokens":0,"output_tokens":0,"num_model_requests":1,"project_id":null,"api_key_id":null,"model":"gpt-5.4-2026-03-05","batch":false,"service_tier":"default"}`;

const inputOf = (cells: readonly UsageCell[] = []) =>
  cells.filter(({ tokenClass }) => tokenClass === 'input').reduce((sum, { quantity }) => sum + quantity, 0n) /
  1_000_000_000_000n;

describe('documents that are served again', () => {
  it('keep the digits that were written', () => {
    const text = page([openaiBucket(FIRST, DAY_SECONDS, cost('0.060000000000000001'))]);
    expect(readBucketTexts(text)).toEqual([
      { startSeconds: FIRST, endSeconds: FIRST + DAY_SECONDS, results: [cost('0.060000000000000001')] },
    ]);
  });

  it('may be one page, several in a list, or several in a row, with brackets inside their texts', () => {
    const one = page([openaiBucket(FIRST, DAY_SECONDS, '{"line_item":"a ] } \\" b"}')]);
    for (const text of [one, `[${one}]`]) expect(readBucketTexts(text)).toHaveLength(1);
    expect(readBucketTexts(`${one}\n${one}`)).toHaveLength(2);
    expect(readBucketTexts(one)[0]?.results).toEqual(['{"line_item":"a ] } \\" b"}']);
  });

  it('come back whole through the connector, page after page', async () => {
    const days = Array.from({ length: DAYS }, (_, n) => n);
    const costs = days.map((n) => openaiBucket(FIRST + n * DAY_SECONDS, DAY_SECONDS, cost(`0.${n + 10}`)));
    const hours = days.flatMap((n) =>
      [3, 15].map((hour) => openaiBucket(FIRST + n * DAY_SECONDS + hour * 3_600, 3_600, usage(100 + n))),
    );
    const bills = await fetchBills(world, [document('openai_costs', costs), document('openai_usage', hours)]);
    expect(bills.covered.map(({ day }) => day).sort()).toEqual(days.map(dayAt));
    const billed = billedCellsOf(bills.rows);
    const used = usageCellsOf(bills.rows);
    for (const n of days) {
      const cells = billed.get(`openai ${dayAt(n)}`) ?? [];
      expect(cells.map(({ amountPico, model }) => [amountPico, model])).toEqual([
        [BigInt(n + 10) * 10_000_000_000n, 'gpt-5.4-2026-03-05'],
      ]);
      expect(inputOf(used.get(`openai ${dayAt(n)}`)), dayAt(n)).toBe(BigInt(2 * (100 + n)));
    }
    // The connector requests recent days by hour, earlier ones by day.
    const hourly = (n: number) =>
      (used.get(`openai ${dayAt(n)}`) ?? []).map(({ hourMicros }) => hourMicros !== null);
    expect(new Set(hourly(DAYS - 1))).toEqual(new Set([true]));
    expect(new Set(hourly(0))).toEqual(new Set([false]));
  });

  it('that count by the day are never served by the hour', async () => {
    const days = Array.from({ length: DAYS }, (_, n) => n);
    const counted = days.map((n) => openaiBucket(FIRST + n * DAY_SECONDS, DAY_SECONDS, usage(70)));
    const { rows } = await fetchBills(world, [document('openai_usage', counted)]);
    const used = usageCellsOf(rows);
    for (const n of days) {
      const cells = used.get(`openai ${dayAt(n)}`) ?? [];
      expect(inputOf(cells)).toBe(70n);
      expect(cells.every(({ hourMicros }) => hourMicros === null)).toBe(true);
    }
  });
});
