import type { Pico } from '../money.js';
import type { Provider } from '../providers.js';
import { layBook } from './layBook.js';
import type { PriceBook, PriceState } from './priceBook.js';
import type { PriceStatement, PriceTerms } from './priceStatement.js';

/** The organization's own prices: what it agreed with a provider, and list prices that it knows better. */
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

/** Where an agreed price can be read. */
export interface OwnPriceSource {
  readonly document: string;
  readonly clause: string | null;
  readonly url: string | null;
}

/** An own price as it was entered; nothing of it ever changes, it can only end. */
export interface OwnPrice {
  /** uuid */
  readonly id: string;
  readonly kind: OwnPriceKind;
  readonly provider: Provider;
  /** A model id, a family, or ALL_MODELS. */
  readonly model: string;
  /** Percent, scaled by 1e12; null where rates are given. */
  readonly discountPercent: bigint | null;
  /** Pico-dollars per million tokens; null where a discount is given. */
  readonly rates: Readonly<Partial<Record<OwnRateClass, Pico>>> | null;
  /** Batch rate ÷ standard rate, scaled by 1e12. */
  readonly batchMultiplier: bigint | null;
  /** First UTC day, `YYYY-MM-DD`. */
  readonly effectiveFrom: string;
  /** First UTC day on which it no longer holds; null: open. */
  readonly effectiveTo: string | null;
  readonly source: OwnPriceSource | null;
  /** The organization's count of changes to its own prices when it was entered: the later has the higher. */
  readonly revision: number;
  readonly createdAtMicros: bigint;
  readonly createdBy: string;
  /** First UTC day from which it was taken back; null: it was not. */
  readonly endsOn: string | null;
  readonly endedAtMicros: bigint | null;
}

/** First UTC day on which it no longer holds, by its own words or since it was ended; null: open. */
export function endOfOwnPrice(price: OwnPrice): string | null {
  const { effectiveTo, endsOn } = price;
  if (effectiveTo === null || endsOn === null) return effectiveTo ?? endsOn;
  return endsOn < effectiveTo ? endsOn : effectiveTo;
}

/** What an own price makes of a listed one. */
export function termsOf(price: Pick<OwnPrice, 'discountPercent' | 'rates' | 'batchMultiplier'>): PriceTerms {
  if (price.discountPercent !== null) return { discountPercent: price.discountPercent };
  return {
    rates: price.rates ?? {},
    ...(price.batchMultiplier === null ? {} : { batchMultiplier: price.batchMultiplier }),
  };
}

/** Overrides over the list, the contract over both; the book without the contract is its `list`. */
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
