/** The providers' bills for the calls: right except for the planted faults. */
import { TOKEN_CLASSES, type TokenClass } from '../bills/results.js';
import { type DemoCall, listRate, rightRate } from './calls.js';
import type { DemoKey } from './company.js';
import { BATCH_DIVISOR, type DemoProvider, TERRA_BEFORE } from './prices.js';
import { covers, SCHEDULE } from './schedule.js';

/** A fault in the rate of charged tokens. */
export type RateFault =
  | 'stale_price'
  | 'cache_at_full_rate'
  | 'contract_discount_not_applied'
  | 'batch_discount_not_applied';

/** The fault of a class of a call; undefined: the bill is right. */
export function rateFaultOf(call: DemoCall, name: TokenClass): RateFault | undefined {
  const { model, offset } = call;
  if (model === 'gpt-5.6-terra' && covers(SCHEDULE.stalePrice, offset)) return 'stale_price';
  if (model === 'gpt-6-sol' && name === 'cache_read' && covers(SCHEDULE.cacheAtFullRate, offset))
    return 'cache_at_full_rate';
  if (call.provider === 'anthropic' && covers(SCHEDULE.contractForgotten, offset))
    return 'contract_discount_not_applied';
  const isHaikuBatch = model === 'claude-haiku-4-5-20251001' && call.batchId !== null;
  if (isHaikuBatch && covers(SCHEDULE.batchForgotten, offset)) return 'batch_discount_not_applied';
  return undefined;
}

/** The charged rate of a class of a call, pico-dollars per token. */
export function billedRate(call: DemoCall, name: TokenClass): bigint {
  const right = rightRate(call, name);
  switch (rateFaultOf(call, name)) {
    case undefined:
      return right;
    case 'stale_price':
      return TERRA_BEFORE[name] ?? 0n;
    case 'cache_at_full_rate':
      return rightRate(call, 'input');
    case 'batch_discount_not_applied':
      return right * BATCH_DIVISOR;
    case 'contract_discount_not_applied':
      return listRate(call, name);
  }
}

/** Tokens of one class that a day's bill has on one line. */
export interface BilledLine {
  provider: DemoProvider;
  offset: number;
  model: string;
  key: DemoKey;
  isBatch: boolean;
  isLong: boolean;
  tokenClass: TokenClass;
  quantity: number;
  billedPico: bigint;
  rightPico: bigint;
  fault: RateFault | undefined;
}

/** Lines of a set of calls, in the order of the calls. */
export function billedLines(calls: readonly DemoCall[]): BilledLine[] {
  const lines = new Map<string, BilledLine>();
  for (const call of calls) {
    for (const tokenClass of TOKEN_CLASSES) {
      const quantity = call.tokens[tokenClass];
      if (quantity === 0) continue;
      const isBatch = call.batchId !== null;
      const id = [call.offset, call.model, call.key.id, isBatch, call.isLong, tokenClass].join('|');
      const line = lines.get(id) ?? newLine(call, tokenClass, isBatch);
      line.quantity += quantity;
      line.billedPico += BigInt(quantity) * billedRate(call, tokenClass);
      line.rightPico += BigInt(quantity) * rightRate(call, tokenClass);
      lines.set(id, line);
    }
  }
  return [...lines.values()];
}

function newLine(call: DemoCall, tokenClass: TokenClass, isBatch: boolean): BilledLine {
  return {
    provider: call.provider,
    offset: call.offset,
    model: call.model,
    key: call.key,
    isBatch,
    isLong: call.isLong,
    tokenClass,
    quantity: 0,
    billedPico: 0n,
    rightPico: 0n,
    fault: rateFaultOf(call, tokenClass),
  };
}

/** Fees beside tokens, which no call shows. */
export interface Fee {
  offset: number;
  label: string;
  pico: bigint;
}

const PICO_PER_CENT = 10_000_000_000n;

/** The cost of a day's web searches. */
export function webSearchPico(provider: DemoProvider, offset: number): bigint {
  const place = provider === 'openai' ? offset : offset - 7;
  return BigInt(60 + (((place + 100) * 37) % 140)) * PICO_PER_CENT;
}

/** OpenAI's only credit. */
export const CREDIT = {
  offset: SCHEDULE.credit.first,
  label: 'Promotional credit',
  pico: -250_000_000_000_000n,
};

/** Whether OpenAI's bill contains the whole day twice. */
export function isDoubled(provider: DemoProvider, offset: number): boolean {
  return provider === 'openai' && covers(SCHEDULE.doubled, offset);
}

/** OpenAI's first report of the restated day lacks one of this number of calls. */
const LATE_EVERY = 10;

/** The OpenAI calls in the first report of the restated day. */
export function firstReport(calls: readonly DemoCall[]): DemoCall[] {
  let number = 0;
  return calls.filter((call) => {
    if (!covers(SCHEDULE.restated, call.offset)) return true;
    number += 1;
    return number % LATE_EVERY !== 0;
  });
}
