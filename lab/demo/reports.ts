/** The demo's bills: results of each provider's report by bucket. */
import type { BucketResults } from '../bills/pages.js';
import * as result from '../bills/results.js';
import { groupBy, type TokenClass, usdText } from '../bills/results.js';
import { type BilledLine, billedLines, CREDIT, isDoubled, webSearchPico } from './billed.js';
import { type Calendar, DAY_SECONDS } from './calendar.js';
import type { DemoCall } from './calls.js';
import { ACCOUNTS } from './company.js';

/** All answers of a provider: costs by UTC day, usage by hour. */
export interface ProviderTruth {
  accountId: string;
  reports: Record<string, BucketResults[]>;
}

const billedPico = (lines: readonly BilledLine[]): bigint =>
  lines.reduce((sum, line) => sum + line.billedPico, 0n);

function dayBuckets(calendar: Calendar, resultsOf: (offset: number) => object[]): BucketResults[] {
  return calendar.offsets().map((offset) => ({
    startSeconds: calendar.startSeconds(offset),
    endSeconds: calendar.startSeconds(offset) + DAY_SECONDS,
    results: resultsOf(offset),
  }));
}

/** GET /v1/organization/costs, grouped by project, line item and key. */
export function openaiCosts(calls: readonly DemoCall[], calendar: Calendar): BucketResults[] {
  const byDay = groupBy(billedLines(calls), (line) => line.offset);
  return dayBuckets(calendar, (offset) => {
    const lines = groupBy(byDay.get(offset) ?? [], (line) =>
      [line.model, line.isLong, line.key.id, line.tokenClass].join('|'),
    );
    const results = [...lines.values()].map(openaiCostLine);
    if (isDoubled('openai', offset)) results.push(...results);
    results.push(openaiFee('web search tool calls', webSearchPico('openai', offset), 'proj_DemoSearch'));
    if (offset === CREDIT.offset) results.push(openaiFee(CREDIT.label, CREDIT.pico, null));
    return results;
  });
}

function openaiCostLine(group: readonly BilledLine[]): object {
  const { model, isLong, tokenClass, key } = group[0] as BilledLine;
  return result.openaiCost({
    amount: { $number: usdText(billedPico(group)) },
    lineItem: result.openaiLineItem(model, tokenClass, { isLong }),
    project: key.project,
    account: ACCOUNTS.openai,
    key: key.id,
    tokens: group.reduce((sum, line) => sum + line.quantity, 0),
  });
}

function openaiFee(lineItem: string, pico: bigint, project: string | null): object {
  const amount = { $number: usdText(pico) };
  return result.openaiCost({ amount, lineItem, project, account: ACCOUNTS.openai, key: null });
}

/** GET /v1/organization/usage/completions, grouped by everything. */
export function openaiUsage(calls: readonly DemoCall[], widthSeconds: number): BucketResults[] {
  return usageBuckets(calls, widthSeconds, (group) => {
    const { key, model, batchId } = group[0] as DemoCall;
    return result.openaiUsage({
      tokens: result.countTokens(group),
      requests: group.length,
      project: key.project,
      key: key.id,
      model,
      isBatch: batchId !== null,
    });
  });
}

function usageBuckets(
  calls: readonly DemoCall[],
  widthSeconds: number,
  resultOf: (group: readonly DemoCall[]) => object,
): BucketResults[] {
  const byBucket = groupBy(calls, (call) => Math.floor(call.endSeconds / widthSeconds));
  const buckets = [...byBucket].sort(([a], [b]) => a - b);
  return buckets.map(([number, inside]) => ({
    startSeconds: number * widthSeconds,
    endSeconds: (number + 1) * widthSeconds,
    results: [
      ...groupBy(inside, (call) => [call.model, call.key.id, call.batchId !== null].join('|')).values(),
    ].map(resultOf),
  }));
}

export const ANTHROPIC_WORDS: Record<TokenClass, string> = {
  input: 'Input Tokens',
  cache_read: 'Input Tokens, Cache Read',
  cache_write_5m: 'Input Tokens, Cache Write 5m',
  cache_write_1h: 'Input Tokens, Cache Write 1h',
  output: 'Output Tokens',
};

/** GET /v1/organizations/cost_report, grouped by workspace and description. */
export function anthropicCosts(calls: readonly DemoCall[], calendar: Calendar): BucketResults[] {
  const byDay = groupBy(billedLines(calls), (line) => line.offset);
  return dayBuckets(calendar, (offset) => {
    const lines = groupBy(byDay.get(offset) ?? [], (line) =>
      [line.model, line.isBatch, line.key.project, line.tokenClass].join('|'),
    );
    const fee = result.anthropicSearchFee(result.centsText(webSearchPico('anthropic', offset)));
    return [...[...lines.values()].map(anthropicCostLine), fee];
  });
}

function anthropicCostLine(group: readonly BilledLine[]): object {
  const { model, isBatch, tokenClass, key } = group[0] as BilledLine;
  return result.anthropicCost({
    pico: billedPico(group),
    description: `${model} Usage - ${ANTHROPIC_WORDS[tokenClass]}${isBatch ? ' (Batch)' : ''}`,
    model,
    tokenClass,
    isBatch,
    workspace: key.project,
  });
}

/** GET /v1/organizations/usage_report/messages, grouped by everything. */
export function anthropicUsage(calls: readonly DemoCall[], widthSeconds: number): BucketResults[] {
  return usageBuckets(calls, widthSeconds, (group) => {
    const { key, model, batchId } = group[0] as DemoCall;
    return result.anthropicUsage({
      tokens: result.countTokens(group),
      key: key.id,
      model,
      isBatch: batchId !== null,
      workspace: key.project,
    });
  });
}
