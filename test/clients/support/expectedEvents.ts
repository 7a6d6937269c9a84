/**
 * The events that Trueup must have, from a plan and a client's facts, in a form that is compared line by line. The
 * independent calculator computes their costs.
 */
import { type PlannedCall, wholeInput } from '../../fakes/plannedCall.js';
import type { CostCalculator } from '../costCalculator.js';
import type { ClientFacts, Telling } from './clientFacts.js';

/** Classes as `usage_missing` names them. */
export type MissingName =
  | 'input'
  | 'output'
  | 'cache_read'
  | 'cache_write_5m'
  | 'cache_write_1h'
  | 'reasoning';

export interface ExpectedEvent {
  callId: string;
  telling: Exclude<Telling, 'nothing' | 'refused'>;
  provider: string;
  /** The model that the price is taken from. */
  pricedModel: string;
  status: 'ok' | 'error' | 'cancelled';
  /** Of a failed call, where the client reports it. */
  httpStatus: number | null;
  input: number;
  cacheRead: number;
  cacheCreation: number;
  /** Null where the client does not separate writes. */
  cacheCreation1h: number | null;
  output: number;
  reasoning: number;
  /** The provider's response id; null where the client does not report it. */
  responseId: string | null;
  /** Exact dollars. */
  usd: string;
  costSource: 'reported' | 'computed' | 'unpriced';
  priceGaps: string[];
  /** Classes in which the event must differ from the truth, or leaves it open; each is to be named. */
  missing: MissingName[];
}

/** The events of a plan, in no particular order. `atMillis`: when the calls were made. */
export function expectedEvents(
  plan: readonly PlannedCall[],
  facts: ClientFacts,
  calculator: CostCalculator,
  atMillis: number,
): ExpectedEvent[] {
  const priced = (call: PlannedCall) => isListed(call, calculator, atMillis);
  return plan.flatMap((call) => {
    const telling = tellingOf(call, facts, priced(call));
    return telling === 'nothing' || telling === 'refused'
      ? []
      : [expectedEvent(call, telling, facts, calculator, atMillis)];
  });
}

/** Number of a plan's calls that arrive but cannot be stored. */
export function refusedCalls(
  plan: readonly PlannedCall[],
  facts: ClientFacts,
  calculator: CostCalculator,
  atMillis: number,
): number {
  return plan.filter((call) => tellingOf(call, facts, isListed(call, calculator, atMillis)) === 'refused')
    .length;
}

function tellingOf(call: PlannedCall, facts: ClientFacts, isListedModel: boolean): Telling {
  const telling = facts.telling(call);
  return telling === 'nothing' || facts.tellsProvider || isListedModel ? telling : 'refused';
}

function isListed(call: PlannedCall, calculator: CostCalculator, atMillis: number): boolean {
  const tokens = { input: 1, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0 };
  return calculator.cost({ provider: providerOf(call), model: call.model, atMillis, tokens }).isPriced;
}

function providerOf(call: PlannedCall): string {
  return call.api === 'messages' ? 'anthropic' : 'openai';
}

function expectedEvent(
  call: PlannedCall,
  telling: ExpectedEvent['telling'],
  facts: ClientFacts,
  calculator: CostCalculator,
  atMillis: number,
): ExpectedEvent {
  const isCounted = telling === 'usage' || telling === 'partial';
  const { usage } = call;
  const counted = isCounted ? toldTokens(call, telling, facts) : NOTHING;
  const write = counted.cacheWrite5m + counted.cacheWrite1h;
  const pricedModel = telling === 'attempt' ? call.model : modelOf(call, facts);
  const cost = calculator.cost({ provider: providerOf(call), model: pricedModel, atMillis, tokens: counted });
  const missing: MissingName[] = [];
  if (telling === 'unmetered') missing.push('input');
  if (telling === 'unmetered' && call.api !== 'embeddings') missing.push('output');
  if (telling === 'partial' && facts.partialOutput === null) missing.push('output');
  if (isCounted) {
    const truth = telling === 'partial' ? { ...usage, reasoning: 0 } : usage;
    if (counted.cacheRead !== truth.cacheRead) missing.push('cache_read');
    if (counted.cacheWrite5m !== truth.cacheWrite5m && !facts.cacheWrite) missing.push('cache_write_5m');
    if (counted.cacheWrite1h !== truth.cacheWrite1h) missing.push('cache_write_1h');
    if (!facts.reasoning(call) && truth.reasoning > 0) missing.push('reasoning');
  }
  return {
    callId: call.id,
    telling,
    provider: providerOf(call),
    pricedModel,
    status: statusOf(call, telling, facts),
    httpStatus: telling === 'attempt' && facts.httpStatus ? failureOf(call) : null,
    input: counted.input,
    cacheRead: counted.cacheRead,
    cacheCreation: write,
    cacheCreation1h: facts.cacheWriteSplit ? counted.cacheWrite1h : null,
    output: counted.output,
    reasoning: telling === 'usage' && facts.reasoning(call) ? usage.reasoning : 0,
    responseId: facts.responseId(call) && telling !== 'attempt' ? responseIdOf(call) : null,
    usd: isCounted ? cost.usd : '0',
    costSource: costSourceOf(telling, facts, isCounted && cost.isPriced),
    priceGaps: isCounted ? cost.assumedClasses : [],
    missing,
  };
}

function statusOf(call: PlannedCall, telling: Telling, facts: ClientFacts): ExpectedEvent['status'] {
  if (telling === 'attempt') return 'error';
  return facts.reportsCancelled && call.fate === 'abort' ? 'cancelled' : 'ok';
}

/** A failed call costs nothing, which is known and no gap in the prices. */
function costSourceOf(telling: Telling, facts: ClientFacts, isPriced: boolean): ExpectedEvent['costSource'] {
  if (telling === 'attempt') return facts.reportsFailuresAsFree ? 'reported' : 'computed';
  return isPriced ? 'computed' : 'unpriced';
}

const NOTHING = { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0 };

/**
 * The tokens by class as a reader of the client's report must classify them: tokens that it does not separate stay in
 * input.
 */
function toldTokens(call: PlannedCall, telling: Telling, facts: ClientFacts): typeof NOTHING {
  const { usage } = call;
  const cacheRead = facts.cacheRead ? usage.cacheRead : 0;
  const write = facts.cacheWrite ? usage.cacheWrite5m + usage.cacheWrite1h : 0;
  const cacheWrite1h = facts.cacheWrite && facts.cacheWriteSplit ? usage.cacheWrite1h : 0;
  const output = telling === 'partial' ? (facts.partialOutput ?? 0) : (facts.output?.(call) ?? usage.output);
  return {
    input: wholeInput(usage) - cacheRead - write,
    cacheRead,
    cacheWrite5m: write - cacheWrite1h,
    cacheWrite1h,
    output,
  };
}

function modelOf(call: PlannedCall, facts: ClientFacts): string {
  return facts.responseModel(call) ? call.responseModel : call.model;
}

function failureOf(call: PlannedCall): number {
  return call.fate === 'fail400' ? 400 : 429;
}

/** The ids that the fakes return; see test/fakes. */
export function responseIdOf(call: PlannedCall): string | null {
  switch (call.api) {
    case 'chat':
      return `chatcmpl-${call.id}`;
    case 'responses':
      return `resp_${call.id}`;
    case 'messages':
      return `msg_${call.id}`;
    case 'embeddings':
      return null;
  }
}
