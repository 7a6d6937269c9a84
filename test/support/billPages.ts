/** Generated calls as the pages that their providers would answer. */
import { type BucketResults, pageTexts } from '../../lab/bills/pages.js';
import * as result from '../../lab/bills/results.js';
import { groupBy, usdText } from '../../lab/bills/results.js';
import {
  DAY_SECONDS,
  dayOfCall,
  type GeneratedCall,
  HOUR_SECONDS,
  MODELS,
  type Rates,
  type TokenClass,
} from './generatedCalls.js';

const ratesOf = (call: GeneratedCall): Rates => {
  const plan = MODELS.find((model) => model.billed === call.billedModel);
  return (call.isLong ? plan?.long?.rates : call.tier === 'priority' ? plan?.priority : plan?.rates) ?? {};
};

const chargeOf = (calls: readonly GeneratedCall[], name: TokenClass): bigint =>
  calls.reduce(
    (sum, call) => sum + (BigInt(call.tokens[name]) * (ratesOf(call)[name] ?? 0n)) / (call.isBatch ? 2n : 1n),
    0n,
  );

/** A bucket for each of the numbers, with the results of its calls. */
function bucketsOf(
  calls: readonly GeneratedCall[],
  of: {
    first: number;
    last: number;
    widthSeconds: number;
    numberOf: (call: GeneratedCall) => number;
    results: (inside: readonly GeneratedCall[], number: number) => object[];
  },
): BucketResults[] {
  const byNumber = groupBy(calls, of.numberOf);
  return Array.from({ length: of.last - of.first + 1 }, (_, at) => of.first + at).map((number) => ({
    startSeconds: number * of.widthSeconds,
    endSeconds: (number + 1) * of.widthSeconds,
    results: of.results(byNumber.get(number) ?? [], number),
  }));
}

const costBuckets = (
  calls: readonly GeneratedCall[],
  first: number,
  last: number,
  results: (inside: readonly GeneratedCall[], day: number) => object[],
) => bucketsOf(calls, { first, last, widthSeconds: DAY_SECONDS, numberOf: dayOfCall, results });

/** Usage by the hour, one result for each group of calls with the same `keyOf`, as a JSON array of pages. */
function usagePages(
  provider: 'openai' | 'anthropic',
  calls: readonly GeneratedCall[],
  [first, last]: [firstDay: number, lastDay: number],
  keyOf: (call: GeneratedCall) => string,
  resultOf: (group: readonly GeneratedCall[]) => object,
): string {
  const buckets = bucketsOf(calls, {
    first: first * 24,
    last: last * 24 + 23,
    widthSeconds: HOUR_SECONDS,
    numberOf: (call) => Math.floor(call.endSeconds / HOUR_SECONDS),
    results: (inside) => [...groupBy(inside, keyOf).values()].map(resultOf),
  });
  return `[${pageTexts(provider, buckets, 168).join(',')}]`;
}

export function openaiCosts(
  calls: readonly GeneratedCall[],
  first: number,
  last: number,
  creditDay: number,
): string {
  const buckets = costBuckets(calls, first, last, (inside, day) => {
    const lines = groupBy(inside, (call) =>
      [call.billedModel, call.tier, call.isLong, call.project].join('|'),
    );
    const results = [...lines.values()].flatMap((group) =>
      result.OPENAI_CLASSES.flatMap((name) => openaiLine(group, name)),
    );
    // A fee with more digits than a pico-dollar, written as a string as some organizations get it.
    const fee = (((day * 37) % 100) / 10 + 0.1234567890123456).toFixed(16);
    results.push(openaiExtra(fee, 'web search tool calls', 'proj_search'));
    if (day === creditDay) results.push(openaiExtra({ $number: '-25.0' }, 'Promotional credit', null));
    return results;
  });
  return pageTexts('openai', buckets, 30).join('\n');
}

function openaiLine(group: readonly GeneratedCall[], name: TokenClass): object[] {
  const { billedModel, tier, isLong, project } = group[0] as GeneratedCall;
  const tokens = result.countTokens(group)[name];
  if (tokens === 0) return [];
  const lineItem = result.openaiLineItem(billedModel, name, { isLong, isPriority: tier === 'priority' });
  const amount = { $number: usdText(chargeOf(group, name)) };
  return [result.openaiCost({ amount, lineItem, project, account: null, tokens })];
}

const openaiExtra = (
  amount: Parameters<typeof result.openaiCost>[0]['amount'],
  lineItem: string,
  project: string | null,
): object => result.openaiCost({ amount, lineItem, project, account: null });

export function openaiUsage(calls: readonly GeneratedCall[], first: number, last: number): string {
  return usagePages(
    'openai',
    calls,
    [first, last],
    (call) => [call.billedModel, call.tier, call.isBatch, call.project].join('|'),
    (group) => {
      const { billedModel: model, tier, isBatch, project } = group[0] as GeneratedCall;
      const tokens = result.countTokens(group);
      const isPriority = tier === 'priority';
      return result.openaiUsage({
        tokens,
        requests: group.length,
        project,
        key: null,
        model,
        isBatch,
        isPriority,
      });
    },
  );
}

/**
 * The overcharge for cached reads of claude-haiku-4-5 at the rate of fresh input: 1 instead of 0.1 dollars a million.
 */
export const wrongReadsOf = (calls: readonly GeneratedCall[]): bigint =>
  BigInt(
    result.countTokens(calls.filter((call) => call.billedModel === 'claude-haiku-4-5-20251001')).cache_read,
  ) * 900_000n;

export function anthropicCosts(
  calls: readonly GeneratedCall[],
  first: number,
  last: number,
  wrongDays: ReadonlySet<number>,
  wrongReadDays: ReadonlySet<number> = new Set(),
): string {
  const buckets = costBuckets(calls, first, last, (inside, day) => {
    const lines = groupBy(inside, (call) => [call.billedModel, call.isBatch, call.project].join('|'));
    const results = [...lines.values()].flatMap((group) =>
      (Object.keys(result.ANTHROPIC_TYPES) as TokenClass[]).flatMap((name) => {
        const { billedModel: model, isBatch, project } = group[0] as GeneratedCall;
        const tokens = result.countTokens(group);
        if (tokens[name] === 0) return [];
        const isWrong = name === 'output' && model === 'claude-opus-5' && wrongDays.has(day);
        const pico =
          chargeOf(group, name) +
          (isWrong ? BigInt(tokens.output) * 5_000_000n : 0n) +
          (name === 'cache_read' && wrongReadDays.has(day) ? wrongReadsOf(group) : 0n);
        const description = `${model} Usage - ${name}`;
        return [
          result.anthropicCost({ pico, description, model, tokenClass: name, isBatch, workspace: project }),
        ];
      }),
    );
    return [...results, result.anthropicSearchFee(`${(day % 7) * 50}.5`)];
  });
  return pageTexts('anthropic', buckets, 31).join('\n');
}

export function anthropicUsage(calls: readonly GeneratedCall[], first: number, last: number): string {
  return usagePages(
    'anthropic',
    calls,
    [first, last],
    (call) => [call.billedModel, call.isBatch, call.project].join('|'),
    (group) => {
      const { billedModel: model, isBatch, project } = group[0] as GeneratedCall;
      return result.anthropicUsage({
        tokens: result.countTokens(group),
        key: null,
        model,
        isBatch,
        workspace: project,
      });
    },
  );
}
