import type { Pico } from '../money.js';
import type { Provider } from '../providers.js';
import { layBook } from './layBook.js';
import type { PriceBook, PriceState } from './priceBook.js';
import type { PriceTier } from './pricedModel.js';
import type { PriceStatement, PriceTerms } from './priceStatement.js';

/** The organization's own prices: contract rates with a provider, and overrides of list prices. */
export const OWN_PRICE_KINDS = ['contract', 'override'] as const;
export type OwnPriceKind = (typeof OWN_PRICE_KINDS)[number];

/** The classes that an own price can name. */
export const OWN_RATE_CLASSES = [
  'input',
  'output',
  'cache_read',
  'cache_write_5m',
  'cache_write_1h',
] as const;
export type OwnRateClass = (typeof OWN_RATE_CLASSES)[number];

/** The document with an agreed price. */
export interface OwnPriceSource {
  readonly document: string;
  readonly clause: string | null;
  readonly url: string | null;
}

/** An own price as entered. It never changes; it can only be ended. */
export interface OwnPrice {
  /** uuid */
  readonly id: string;
  readonly kind: OwnPriceKind;
  readonly provider: Provider;
  /** A model id, a family, or ALL_MODELS. */
  readonly model: string;
  /** Percent, scaled by 1e12; null: the price has rates instead. */
  readonly discountPercent: bigint | null;
  /** Pico-dollars per million tokens; null: the price has a discount instead. */
  readonly rates: Readonly<Partial<Record<OwnRateClass, Pico>>> | null;
  /** Batch rate ÷ standard rate, scaled by 1e12. */
  readonly batchMultiplier: bigint | null;
  /** Rates of other tiers and lengths that replace listed ones; absent: none. */
  readonly tiers?: readonly PriceTier[];
  /** First UTC day, `YYYY-MM-DD`. */
  readonly effectiveFrom: string;
  /** First UTC day after its end; null: it has no end. */
  readonly effectiveTo: string | null;
  readonly source: OwnPriceSource | null;
  /**
   * The organization's count of changes to its own prices when this one was entered; later prices have higher
   * counts.
   */
  readonly revision: number;
  readonly createdAtMicros: bigint;
  readonly createdBy: string;
  /** First UTC day from which it was ended by hand; null: it was not. */
  readonly endsOn: string | null;
  readonly endedAtMicros: bigint | null;
}

/** First UTC day without the price, by its terms or because it was ended; null: it has no end. */
export function endOfOwnPrice(price: OwnPrice): string | null {
  const { effectiveTo, endsOn } = price;
  if (effectiveTo === null || endsOn === null) return effectiveTo ?? endsOn;
  return endsOn < effectiveTo ? endsOn : effectiveTo;
}

/** The statement's terms of an own price. */
export function termsOf(
  price: Pick<OwnPrice, 'discountPercent' | 'rates' | 'batchMultiplier' | 'tiers'>,
): PriceTerms {
  if (price.discountPercent !== null) return { discountPercent: price.discountPercent };
  return {
    rates: price.rates ?? {},
    ...(price.batchMultiplier === null ? {} : { batchMultiplier: price.batchMultiplier }),
    ...(price.tiers?.length ? { tiers: price.tiers } : {}),
  };
}

/** Lays overrides over the list and the contract over both; `list` of the result is the book without the contract. */
export function bookWithOwnPrices(
  list: PriceBook,
  prices: readonly OwnPrice[],
  state: PriceState,
): PriceBook {
  const statements = (kind: OwnPriceKind) =>
    prices.filter((price) => price.kind === kind && holdsEver(price)).map(statementOf);
  const overrides = statements('override');
  const contract = statements('contract');
  const listed = overrides.length === 0 ? list : layBook(list, overrides, state);
  return contract.length === 0 ? listed : layBook(listed, contract, state, listed);
}

function holdsEver(price: OwnPrice): boolean {
  const end = endOfOwnPrice(price);
  return end === null || end > price.effectiveFrom;
}

function statementOf(price: OwnPrice): PriceStatement {
  return {
    id: price.id,
    kind: price.kind,
    provider: price.provider,
    model: price.model,
    terms: termsOf(price),
    fromDay: price.effectiveFrom,
    toDay: endOfOwnPrice(price),
    order: price.revision,
    sourceName: price.kind,
    recordedAtMicros: price.createdAtMicros,
    proof: price.source,
  };
}

export const OWN_ID_KINDS = { contract: 'ctr', override: 'ovr' } as const satisfies Record<
  OwnPriceKind,
  string
>;
