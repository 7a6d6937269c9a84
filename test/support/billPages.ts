/**
 * Generated calls as the pages that their providers would answer, in the providers' own JSON.
 */
import {
  DAY_SECONDS,
  dayOfCall,
  type GeneratedCall,
  HOUR_SECONDS,
  MODELS,
  type Rates,
  type TokenClass,
} from './generatedCalls.js';

const PICO_PER_CENT = 10_000_000_000n;

const decimal = (scaled: bigint, digits: number): string => {
  const text = (scaled < 0n ? -scaled : scaled).toString().padStart(digits + 1, '0');
  const fraction = text.slice(-digits).replace(/0+$/, '');
  return `${scaled < 0n ? '-' : ''}${text.slice(0, -digits)}${fraction === '' ? '' : `.${fraction}`}`;
};
const usd = (pico: bigint) => decimal(pico, 12);
const cents = (pico: bigint) => `${pico / PICO_PER_CENT}${decimal(pico % PICO_PER_CENT, 10).slice(1)}`;

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

const ratesOf = (call: GeneratedCall): Rates => {
  const plan = MODELS.find((model) => model.billed === call.billedModel);
  return (call.isLong ? plan?.long?.rates : call.tier === 'priority' ? plan?.priority : plan?.rates) ?? {};
};

const chargeOf = (calls: readonly GeneratedCall[], name: TokenClass): bigint =>
  calls.reduce(
    (sum, call) => sum + (BigInt(call.tokens[name]) * (ratesOf(call)[name] ?? 0n)) / (call.isBatch ? 2n : 1n),
    0n,
  );

const countOf = (calls: readonly GeneratedCall[], name: TokenClass): number =>
  calls.reduce((sum, call) => sum + call.tokens[name], 0);

const OPENAI_WORDS: Partial<Record<TokenClass, string>> = {
  input: 'input',
  cache_read: 'cached input',
  cache_write_5m: 'cache writes',
  output: 'output',
};

function pagesOf(
  buckets: readonly string[],
  size: number,
  page: (data: string, next: string | null) => string,
): string {
  const pages: string[] = [];
  for (let start = 0; start < buckets.length; start += size) {
    pages.push(
      page(
        buckets.slice(start, start + size).join(','),
        start + size < buckets.length ? `page_${start + size}` : null,
      ),
    );
  }
  return pages.join('\n');
}

const openaiPage = (data: string, next: string | null) =>
  `{"object":"page","data":[${data}],"has_more":${next !== null},"next_page":${JSON.stringify(next)}}`;
const anthropicPage = (data: string, next: string | null) =>
  `{"data":[${data}],"has_more":${next !== null},"next_page":${JSON.stringify(next)}}`;

export function openaiCosts(
  calls: readonly GeneratedCall[],
  first: number,
  last: number,
  creditDay: number,
): string {
  const byDay = groupBy(calls, (call) => String(dayOfCall(call)));
  const buckets: string[] = [];
  for (let day = first; day <= last; day += 1) {
    const results: string[] = [];
    const cost = (amount: string, lineItem: string, project: string | null, quantity?: number) =>
      results.push(
        `{"object":"organization.costs.result","amount":{"value":${amount},"currency":"usd"},"line_item":${JSON.stringify(lineItem)},"project_id":${JSON.stringify(project)},"organization_id":null${quantity === undefined ? '' : `,"quantity":${quantity},"quantity_unit":"tokens"`}}`,
      );
    const lines = groupBy(byDay.get(String(day)) ?? [], (call) =>
      [call.billedModel, call.tier, call.isLong, call.project].join('|'),
    );
    for (const group of lines.values()) {
      const [sample] = group;
      if (!sample) continue;
      for (const [name, word] of Object.entries(OPENAI_WORDS)) {
        const quantity = countOf(group, name as TokenClass);
        if (quantity === 0) continue;
        const label = `${sample.tier === 'priority' ? 'priority | ' : ''}${sample.billedModel}, ${word}${sample.isLong ? ', long context' : ''}`;
        cost(usd(chargeOf(group, name as TokenClass)), label, sample.project, quantity);
      }
    }
    // A fee with more digits than a pico-dollar, written as a string as some organizations get it.
    cost(
      `"${(((day * 37) % 100) / 10 + 0.1234567890123456).toFixed(16)}"`,
      'web search tool calls',
      'proj_search',
      undefined,
    );
    if (day === creditDay) cost('-25.0', 'Promotional credit', null);
    buckets.push(
      `{"object":"bucket","start_time":${day * DAY_SECONDS},"end_time":${(day + 1) * DAY_SECONDS},"results":[${results.join(',')}]}`,
    );
  }
  return pagesOf(buckets, 30, openaiPage);
}

export function openaiUsage(calls: readonly GeneratedCall[], first: number, last: number): string {
  const byHour = groupBy(calls, (call) => String(Math.floor(call.endSeconds / HOUR_SECONDS)));
  const buckets: string[] = [];
  for (let hour = first * 24; hour < (last + 1) * 24; hour += 1) {
    const groups = groupBy(byHour.get(String(hour)) ?? [], (call) =>
      [call.billedModel, call.tier, call.isBatch, call.project].join('|'),
    );
    const results = [...groups.values()].map((group) => {
      const sample = group[0] as GeneratedCall;
      const [input, read, write] = [
        countOf(group, 'input'),
        countOf(group, 'cache_read'),
        countOf(group, 'cache_write_5m'),
      ];
      return `{"object":"organization.usage.completions.result","input_tokens":${input + read + write},"input_cached_tokens":${read},"input_cache_write_tokens":${write},"input_uncached_tokens":${input},"output_tokens":${countOf(group, 'output')},"input_audio_tokens":0,"output_audio_tokens":0,"num_model_requests":${group.length},"project_id":${JSON.stringify(sample.project)},"user_id":null,"api_key_id":null,"model":${JSON.stringify(sample.billedModel)},"batch":${sample.isBatch},"service_tier":"${sample.tier === 'priority' ? 'priority' : 'default'}"}`;
    });
    buckets.push(
      `{"object":"bucket","start_time":${hour * HOUR_SECONDS},"end_time":${(hour + 1) * HOUR_SECONDS},"results":[${results.join(',')}]}`,
    );
  }
  return `[${pagesOf(buckets, 168, openaiPage).replaceAll('\n', ',')}]`;
}

const ANTHROPIC_TYPES: Record<TokenClass, string> = {
  input: 'uncached_input_tokens',
  cache_read: 'cache_read_input_tokens',
  cache_write_5m: 'cache_creation.ephemeral_5m_input_tokens',
  cache_write_1h: 'cache_creation.ephemeral_1h_input_tokens',
  output: 'output_tokens',
};

export const rfc3339 = (seconds: number) => new Date(seconds * 1_000).toISOString().replace('.000', '');

/** What cached reads of claude-haiku-4-5 cost too much at the rate of fresh input: 1 instead of 0.1 dollars a million. */
export const wrongReadsOf = (calls: readonly GeneratedCall[]): bigint =>
  BigInt(
    countOf(
      calls.filter((call) => call.billedModel === 'claude-haiku-4-5-20251001'),
      'cache_read',
    ),
  ) * 900_000n;

export function anthropicCosts(
  calls: readonly GeneratedCall[],
  first: number,
  last: number,
  wrongDays: ReadonlySet<number>,
  wrongReadDays: ReadonlySet<number> = new Set(),
): string {
  const byDay = groupBy(calls, (call) => String(dayOfCall(call)));
  const buckets: string[] = [];
  for (let day = first; day <= last; day += 1) {
    const results: string[] = [];
    const lines = groupBy(byDay.get(String(day)) ?? [], (call) =>
      [call.billedModel, call.isBatch, call.project].join('|'),
    );
    for (const group of lines.values()) {
      const sample = group[0] as GeneratedCall;
      for (const [name, type] of Object.entries(ANTHROPIC_TYPES)) {
        if (countOf(group, name as TokenClass) === 0) continue;
        const isWrong = name === 'output' && sample.billedModel === 'claude-opus-5' && wrongDays.has(day);
        const pico =
          chargeOf(group, name as TokenClass) +
          (isWrong ? BigInt(countOf(group, 'output')) * 5_000_000n : 0n) +
          (name === 'cache_read' && wrongReadDays.has(day) ? wrongReadsOf(group) : 0n);
        results.push(
          `{"amount":"${cents(pico)}","currency":"USD","cost_type":"tokens","description":"${sample.billedModel} Usage - ${name}","model":"${sample.billedModel}","token_type":"${type}","service_tier":"${sample.isBatch ? 'batch' : 'standard'}","context_window":"0-200k","inference_geo":"global","workspace_id":${JSON.stringify(sample.project)}}`,
        );
      }
    }
    results.push(
      `{"amount":"${(day % 7) * 50}.5","currency":"USD","cost_type":"web_search","description":"Web Search Usage","model":null,"token_type":null,"service_tier":null,"context_window":null,"inference_geo":null,"workspace_id":null}`,
    );
    buckets.push(
      `{"starting_at":"${rfc3339(day * DAY_SECONDS)}","ending_at":"${rfc3339((day + 1) * DAY_SECONDS)}","results":[${results.join(',')}]}`,
    );
  }
  return pagesOf(buckets, 31, anthropicPage);
}

export function anthropicUsage(calls: readonly GeneratedCall[], first: number, last: number): string {
  const byHour = groupBy(calls, (call) => String(Math.floor(call.endSeconds / HOUR_SECONDS)));
  const buckets: string[] = [];
  for (let hour = first * 24; hour < (last + 1) * 24; hour += 1) {
    const groups = groupBy(byHour.get(String(hour)) ?? [], (call) =>
      [call.billedModel, call.isBatch, call.project].join('|'),
    );
    const results = [...groups.values()].map((group) => {
      const sample = group[0] as GeneratedCall;
      return `{"uncached_input_tokens":${countOf(group, 'input')},"cache_creation":{"ephemeral_1h_input_tokens":${countOf(group, 'cache_write_1h')},"ephemeral_5m_input_tokens":${countOf(group, 'cache_write_5m')}},"cache_read_input_tokens":${countOf(group, 'cache_read')},"output_tokens":${countOf(group, 'output')},"server_tool_use":{"web_search_requests":0},"api_key_id":null,"model":"${sample.billedModel}","service_tier":"${sample.isBatch ? 'batch' : 'standard'}","context_window":"0-200k","inference_geo":"global","workspace_id":${JSON.stringify(sample.project)}}`;
    });
    buckets.push(
      `{"starting_at":"${rfc3339(hour * HOUR_SECONDS)}","ending_at":"${rfc3339((hour + 1) * HOUR_SECONDS)}","results":[${results.join(',')}]}`,
    );
  }
  return `[${pagesOf(buckets, 168, anthropicPage).replaceAll('\n', ',')}]`;
}
