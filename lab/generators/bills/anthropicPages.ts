/**
 * Anthropic's answers to `GET /v1/organizations/cost_report` and `…/usage_report/messages`, as in its API
 * reference.
 */
import { DAY_SECONDS, rfc3339 } from '../support/days.js';
import { centText } from '../support/money.js';
import { grouped } from './grouped.js';
import { bucketsOf, type CostRow, type ExtraLine, type UsageRow } from './ledger.js';
import { INPUT, OUTPUT, READ, WRITE_1H, WRITE_5M } from './rateBook.js';

const TYPES: Record<number, string> = {
  [INPUT]: 'uncached_input_tokens',
  [READ]: 'cache_read_input_tokens',
  [WRITE_5M]: 'cache_creation.ephemeral_5m_input_tokens',
  [WRITE_1H]: 'cache_creation.ephemeral_1h_input_tokens',
  [OUTPUT]: 'output_tokens',
};

const WORDS: Record<number, string> = {
  [INPUT]: 'Input Tokens',
  [READ]: 'Input Tokens, Cache Read',
  [WRITE_5M]: 'Input Tokens, Cache Write (5m)',
  [WRITE_1H]: 'Input Tokens, Cache Write (1h)',
  [OUTPUT]: 'Output Tokens',
};

const window = (isLong: boolean): string => (isLong ? '200k-1M' : '0-200k');

const title = (model: string): string =>
  model
    .replace(/-\d{8}$/, '')
    .split('-')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ');

/** All pages of the cost report, grouped by workspace and description, as one JSON list. Amounts are texts in cents. */
export function anthropicCosts(
  rows: readonly CostRow[],
  extras: readonly ExtraLine[],
  options: { firstDay: number; lastDay: number },
): string {
  const byDay = grouped(rows, (row) => row.day);
  const extrasByDay = grouped(extras, (line) => line.day);
  const buckets: string[] = [];
  for (let day = options.firstDay; day <= options.lastDay; day += 1) {
    const results = [
      ...(byDay.get(day) ?? []).map(costResult),
      ...(extrasByDay.get(day) ?? []).map(extraResult),
    ];
    buckets.push(bucket(day * DAY_SECONDS, DAY_SECONDS, results));
  }
  return pages(buckets, 31);
}

const CENT_DIGITS = 5;

function costResult(row: CostRow): string {
  const notes = [
    ...(row.isBatch ? ['Batch'] : []),
    ...(row.isLong ? ['Long Context'] : []),
    ...(row.geo === 'us' ? ['US'] : []),
  ];
  return JSON.stringify({
    amount: centText(row.pico, CENT_DIGITS),
    currency: 'USD',
    cost_type: 'tokens',
    description: `${title(row.model)} Usage - ${WORDS[row.tokenClass]}${notes.length ? ` (${notes.join(', ')})` : ''}`,
    model: row.model,
    token_type: TYPES[row.tokenClass],
    service_tier: row.isBatch ? 'batch' : 'standard',
    context_window: window(row.isLong),
    inference_geo: row.geo,
    workspace_id: row.project,
  });
}

function extraResult(line: ExtraLine): string {
  return JSON.stringify({
    amount: centText(line.pico, CENT_DIGITS),
    currency: 'USD',
    cost_type: line.kind === 'fee' ? 'web_search' : line.kind,
    description: line.label,
    model: null,
    token_type: null,
    service_tier: null,
    context_window: null,
    inference_geo: null,
    workspace_id: line.project,
  });
}

interface UsageOptions {
  /** The first day with hourly buckets; earlier days have daily ones. */
  hoursFromDay: number;
  /** Grouped by key, workspace, context window and geography too, not only by model and service tier. */
  isFull: boolean;
}

/** All pages of the usage report as one JSON list. */
export function anthropicUsage(rows: readonly UsageRow[], options: UsageOptions): string {
  const buckets = bucketsOf(rows, options.hoursFromDay).map(({ start, width, inside }) => {
    const groups = grouped(inside, (row) =>
      [row.model, tierOf(row), ...(options.isFull ? [row.keyId, row.project, row.isLong, row.geo] : [])].join(
        '|',
      ),
    );
    const results = [...groups.values()].map((group) => usageResult(group, options.isFull));
    return bucket(start, width, results);
  });
  return pages(buckets, 168);
}

/** The usage report has no tier for fast mode: it is another dimension that requires a beta header. */
const tierOf = (row: UsageRow): string =>
  row.isBatch ? 'batch' : row.tier === 'priority' ? 'priority' : 'standard';

function usageResult(group: readonly UsageRow[], isFull: boolean): string {
  const [row] = group as [UsageRow];
  const count = (tokenClass: number) =>
    group.reduce((sum, one) => sum + (one.tokens[tokenClass] as number), 0);
  return JSON.stringify({
    uncached_input_tokens: count(INPUT),
    cache_creation: {
      ephemeral_1h_input_tokens: count(WRITE_1H),
      ephemeral_5m_input_tokens: count(WRITE_5M),
    },
    cache_read_input_tokens: count(READ),
    output_tokens: count(OUTPUT),
    server_tool_use: { web_search_requests: 0 },
    api_key_id: isFull ? row.keyId : null,
    model: row.model,
    service_tier: tierOf(row),
    context_window: isFull ? window(row.isLong) : null,
    inference_geo: isFull ? row.geo : null,
    workspace_id: isFull ? row.project : null,
  });
}

const bucket = (start: number, width: number, results: readonly string[]): string =>
  `{"starting_at":"${rfc3339(start)}","ending_at":"${rfc3339(start + width)}","results":[${results.join(',')}]}`;

function pages(buckets: readonly string[], size: number): string {
  const list: string[] = [];
  for (let start = 0; start < Math.max(1, buckets.length); start += size) {
    const hasMore = start + size < buckets.length;
    list.push(
      `{"data":[${buckets.slice(start, start + size).join(',')}],"has_more":${hasMore},"next_page":${hasMore ? `"page_${start + size}"` : 'null'}}`,
    );
  }
  return `[${list.join(',\n')}]`;
}
