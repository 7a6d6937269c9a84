/** Single results of the providers' reports in their own JSON, shared by the demo and the tests. */
import type { NumberText } from './exactJson.js';

/** Token classes that both providers count separately. */
export const TOKEN_CLASSES = ['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'output'] as const;
export type TokenClass = (typeof TOKEN_CLASSES)[number];

/** Tokens of several calls by class; classes do not overlap. */
export type TokenCounts = Record<TokenClass, number>;

const OPENAI_WORDS: Partial<Record<TokenClass, string>> = {
  input: 'input',
  cache_read: 'cached input',
  cache_write_5m: 'cache writes',
  output: 'output',
};

/** Classes with a separate line in OpenAI's costs. */
export const OPENAI_CLASSES = Object.keys(OPENAI_WORDS) as TokenClass[];

export const ANTHROPIC_TYPES: Record<TokenClass, string> = {
  input: 'uncached_input_tokens',
  cache_read: 'cache_read_input_tokens',
  cache_write_5m: 'cache_creation.ephemeral_5m_input_tokens',
  cache_write_1h: 'cache_creation.ephemeral_1h_input_tokens',
  output: 'output_tokens',
};

/** Pico-dollars as a decimal text of dollars, without trailing zeros. */
export const usdText = (pico: bigint): string => decimalText(pico, 12);

/** Pico-dollars as a decimal text of cents, without trailing zeros. */
export const centsText = (pico: bigint): string => decimalText(pico, 10);

function decimalText(scaled: bigint, digits: number): string {
  const text = (scaled < 0n ? -scaled : scaled).toString().padStart(digits + 1, '0');
  const fraction = text.slice(-digits).replace(/0+$/, '');
  return `${scaled < 0n ? '-' : ''}${text.slice(0, -digits)}${fraction === '' ? '' : `.${fraction}`}`;
}

/** OpenAI's line item of tokens: `gpt-6-sol, cached input, long context`. */
export function openaiLineItem(
  model: string,
  tokenClass: TokenClass,
  { isLong, isPriority = false }: { isLong: boolean; isPriority?: boolean },
): string {
  return `${isPriority ? 'priority | ' : ''}${model}, ${OPENAI_WORDS[tokenClass]}${isLong ? ', long context' : ''}`;
}

/** A result of GET /v1/organization/costs; undefined fields are left out. */
export function openaiCost(of: {
  /** Dollars: a number's digits, or a text if the organization gets texts. */
  amount: NumberText | string;
  lineItem: string;
  project: string | null;
  account: string | null;
  key?: string | null;
  tokens?: number;
}): object {
  return {
    object: 'organization.costs.result',
    amount: { value: of.amount, currency: 'usd' },
    line_item: of.lineItem,
    project_id: of.project,
    organization_id: of.account,
    api_key_id: of.key,
    ...(of.tokens === undefined ? {} : { quantity: of.tokens, quantity_unit: 'tokens' }),
  };
}

/** A result of GET /v1/organization/usage/completions, grouped by everything. */
export function openaiUsage(of: {
  tokens: TokenCounts;
  requests: number;
  project: string | null;
  key: string | null;
  model: string;
  isBatch: boolean;
  isPriority?: boolean;
}): object {
  const { input, cache_read, cache_write_5m, output } = of.tokens;
  return {
    object: 'organization.usage.completions.result',
    input_tokens: input + cache_read + cache_write_5m,
    input_cached_tokens: cache_read,
    input_cache_write_tokens: cache_write_5m,
    input_uncached_tokens: input,
    output_tokens: output,
    input_audio_tokens: 0,
    output_audio_tokens: 0,
    num_model_requests: of.requests,
    project_id: of.project,
    user_id: null,
    api_key_id: of.key,
    model: of.model,
    batch: of.isBatch,
    service_tier: of.isPriority ? 'priority' : 'default',
  };
}

const ANTHROPIC_PLACE = { context_window: '0-200k', inference_geo: 'global' } as const;

/** A result of GET /v1/organizations/cost_report for tokens. */
export function anthropicCost(of: {
  pico: bigint;
  description: string;
  model: string;
  tokenClass: TokenClass;
  isBatch: boolean;
  workspace: string | null;
}): object {
  return {
    amount: centsText(of.pico),
    currency: 'USD',
    cost_type: 'tokens',
    description: of.description,
    model: of.model,
    token_type: ANTHROPIC_TYPES[of.tokenClass],
    service_tier: of.isBatch ? 'batch' : 'standard',
    ...ANTHROPIC_PLACE,
    workspace_id: of.workspace,
  };
}

/** A result of GET /v1/organizations/cost_report for web searches; `cents` is a decimal text. */
export function anthropicSearchFee(cents: string): object {
  return {
    amount: cents,
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

/** A result of GET /v1/organizations/usage_report/messages, grouped by everything. */
export function anthropicUsage(of: {
  tokens: TokenCounts;
  key: string | null;
  model: string;
  isBatch: boolean;
  workspace: string | null;
}): object {
  const { input, cache_read, cache_write_5m, cache_write_1h, output } = of.tokens;
  return {
    uncached_input_tokens: input,
    cache_creation: {
      ephemeral_1h_input_tokens: cache_write_1h,
      ephemeral_5m_input_tokens: cache_write_5m,
    },
    cache_read_input_tokens: cache_read,
    output_tokens: output,
    server_tool_use: { web_search_requests: 0 },
    api_key_id: of.key,
    model: of.model,
    service_tier: of.isBatch ? 'batch' : 'standard',
    ...ANTHROPIC_PLACE,
    workspace_id: of.workspace,
  };
}

/** The tokens of some calls, class by class. */
export function countTokens(calls: readonly { tokens: TokenCounts }[]): TokenCounts {
  const sum = { input: 0, cache_read: 0, cache_write_5m: 0, cache_write_1h: 0, output: 0 };
  for (const { tokens } of calls)
    for (const name of Object.keys(sum) as TokenClass[]) sum[name] += tokens[name];
  return sum;
}

/** Items by a key, in the order of each key's first item. */
export function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
