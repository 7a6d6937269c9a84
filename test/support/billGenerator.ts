/**
 * Two providers' saved pages and the calls behind them, from a seed: the data of a company with two projects after
 * `days` days. Only for tests; it shares no code with the product and has separate rates.
 */
import { rfc3339 } from '../../lab/bills/pages.js';
import { mulberry32 } from '../../lab/demo/random.js';
import { anthropicCosts, anthropicUsage, openaiCosts, openaiUsage, wrongReadsOf } from './billPages.js';
import {
  DAY_SECONDS,
  dayOfCall,
  dayText,
  type GeneratedCall,
  type GeneratedProvider,
  HOUR_SECONDS,
  MODELS,
  type ModelPlan,
  type TokenClass,
} from './generatedCalls.js';

export interface PlantedErrors {
  /** OpenAI's calls from the 9th to the 14th hour of this day were not reported by us: 5 hours. */
  missingDay: string;
  missingHours: number;
  /** Their cost, by billed model. */
  missingPico: Map<string, bigint>;
  /** Output of claude-opus-5 billed at 30 instead of 25 dollars per million on these consecutive days. */
  wrongRateDays: string[];
  wrongRatePico: Map<string, bigint>;
  /** If requested: cached reads of claude-haiku-4-5 are billed at the rate of fresh input on these days. */
  wrongReadDays: string[];
  wrongReadPico: Map<string, bigint>;
  /** A day that the second OpenAI file states again. */
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
/**
 * Bills and calls of `days` days, the last of them `lastDay` (`YYYY-MM-DD`), with `callsPerHour` calls a model in
 * active hours.
 */
export function generateBills(options: {
  seed: number;
  lastDay: string;
  days: number;
  callsPerHour: number;
  withWrongReads?: boolean;
}): GeneratedBills {
  const last = Date.parse(`${options.lastDay}T00:00:00Z`) / 1_000 / DAY_SECONDS;
  const first = last - options.days + 1;
  const at = (share: number) => first + Math.floor(options.days * share);
  const [missing, wrong, restated, credit] = [at(0.4), at(0.6), at(0.25), at(0.75)];
  const random = mulberry32(options.seed);
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
  const wrongReads = options.withWrongReads ? [at(0.3), at(0.3) + 1, at(0.3) + 2] : [];
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
      anthropicCosts: anthropicCosts(anthropic, first, last, new Set(wrongDays), new Set(wrongReads)),
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
      wrongReadDays: wrongReads.map(dayText),
      wrongReadPico: new Map(
        wrongReads.map((day) => [
          dayText(day),
          wrongReadsOf(anthropic.filter((call) => dayOfCall(call) === day)),
        ]),
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

/** The first version of the restated day lacks every tenth call. */
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
