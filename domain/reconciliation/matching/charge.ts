import { QUANTITY_ONE } from '../../billing/billedRow.js';
import { divideHalfEven, type Pico } from '../../money.js';

const TOKENS_PER_RATE_UNIT = 1_000_000n;
const CHARGE_DIVISOR = QUANTITY_ONE * TOKENS_PER_RATE_UNIT;

/** Quantity (1e-12 units) × rate (pico-dollars per million) before rounding. */
export function chargeProduct(quantity: bigint, rate: Pico): bigint {
  return quantity * rate;
}

/** Sum of charge products → pico-dollars, rounded half to even once. */
export function picoFromChargeProduct(product: bigint): Pico {
  return divideHalfEven(product, CHARGE_DIVISOR);
}

/** What the bill charges for a million tokens, rounded half to even; the quantity must be positive. */
export function billedRate(amountPico: Pico, quantity: bigint): Pico {
  return divideHalfEven(amountPico * CHARGE_DIVISOR, quantity);
}

/**
 * Splits a whole into parts by weights so that the parts sum to it exactly (largest remainder, earlier part first).
 * Weights from 0; all zero: everything goes to the first.
 */
export function apportion(whole: bigint, weights: readonly bigint[]): bigint[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0n);
  if (weights.length === 0) return [];
  if (total === 0n) return weights.map((_, at) => (at === 0 ? whole : 0n));
  const negative = whole < 0n;
  const size = negative ? -whole : whole;
  const parts = weights.map((weight, at) => ({
    at,
    part: (size * weight) / total,
    rest: (size * weight) % total,
  }));
  let left = size - parts.reduce((sum, { part }) => sum + part, 0n);
  for (const entry of [...parts].sort((a, b) =>
    a.rest === b.rest ? a.at - b.at : a.rest > b.rest ? -1 : 1,
  )) {
    if (left === 0n) break;
    entry.part += 1n;
    left -= 1n;
  }
  return parts.map(({ part }) => (negative ? -part : part));
}
