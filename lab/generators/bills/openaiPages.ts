/** OpenAI's answers to `GET /v1/organization/costs` and `…/usage/completions`, as in its API reference. */
import { DAY_SECONDS } from '../support/days.js';
import { dollarText } from '../support/money.js';
import { grouped } from './grouped.js';
import { bucketsOf, type CostRow, type ExtraLine, type UsageRow } from './ledger.js';
import { INPUT, OUTPUT, READ, WRITE_1H, WRITE_5M } from './rateBook.js';

const WORDS: Record<number, string> = {
  [INPUT]: 'input',
  [READ]: 'cached input',
  [WRITE_5M]: 'cache writes',
  [WRITE_1H]: 'cache writes',
  [OUTPUT]: 'output',
};

const lineItem = (row: CostRow): string =>
  `${row.tier === 'standard' ? '' : `${row.tier} | `}${row.model}, ${WORDS[row.tokenClass]}${row.isLong ? ', long context' : ''}`;

interface CostOptions {
  /** Also grouped by key, and with `quantity`. */
  isFull: boolean;
  firstDay: number;
  lastDay: number;
}

/** All pages of costs as one JSON list; at most 180 buckets a page. */
export function openaiCosts(
  accountId: string,
  rows: readonly CostRow[],
  extras: readonly ExtraLine[],
  options: CostOptions,
): string {
  const byDay = grouped(rows, (row) => row.day);
  const extrasByDay = grouped(extras, (line) => line.day);
  const buckets: string[] = [];
  for (let day = options.firstDay; day <= options.lastDay; day += 1) {
    const lines = grouped(byDay.get(day) ?? [], (row) =>
      [lineItem(row), row.project, options.isFull ? row.keyId : ''].join('|'),
    );
    const results = [...lines.values()].map((group) => {
      const [row] = group as [CostRow];
      const pico = group.reduce((sum, one) => sum + one.pico, 0n);
      const quantity = group.reduce((sum, one) => sum + one.quantity, 0);
      return costResult(
        accountId,
        pico,
        lineItem(row),
        row.project,
        options.isFull ? row.keyId : null,
        options.isFull ? quantity : null,
      );
    });
    for (const line of extrasByDay.get(day) ?? [])
      results.push(costResult(accountId, line.pico, line.label, line.project, null, null));
    buckets.push(bucket(day * DAY_SECONDS, DAY_SECONDS, results));
  }
  return pages(buckets, 180);
}

function costResult(
  accountId: string,
  pico: bigint,
  label: string,
  project: string | null,
  keyId: string | null,
  quantity: number | null,
): string {
  const counted = quantity === null ? '' : `,"quantity":${quantity},"quantity_unit":"tokens"`;
  // A JSON number in dollars: the shortest text that names the double, as the API prints it.
  return `{"object":"organization.costs.result","amount":{"value":${Number(dollarText(pico))},"currency":"usd"},"line_item":${JSON.stringify(label)},"project_id":${JSON.stringify(project)},"organization_id":${JSON.stringify(accountId)},"api_key_id":${JSON.stringify(keyId)}${counted}}`;
}

interface UsageOptions {
  /** The first day with hourly buckets; earlier days have daily ones. */
  hoursFromDay: number;
  /** Grouped by project and key too, not only by model, batch and service tier. */
  isFull: boolean;
}

/** All pages of usage as one JSON list. `input_tokens` includes cached and written tokens. */
export function openaiUsage(rows: readonly UsageRow[], options: UsageOptions): string {
  const buckets = bucketsOf(rows, options.hoursFromDay).map(({ start, width, inside }) => {
    const groups = grouped(inside, (row) =>
      [row.model, row.isBatch, row.tier, ...(options.isFull ? [row.project, row.keyId] : [])].join('|'),
    );
    const results = [...groups.values()].map((group) => usageResult(group, options.isFull));
    return bucket(start, width, results);
  });
  return pages(buckets, 168);
}

function usageResult(group: readonly UsageRow[], isFull: boolean): string {
  const [row] = group as [UsageRow];
  const count = (tokenClass: number) =>
    group.reduce((sum, one) => sum + (one.tokens[tokenClass] as number), 0);
  const [input, read, output] = [count(INPUT), count(READ), count(OUTPUT)];
  const write = count(WRITE_5M) + count(WRITE_1H);
  return JSON.stringify({
    object: 'organization.usage.completions.result',
    input_tokens: input + read + write,
    input_cached_tokens: read,
    input_cache_write_tokens: write,
    input_uncached_tokens: input,
    output_tokens: output,
    input_audio_tokens: 0,
    output_audio_tokens: 0,
    num_model_requests: group.reduce((sum, one) => sum + one.requests, 0),
    project_id: isFull ? row.project : null,
    user_id: null,
    api_key_id: isFull ? row.keyId : null,
    model: row.model,
    batch: row.isBatch,
    service_tier: row.tier === 'standard' ? 'default' : row.tier,
  });
}

const bucket = (start: number, width: number, results: readonly string[]): string =>
  `{"object":"bucket","start_time":${start},"end_time":${start + width},"results":[${results.join(',')}]}`;

function pages(buckets: readonly string[], size: number): string {
  const list: string[] = [];
  for (let start = 0; start < Math.max(1, buckets.length); start += size) {
    const hasMore = start + size < buckets.length;
    list.push(
      `{"object":"page","data":[${buckets.slice(start, start + size).join(',')}],"has_more":${hasMore},"next_page":${hasMore ? `"page_${start + size}"` : 'null'}}`,
    );
  }
  return `[${list.join(',\n')}]`;
}
