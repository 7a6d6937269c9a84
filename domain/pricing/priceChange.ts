/**
 * Pricing a stored call anew: what its price was, what it is now, and whether that is a change. A reported cost stays as
 * it was given; only the computed cost beside it changes (docs/decisions/0090).
 */
import type { CostSource } from '../events/event.js';
import type { Pico } from '../money.js';
import type { CallPrice } from './cost.js';

/** What an event says about its cost. */
export interface EventPrice {
  costPico: Pico;
  costSource: CostSource;
  price: CallPrice;
}

/** True when nothing of what two prices say differs. */
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
