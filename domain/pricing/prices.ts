/**
 * List prices as the product keeps them: entries (a model at a provider, with its other ids) and their price
 * periods. Rates are pico-dollars per million tokens; null means "not known", never free.
 */
import type { Pico } from '../money.js';
import type { Provider } from '../providers.js';

/** Everything that a price list can name a rate for. The last two are kept and shown; no call is priced by them. */
export const RATE_CLASSES = [
  'input',
  'output',
  'cache_read',
  'cache_write_5m',
  'cache_write_1h',
  'input_audio',
  'output_audio',
  'cache_write_12h',
  'cache_read_audio',
] as const;
export type RateClass = (typeof RATE_CLASSES)[number];

/**
 * Highest rate that is taken from people and collections, a hundred times the dearest there is: a call of the most tokens
 * that an event can have then still costs less than can be stored.
 */
export const RATE_PER_MTOK_USD_MAX = 100_000;

export type Rates = Readonly<Record<RateClass, Pico | null>>;

/** How far the sources of a price agree (data/README.md). */
export const AGREEMENTS = ['agree', 'single_source', 'disagree'] as const;
export type Agreement = (typeof AGREEMENTS)[number];

/** The word for a price that an organization gave itself: no source has to agree with it. */
export const OWN_AGREEMENTS = ['override', 'contract'] as const;
export type PriceAgreement = Agreement | (typeof OWN_AGREEMENTS)[number];

export const PRICE_MODES = ['chat', 'embedding'] as const;
export type PriceMode = (typeof PRICE_MODES)[number];

/** Rates of one period that hold for a service tier, for long requests, or for both. */
export interface PriceTier {
  /** Null: the standard service. */
  readonly serviceTier: string | null;
  /** The tier holds for requests whose whole input exceeds this many tokens; null: for any length. */
  readonly aboveInputTokens: number | null;
  readonly rates: Rates;
  /** The day on which a source read this tier's rates, `YYYY-MM-DD`; it is no price change. */
  readonly checkedOn: string | null;
}

/** What a price period says, before it has an id and a time of recording. */
export interface PricePeriod {
  /** First UTC day, inclusive, `YYYY-MM-DD`; null: the oldest price known, with no known beginning. */
  readonly effectiveFrom: string | null;
  /** First UTC day on which it no longer holds; null: still in force. */
  readonly effectiveTo: string | null;
  readonly rates: Rates;
  /** Batch rate ÷ standard rate as the sources give it, scaled by 1e12; null when none lists batch rates. */
  readonly batchMultiplier: bigint | null;
  readonly tiers: readonly PriceTier[];
  /** The sources that list these rates, by their keys, separated by a comma and a space. */
  readonly source: string;
}

/** A recorded price period: append-only, so what it said at a time can be shown later. */
export interface PriceVersion extends PricePeriod {
  /** uuid */
  readonly id: string;
  readonly provider: Provider;
  readonly model: string;
  readonly recordedAtMicros: bigint;
}

/** One model at one provider. */
export interface PriceModel {
  readonly provider: Provider;
  /** The provider's own id. */
  readonly model: string;
  /** The id without date, region and vendor; the same at every provider. */
  readonly canonicalFamily: string;
  /** Other ids of the same provider with the same price. */
  readonly aliases: readonly string[];
  readonly mode: PriceMode;
  /** The provider makes the model or runs it under its own list. */
  readonly firstParty: boolean;
  /** Tokens; null when unknown. */
  readonly contextWindow: number | null;
  readonly agreement: Agreement;
  readonly facts: PriceFacts;
}

/** A PriceModel as stored. */
export interface RecordedPriceModel extends PriceModel {
  /** When anything but the rates last changed. */
  readonly updatedAtMicros: bigint;
}

/** What else the price data says about an entry: shown with a price, never used to compute a cost. */
export interface PriceFacts {
  /** The day that the facts describe, `YYYY-MM-DD`: `sources` are what each listed then. */
  readonly asOf: string;
  /** Sources that contradict the price that the majority gives. */
  readonly dissent: readonly string[];
  /** Other classes on which consistent sources differ by more than 1 %. */
  readonly conflicts: readonly string[];
  readonly notes: readonly string[];
  readonly regionalMultipliers: Readonly<Record<string, number>>;
  readonly variants: Readonly<Record<string, unknown>>;
  /** By source key: rates in USD per million tokens, and tiers under keys like `batch` or `above_200000`. */
  readonly sources: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** True when a source contradicts the price: no claim that counts as certain may rest on it. */
export function isDisputed(model: PriceModel): boolean {
  return model.agreement === 'disagree' || model.facts.dissent.length > 0;
}
