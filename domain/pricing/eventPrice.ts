import type { CallRecord, CostSource } from '../events/event.js';
import type { Pico } from '../money.js';
import { type CallPrice, priceCall } from './cost.js';
import type { PriceBook } from './priceBook.js';

/** What an event says about its cost. */
export interface EventPrice {
  costPico: Pico;
  costSource: CostSource;
  price: CallPrice;
}

/** Whether two prices are the same. A reported cost stays as it was given when a call is priced anew (docs/decisions/0013). */
export function isSamePrice(one: EventPrice, other: EventPrice): boolean {
  return (
    one.costPico === other.costPico &&
    one.costSource === other.costSource &&
    one.price.computedPico === other.price.computedPico &&
    one.price.contextBand === other.price.contextBand &&
    sameNames(one.price.priceGaps, other.price.priceGaps)
  );
}

function sameNames(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, index) => name === other[index]);
}

/** Whether a call consumed something that no report states: no usage, and neither failed nor blocked. A cancelled stream is billed too. */
export function isUnmetered(call: CallRecord): boolean {
  return call.usage === null && (call.status === 'ok' || call.status === 'cancelled');
}

/**
 * The event's cost_usd: as reported, else computed, else 0 and marked unpriced. A call that used nothing costs nothing,
 * whether its model has a price or not; so does a blocked call, whatever was reported.
 */
export function costOf(event: {
  call: Pick<CallRecord, 'status' | 'reportedCostPico'>;
  price: Pick<CallPrice, 'computedPico'>;
}): {
  pico: bigint;
  source: 'reported' | 'computed' | 'unpriced';
} {
  if (event.call.status === 'blocked') return { pico: 0n, source: 'computed' };
  if (event.call.reportedCostPico !== null) return { pico: event.call.reportedCostPico, source: 'reported' };
  if (event.price.computedPico !== null) return { pico: event.price.computedPico, source: 'computed' };
  return { pico: 0n, source: 'unpriced' };
}

/** A call that was blocked, or failed without usage, used nothing and costs nothing; of another without usage nobody knows. */
const FREE: CallPrice = { computedPico: 0n, priceGaps: [], contextBand: 0 };
const UNKNOWN: CallPrice = { computedPico: null, priceGaps: [], contextBand: 0 };

/** The price of a call at its time; absent usage is no usage of zero. */
export function priceOf(call: CallRecord, prices: PriceBook): CallPrice {
  if (call.status === 'blocked') return FREE;
  if (call.usage === null) return isUnmetered(call) ? UNKNOWN : FREE;
  return priceCall(prices, {
    biller: call.billedBy,
    model: call.responseModel ?? call.model,
    requestedModel: call.responseModel === null ? null : call.model,
    atMicros: call.startMicros,
    usage: call.usage,
    isBatch: call.isBatch,
    serviceTier: call.serviceTier,
  });
}
