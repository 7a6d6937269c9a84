/**
 * Two providers' saved pages and the calls behind them, from a seed: what a company with two projects would have
 * after `days` days. Written for the tests alone; it shares no code with the product and has rates of its own.
 */
const DAY_SECONDS = 86_400;
const HOUR_SECONDS = 3_600;
const PICO_PER_CENT = 10_000_000_000n;

type TokenClass = 'input' | 'cache_read' | 'cache_write_5m' | 'cache_write_1h' | 'output';
export type GeneratedProvider = 'openai' | 'anthropic';

/** Pico-dollars per token: all rates here are whole. */
type Rates = Partial<Record<TokenClass, bigint>>;

interface ModelPlan {
  provider: GeneratedProvider;
  /** As the bill names it, and as half of the clients do. */
  billed: string;
  asked: string;
  rates: Rates;
  batchShare: number;
  priority?: Rates;
  long?: { above: number; rates: Rates };
  input: [number, number];
  output: [number, number];
}

/** List prices of 2026-11, dollars per million tokens → pico-dollars per token (× 1e6). */
const usdPerMtok = (rates: Record<string, number>): Rates =>
  Object.fromEntries(Object.entries(rates).map(([name, usd]) => [name, BigInt(Math.round(usd * 1_000_000))]));

const MODELS: readonly ModelPlan[] = [
  {
    provider: 'openai',
    billed: 'gpt-6-sol',
    asked: 'gpt-6-sol',
    rates: usdPerMtok({ input: 2, cache_read: 0.2, cache_write_5m: 2.5, output: 10 }),
    priority: usdPerMtok({ input: 4, cache_read: 0.4, cache_write_5m: 5, output: 20 }),
    long: { above: 272_000, rates: usdPerMtok({ input: 4, cache_read: 0.4, cache_write_5m: 5, output: 15 }) },
    batchShare: 0,
    input: [40_000, 200_000],
    output: [500, 9_000],
  },
  {
    provider: 'openai',
    billed: 'gpt-5-mini-2025-08-07',
    asked: 'gpt-5-mini',
    rates: usdPerMtok({ input: 0.25, cache_read: 0.025, output: 2 }),
    batchShare: 0.3,
    input: [300_000, 700_000],
    output: [10_000, 40_000],
  },
  {
    provider: 'openai',
    billed: 'gpt-4o-2024-11-20',
    asked: 'gpt-4o',
    rates: usdPerMtok({ input: 2.5, cache_read: 1.25, output: 10 }),
    batchShare: 0,
    input: [20_000, 110_000],
    output: [500, 9_000],
  },
  {
    provider: 'anthropic',
    billed: 'claude-opus-5',
    asked: 'claude-opus-5',
    rates: usdPerMtok({ input: 5, cache_read: 0.5, cache_write_5m: 6.25, cache_write_1h: 10, output: 25 }),
    batchShare: 0,
    input: [10_000, 80_000],
    output: [1_000, 12_000],
  },
  {
    provider: 'anthropic',
    billed: 'claude-sonnet-5-5',
    asked: 'claude-sonnet-5-5',
    rates: usdPerMtok({ input: 2, cache_read: 0.1, cache_write_5m: 2.5, cache_write_1h: 4, output: 10 }),
    batchShare: 0.25,
    input: [20_000, 150_000],
    output: [1_000, 12_000],
  },
  {
    provider: 'anthropic',
    billed: 'claude-haiku-4-5-20251001',
    asked: 'claude-haiku-4-5',
    rates: usdPerMtok({ input: 1, cache_read: 0.1, cache_write_5m: 1.25, cache_write_1h: 2, output: 5 }),
    batchShare: 0,
    input: [20_000, 150_000],
    output: [1_000, 12_000],
  },
];

/** One call as it happened. */
export interface GeneratedCall {
  provider: GeneratedProvider;
  billedModel: string;
  askedModel: string;
  project: string | null;
  startSeconds: number;
  endSeconds: number;
  isBatch: boolean;
  tier: 'standard' | 'priority';
  isLong: boolean;
  tokens: Record<TokenClass, number>;
  /** What it costs at list. */
  pico: bigint;
  /** False for a call of the window in which the SDK was missing. */
  seen: boolean;
}

export interface PlantedErrors {
  /** OpenAI's calls from the 9th to the 14th hour of this day were not reported by us: 5 hours. */
  missingDay: string;
  missingHours: number;
  /** What they cost, by billed model. */
  missingPico: Map<string, bigint>;
  /** Output of claude-opus-5 billed at 30 instead of 25 dollars per million on these consecutive days. */
  wrongRateDays: string[];
  wrongRatePico: Map<string, bigint>;
  /** A day that the second OpenAI file states anew. */
  restatedDay: string;
  restatedPico: bigint;
  creditDay: string;
  creditUsd: string;
}

export interface GeneratedBills {
  seed: number;
  days: string[];
  calls: GeneratedCall[];
  /** Saved answers, one file each; openaiRestated comes later than openaiCosts. */
  files: {
    openaiCosts: string;
    openaiUsage: string;
    openaiRestated: string;
    anthropicCosts: string;
    anthropicUsage: string;
  };
  planted: PlantedErrors;
}

function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const dayText = (day: number) => new Date(day * DAY_SECONDS * 1_000).toISOString().slice(0, 10);
const dayOfCall = (call: GeneratedCall) => Math.floor(call.endSeconds / DAY_SECONDS);
const decimal = (scaled: bigint, digits: number): string => {
  const text = (scaled < 0n ? -scaled : scaled).toString().padStart(digits + 1, '0');
  const fraction = text.slice(-digits).replace(/0+$/, '');
  return `${scaled < 0n ? '-' : ''}${text.slice(0, -digits)}${fraction === '' ? '' : `.${fraction}`}`;
};
const usd = (pico: bigint) => decimal(pico, 12);
const cents = (pico: bigint) => `${pico / PICO_PER_CENT}${decimal(pico % PICO_PER_CENT, 10).slice(1)}`;

/** Bills and calls of `days` days, the last of them `lastDay` (`YYYY-MM-DD`), in hours that hold `callsPerHour` calls a model. */
export function generateBills(options: {
  seed: number;
  lastDay: string;
  days: number;
  callsPerHour: number;
}): GeneratedBills {
  const last = Date.parse(`${options.lastDay}T00:00:00Z`) / 1_000 / DAY_SECONDS;
  const first = last - options.days + 1;
  const at = (share: number) => first + Math.floor(options.days * share);
  const [missing, wrong, restated, credit] = [at(0.4), at(0.6), at(0.25), at(0.75)];
  const random = randomOf(options.seed);
  const calls: GeneratedCall[] = [];
  for (let day = first; day <= last; day += 1) {
    for (const plan of MODELS) {
      for (let hour = 0; hour < 24; hour += 1) {
        for (let n = 0; n < options.callsPerHour; n += 1)
          calls.push(makeCall(plan, day * DAY_SECONDS + hour * HOUR_SECONDS, random, first));
      }
    }
  }
  for (const call of calls) {
    const hour = Math.floor((call.endSeconds % DAY_SECONDS) / HOUR_SECONDS);
    call.seen = !(call.provider === 'openai' && dayOfCall(call) === missing && hour >= 9 && hour < 14);
  }
  const wrongDays = [wrong, wrong + 1, wrong + 2];
  const restatement = restate(calls, restated);
  const byProvider = (provider: GeneratedProvider) => calls.filter((call) => call.provider === provider);
  const openai = byProvider('openai');
  const anthropic = byProvider('anthropic');
  return {
    seed: options.seed,
    days: Array.from({ length: options.days }, (_, index) => dayText(first + index)),
    calls,
    files: {
      openaiCosts: openaiCosts(
        restatement.before.filter((call) => call.provider === 'openai'),
        first,
        last,
        credit,
      ),
      openaiUsage: openaiUsage(openai, first, last),
      openaiRestated: openaiCosts(openai, restated, restated, credit),
      anthropicCosts: anthropicCosts(anthropic, first, last, new Set(wrongDays)),
      anthropicUsage: anthropicUsage(anthropic, first, last),
    },
    planted: {
      missingDay: dayText(missing),
      missingHours: 5,
      missingPico: sumBy(
        calls.filter((call) => !call.seen),
        (call) => call.billedModel,
        (call) => call.pico,
      ),
      wrongRateDays: wrongDays.map(dayText),
      wrongRatePico: sumBy(
        anthropic.filter(
          (call) => call.billedModel === 'claude-opus-5' && wrongDays.includes(dayOfCall(call)),
        ),
        (call) => dayText(dayOfCall(call)),
        (call) => BigInt(call.tokens.output) * 5_000_000n,
      ),
      restatedDay: dayText(restated),
      restatedPico: restatement.added,
      creditDay: dayText(credit),
      creditUsd: '-25',
    },
  };
}

function makeCall(plan: ModelPlan, hourStart: number, random: () => number, firstDay: number): GeneratedCall {
  const between = ([low, high]: [number, number]) => low + Math.floor(random() * (high - low + 1));
  const isLong = plan.long !== undefined && random() < 0.04;
  const isPriority = !isLong && plan.priority !== undefined && random() < 0.1;
  const isBatch = random() < plan.batchShare;
  const cached = random();
  const whole = isLong ? (plan.long?.above ?? 0) + between([1_000, 90_000]) : between(plan.input);
  const tokens: Record<TokenClass, number> = {
    input: whole,
    cache_read: 0,
    cache_write_5m: 0,
    cache_write_1h: 0,
    output: between(plan.output),
  };
  if (cached > 0.4) tokens.cache_read = Math.floor(whole * random() * 0.8);
  if (cached > 0.6 && plan.rates.cache_write_5m !== undefined)
    tokens.cache_write_5m = Math.floor((whole - tokens.cache_read) * 0.3);
  if (cached > 0.8 && plan.rates.cache_write_1h !== undefined)
    tokens.cache_write_1h = Math.floor((whole - tokens.cache_read) * 0.2);
  tokens.input = whole - tokens.cache_read - tokens.cache_write_5m - tokens.cache_write_1h;
  const rates = isLong
    ? (plan.long?.rates ?? plan.rates)
    : isPriority
      ? (plan.priority ?? plan.rates)
      : plan.rates;
  let pico = 0n;
  for (const [name, count] of Object.entries(tokens))
    pico += BigInt(count) * (rates[name as TokenClass] ?? 0n);
  const startSeconds = hourStart + Math.floor(random() * HOUR_SECONDS);
  // Some calls go on into the next hour or day; the provider books a call when it ends. None ends before the first day.
  const endSeconds = Math.max(startSeconds + Math.floor(random() * 90), firstDay * DAY_SECONDS);
  const second = random() < 0.35;
  return {
    provider: plan.provider,
    billedModel: plan.billed,
    askedModel: random() < 0.5 ? plan.asked : plan.billed,
    project:
      plan.provider === 'openai' ? (second ? 'proj_search' : 'proj_chat') : second ? 'wrkspc_search' : null,
    startSeconds,
    endSeconds,
    isBatch,
    tier: isPriority ? 'priority' : 'standard',
    isLong,
    tokens,
    pico: isBatch ? pico / 2n : pico,
    seen: true,
  };
}

/** The first telling of the restated day lacks every tenth call. */
function restate(calls: readonly GeneratedCall[], day: number): { before: GeneratedCall[]; added: bigint } {
  let added = 0n;
  const before = calls.filter((call, index) => {
    const isLate = call.provider === 'openai' && dayOfCall(call) === day && index % 10 === 0;
    if (isLate) added += call.pico;
    return !isLate;
  });
  return { before, added };
}

function sumBy<T>(
  items: readonly T[],
  keyOf: (item: T) => string,
  amountOf: (item: T) => bigint,
): Map<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const item of items) sums.set(keyOf(item), (sums.get(keyOf(item)) ?? 0n) + amountOf(item));
  return sums;
}

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

function openaiCosts(
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

function openaiUsage(calls: readonly GeneratedCall[], first: number, last: number): string {
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

const rfc3339 = (seconds: number) => new Date(seconds * 1_000).toISOString().replace('.000', '');

function anthropicCosts(
  calls: readonly GeneratedCall[],
  first: number,
  last: number,
  wrongDays: ReadonlySet<number>,
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
          (isWrong ? BigInt(countOf(group, 'output')) * 5_000_000n : 0n);
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

function anthropicUsage(calls: readonly GeneratedCall[], first: number, last: number): string {
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

/** The calls that were reported, as items of POST /api/v1/ingest/events. */
export function eventsOf(calls: readonly GeneratedCall[]): object[] {
  return calls
    .filter((call) => call.seen)
    .map((call, index) => ({
      provider: call.provider,
      model: call.askedModel,
      response_model: call.billedModel,
      request_id: `req-${index}`,
      timestamp: rfc3339(call.startSeconds),
      end_at: rfc3339(call.endSeconds),
      input_tokens: call.tokens.input,
      cache_read: call.tokens.cache_read,
      cache_creation: call.tokens.cache_write_5m + call.tokens.cache_write_1h,
      cache_creation_5m: call.tokens.cache_write_5m,
      cache_creation_1h: call.tokens.cache_write_1h,
      output_tokens: call.tokens.output,
      is_batch: call.isBatch,
      ...(call.tier === 'priority' ? { service_tier: 'priority' } : {}),
      feature: call.project === 'proj_search' || call.project === 'wrkspc_search' ? 'search' : 'chat',
    }));
}
