import { absPico, divideHalfEven } from '../money.js';
import type { Scaled } from './invoiceReading.js';
import { halfUnit, isWithin, ONE, SCALE } from './reading/printedNumber.js';

/** Units of a unit price: one, or thousands and millions of tokens, hundreds. */
const PRICE_UNITS: readonly bigint[] = [1n, 1_000n, 1_000_000n, 100n, 10_000n];

/** A unit price with at least this many decimals may be rounded. */
const FINE_DECIMALS = 3;
/** Rounded prices and quantities explain at most one hundredth of an amount. */
const ROUNDED_SHARE = 100n;

export interface Factor {
  value: Scaled;
  decimals: number;
}

export interface Product {
  /** Units of the price: 1, 1 000, 1 000 000 … */
  per: bigint;
  /** The exact product. */
  value: Scaled;
  /** A started package is charged in full. */
  isPackage: boolean;
}

/** Quantity × unit price for this price unit. */
export function productOf(quantity: Scaled, unitPrice: Scaled, per = 1n): Scaled {
  return divideHalfEven(quantity * unitPrice, ONE * per);
}

/**
 * Explains an amount as quantity × unit price. The price may refer to a thousand or a million units, or to a package that
 * is charged in full. Undefined if no product fits.
 */
export function findProduct(
  quantity: Factor,
  unitPrice: Factor,
  amount: Factor,
  statedPer: bigint | null,
  isRounded = true,
): Product | undefined {
  const units = statedPer === null ? PRICE_UNITS : [statedPer, 1n];
  for (const per of units) {
    const value = productOf(quantity.value, unitPrice.value, per);
    const tolerance = toleranceOf(quantity, unitPrice, amount, isRounded ? per : null);
    // A few units at a price for many of them are a coincidence, unless the document states the unit.
    if (per > 1n && statedPer === null && absPico(quantity.value) < (per * ONE) / 10n) continue;
    if (isWithin(amount.value - value, tolerance)) return { per, value, isPackage: false };
  }
  if (statedPer !== null && statedPer > 1n) {
    const size = statedPer * ONE;
    const packages = (absPico(quantity.value) + size - 1n) / size;
    const value = packages * unitPrice.value * (quantity.value < 0n ? -1n : 1n);
    if (isWithin(amount.value - value, halfUnit(amount.decimals)))
      return { per: statedPer, value, isPackage: true };
  }
  return undefined;
}

/** Tolerance from the printed decimals of quantity, price and amount. */
function toleranceOf(quantity: Factor, unitPrice: Factor, amount: Factor, per: bigint | null): Scaled {
  const own = halfUnit(Math.max(amount.decimals, 0));
  if (per === null) return own;
  const ofPrice =
    unitPrice.decimals >= FINE_DECIMALS
      ? productOf(absPico(quantity.value), halfUnit(Math.min(unitPrice.decimals, SCALE)), per)
      : 0n;
  const ofQuantity =
    quantity.decimals > 0
      ? productOf(halfUnit(Math.min(quantity.decimals, SCALE)), absPico(unitPrice.value), per)
      : 0n;
  const rounded = ofPrice + ofQuantity;
  const cap = absPico(amount.value) / ROUNDED_SHARE;
  return own + (rounded < cap ? rounded : cap);
}

const PER =
  /(?:\/|\bper\b|\bpro\b|\bpar\b|\beach\b|\bà)\s*(?:(1[.,]?000[.,]?000|100[.,]?000|10[.,]?000|1[.,]?000|100|10|1)(?![.,]?\d)\s?)?(k|m|mm|mio\.?|million|thousand|mtok|ktok|mille)?(?![\p{L}\d])(?:\s*(?:input|output|cached)?\s*(tokens?|tok|units?|requests?|calls?|credits?))?/iu;
const SIZE_WORDS: Readonly<Record<string, bigint>> = {
  k: 1_000n,
  ktok: 1_000n,
  thousand: 1_000n,
  mille: 1_000n,
  m: 1_000_000n,
  mm: 1_000_000n,
  mio: 1_000_000n,
  million: 1_000_000n,
  mtok: 1_000_000n,
};

/** Units of a price in a text such as `$2.50 / 1M tokens` or `per 1,000 units`; null without them. */
export function statedUnitsOf(text: string): bigint | null {
  const match = PER.exec(text);
  if (!match) return null;
  const [, count, word] = match;
  if (count === undefined && word === undefined) return null;
  const times = count === undefined ? 1n : BigInt(count.replace(/[.,]/g, ''));
  return times * (word === undefined ? 1n : (SIZE_WORDS[word.toLowerCase().replace('.', '')] ?? 1n));
}
