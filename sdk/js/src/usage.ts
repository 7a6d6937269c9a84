import type { Tokens } from './money.js';

/** Reads a provider's usage object, for session budgets. The service gets the object itself. */

type Numbers = Record<string, unknown>;

function count(usage: Numbers, ...names: string[]): number | undefined {
  for (const name of names) {
    const value = usage[name];
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  }
  return undefined;
}

function inner(usage: Numbers, ...names: string[]): Numbers {
  for (const name of names) {
    const value = usage[name];
    if (typeof value === 'object' && value !== null) return value as Numbers;
  }
  return {};
}

/** Undefined: no count is known. */
export function tokensOf(usage: unknown): Tokens | undefined {
  if (typeof usage !== 'object' || usage === null) return undefined;
  const given = usage as Numbers;
  return googleTokens(given) ?? cohereTokens(given) ?? commonTokens(given);
}

/** Thoughts and tool prompts are counted beside candidates and prompt; cached content is part of the prompt. */
function googleTokens(usage: Numbers): Tokens | undefined {
  const prompt = count(usage, 'promptTokenCount', 'prompt_token_count');
  const candidates = count(usage, 'candidatesTokenCount', 'candidates_token_count');
  if (prompt === undefined && candidates === undefined) return undefined;
  const cacheRead = count(usage, 'cachedContentTokenCount', 'cached_content_token_count') ?? 0;
  const whole = (prompt ?? 0) + (count(usage, 'toolUsePromptTokenCount', 'tool_use_prompt_token_count') ?? 0);
  const thoughts = count(usage, 'thoughtsTokenCount', 'thoughts_token_count') ?? 0;
  return disjoint(whole, cacheRead, 0, (candidates ?? 0) + thoughts, true);
}

function cohereTokens(usage: Numbers): Tokens | undefined {
  for (const units of [inner(usage, 'billedUnits', 'billed_units'), inner(usage, 'tokens')]) {
    const input = count(units, 'inputTokens', 'input_tokens');
    const output = count(units, 'outputTokens', 'output_tokens');
    if (input !== undefined || output !== undefined) return disjoint(input ?? 0, 0, 0, output ?? 0, true);
  }
  return undefined;
}

/** OpenAI and its kin include cached tokens in the input; Anthropic and Bedrock's Converse report them beside it. */
function commonTokens(usage: Numbers): Tokens | undefined {
  const details = inner(
    usage,
    'prompt_tokens_details',
    'promptTokensDetails',
    'input_tokens_details',
    'input_token_details',
  );
  const input = count(usage, 'prompt_tokens', 'promptTokens', 'input_tokens', 'inputTokens');
  const output = count(usage, 'completion_tokens', 'completionTokens', 'output_tokens', 'outputTokens') ?? 0;
  if (input === undefined) return undefined;
  const besideRead = count(
    usage,
    'cache_read_input_tokens',
    'cacheReadInputTokens',
    'cacheReadInputTokenCount',
  );
  const besideWrite = count(
    usage,
    'cache_creation_input_tokens',
    'cacheWriteInputTokens',
    'cacheWriteInputTokenCount',
  );
  if (besideRead !== undefined || besideWrite !== undefined)
    return disjoint(input, besideRead ?? 0, besideWrite ?? 0, output, false);
  const read =
    count(details, 'cached_tokens', 'cachedTokens') ?? count(usage, 'prompt_cache_hit_tokens') ?? 0;
  const write = count(details, 'cache_write_tokens', 'cache_creation_tokens') ?? 0;
  return disjoint(input, read, write, output, true);
}

function disjoint(
  input: number,
  cacheRead: number,
  cacheWrite: number,
  output: number,
  isWhole: boolean,
): Tokens {
  const cached = cacheRead + cacheWrite;
  // An input that is smaller than its cached part cannot contain it.
  const isInclusive = isWhole && input >= cached;
  return { input: isInclusive ? input - cached : input, cacheRead, cacheWrite, output };
}
