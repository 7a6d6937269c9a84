/** The bills as the providers tell them: results of each report by bucket, in the providers' own JSON. */
import { type BilledLine, billedLines, CREDIT, isDoubled, webSearchPico } from './billed.js';
import { type Calendar, DAY_SECONDS } from './calendar.js';
import type { DemoCall } from './calls.js';
import { ACCOUNTS } from './company.js';
import type { TokenClass } from './prices.js';

export interface BucketResults {
  startSeconds: number;
  endSeconds: number;
  /** Each exactly the provider's JSON. */
  results: object[];
}

/** Everything that a provider would answer: costs by UTC day, usage by hour. */
export interface ProviderTruth {
  accountId: string;
  reports: Record<string, BucketResults[]>;
}

const PICO_DIGITS = 12;
const CENT_DIGITS = 10;

/** An integer scaled by 10^digits as its decimal text, without trailing zeros. */
function decimal(scaled: bigint, digits: number): string {
  const text = (scaled < 0n ? -scaled : scaled).toString().padStart(digits + 1, '0');
  const fraction = text.slice(-digits).replace(/0+$/, '');
  return `${scaled < 0n ? '-' : ''}${text.slice(0, -digits)}${fraction === '' ? '' : `.${fraction}`}`;
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string | number): Map<string | number, T[]> {
  const groups = new Map<string | number, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

const total = <T>(items: readonly T[], of: (item: T) => bigint): bigint =>
  items.reduce((sum, item) => sum + of(item), 0n);

function dayBuckets(calendar: Calendar, resultsOf: (offset: number) => object[]): BucketResults[] {
  return calendar.offsets().map((offset) => ({
    startSeconds: calendar.startSeconds(offset),
    endSeconds: calendar.startSeconds(offset) + DAY_SECONDS,
    results: resultsOf(offset),
  }));
}

const OPENAI_WORDS: Partial<Record<TokenClass, string>> = {
  input: 'input',
  cache_read: 'cached input',
  cache_write_5m: 'cache writes',
  output: 'output',
};

/** GET /v1/organization/costs, grouped by project, line item and key. */
export function openaiCosts(calls: readonly DemoCall[], calendar: Calendar): BucketResults[] {
  const byDay = groupBy(billedLines(calls), (line) => line.offset);
  return dayBuckets(calendar, (offset) => {
    const lines = groupBy(byDay.get(offset) ?? [], (line) =>
      [line.model, line.isLong, line.key.id, line.tokenClass].join('|'),
    );
    const results = [...lines.values()].map(openaiCostLine);
    if (isDoubled('openai', offset)) results.push(...results);
    results.push(openaiCost('web search tool calls', webSearchPico(offset), 'proj_DemoSearch', null));
    if (offset === CREDIT.offset) results.push(openaiCost(CREDIT.label, CREDIT.pico, null, null));
    return results;
  });
}

function openaiCostLine(group: readonly BilledLine[]): object {
  const { model, isLong, tokenClass, key } = group[0] as BilledLine;
  const label = `${model}, ${OPENAI_WORDS[tokenClass]}${isLong ? ', long context' : ''}`;
  const quantity = group.reduce((sum, line) => sum + line.quantity, 0);
  const cost = openaiCost(
    label,
    total(group, (line) => line.billedPico),
    key.project,
    key.id,
  );
  return { ...cost, quantity, quantity_unit: 'tokens' };
}

/** Amounts are JSON numbers in dollars: all of these have few enough digits for a double to name them exactly. */
function openaiCost(lineItem: string, pico: bigint, project: string | null, key: string | null): object {
  return {
    object: 'organization.costs.result',
    amount: { value: Number(decimal(pico, PICO_DIGITS)), currency: 'usd' },
    line_item: lineItem,
    project_id: project,
    organization_id: ACCOUNTS.openai,
    api_key_id: key,
  };
}

/** GET /v1/organization/usage/completions, grouped by everything. */
export function openaiUsage(calls: readonly DemoCall[], widthSeconds: number): BucketResults[] {
  return usageBuckets(calls, widthSeconds, (group) => {
    const [call] = group as [DemoCall];
    const [input, read, write] = [
      countOf(group, 'input'),
      countOf(group, 'cache_read'),
      countOf(group, 'cache_write_5m'),
    ];
    return {
      object: 'organization.usage.completions.result',
      input_tokens: input + read + write,
      input_cached_tokens: read,
      input_cache_write_tokens: write,
      input_uncached_tokens: input,
      output_tokens: countOf(group, 'output'),
      input_audio_tokens: 0,
      output_audio_tokens: 0,
      num_model_requests: group.length,
      project_id: call.key.project,
      user_id: null,
      api_key_id: call.key.id,
      model: call.model,
      batch: call.batchId !== null,
      service_tier: 'default',
    };
  });
}

const countOf = (calls: readonly DemoCall[], name: TokenClass): number =>
  calls.reduce((sum, call) => sum + call.tokens[name], 0);

function usageBuckets(
  calls: readonly DemoCall[],
  widthSeconds: number,
  resultOf: (group: readonly DemoCall[]) => object,
): BucketResults[] {
  const byBucket = groupBy(calls, (call) => Math.floor(call.endSeconds / widthSeconds));
  const buckets = [...byBucket].sort(([a], [b]) => Number(a) - Number(b));
  return buckets.map(([number, inside]) => ({
    startSeconds: Number(number) * widthSeconds,
    endSeconds: (Number(number) + 1) * widthSeconds,
    results: [
      ...groupBy(inside, (call) => [call.model, call.key.id, call.batchId !== null].join('|')).values(),
    ].map(resultOf),
  }));
}

const ANTHROPIC_TYPES: Record<TokenClass, string> = {
  input: 'uncached_input_tokens',
  cache_read: 'cache_read_input_tokens',
  cache_write_5m: 'cache_creation.ephemeral_5m_input_tokens',
  cache_write_1h: 'cache_creation.ephemeral_1h_input_tokens',
  output: 'output_tokens',
};

const ANTHROPIC_WORDS: Record<TokenClass, string> = {
  input: 'Input Tokens',
  cache_read: 'Input Tokens, Cache Read',
  cache_write_5m: 'Input Tokens, Cache Write 5m',
  cache_write_1h: 'Input Tokens, Cache Write 1h',
  output: 'Output Tokens',
};

/** GET /v1/organizations/cost_report, grouped by workspace and description. Amounts are texts in cents. */
export function anthropicCosts(calls: readonly DemoCall[], calendar: Calendar): BucketResults[] {
  const byDay = groupBy(billedLines(calls), (line) => line.offset);
  return dayBuckets(calendar, (offset) => {
    const lines = groupBy(byDay.get(offset) ?? [], (line) =>
      [line.model, line.isBatch, line.key.project, line.tokenClass].join('|'),
    );
    return [...[...lines.values()].map(anthropicCostLine), anthropicFee(webSearchPico(offset - 7))];
  });
}

function anthropicCostLine(group: readonly BilledLine[]): object {
  const { model, isBatch, tokenClass, key } = group[0] as BilledLine;
  return {
    amount: decimal(
      total(group, (line) => line.billedPico),
      CENT_DIGITS,
    ),
    currency: 'USD',
    cost_type: 'tokens',
    description: `${model} Usage - ${ANTHROPIC_WORDS[tokenClass]}${isBatch ? ' (Batch)' : ''}`,
    model,
    token_type: ANTHROPIC_TYPES[tokenClass],
    service_tier: isBatch ? 'batch' : 'standard',
    context_window: '0-200k',
    inference_geo: 'global',
    workspace_id: key.project,
  };
}

function anthropicFee(pico: bigint): object {
  return {
    amount: decimal(pico, CENT_DIGITS),
    currency: 'USD',
    cost_type: 'web_search',
    description: 'Web Search Usage',
    model: null,
    token_type: null,
    service_tier: null,
    context_window: null,
    inference_geo: null,
    workspace_id: null,
  };
}

/** GET /v1/organizations/usage_report/messages, grouped by everything. */
export function anthropicUsage(calls: readonly DemoCall[], widthSeconds: number): BucketResults[] {
  return usageBuckets(calls, widthSeconds, (group) => {
    const [call] = group as [DemoCall];
    return {
      uncached_input_tokens: countOf(group, 'input'),
      cache_creation: {
        ephemeral_1h_input_tokens: countOf(group, 'cache_write_1h'),
        ephemeral_5m_input_tokens: countOf(group, 'cache_write_5m'),
      },
      cache_read_input_tokens: countOf(group, 'cache_read'),
      output_tokens: countOf(group, 'output'),
      server_tool_use: { web_search_requests: 0 },
      api_key_id: call.key.id,
      model: call.model,
      service_tier: call.batchId === null ? 'standard' : 'batch',
      context_window: '0-200k',
      inference_geo: 'global',
      workspace_id: call.key.project,
    };
  });
}
