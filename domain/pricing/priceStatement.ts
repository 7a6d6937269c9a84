import type { TokenClass } from '../events/event.js';
import { divideHalfEven, type Pico, picoFromNumber } from '../money.js';
import type { Provider } from '../providers.js';
import {
  type LaidPrice,
  type PricedModel,
  type PricePeriod,
  type PriceTier,
  RATE_CLASSES,
  type RateClass,
  type Rates,
  type RecordedPriceModel,
} from './pricedModel.js';
import { BATCH_TIER, type ClassRate, cardOfBand, type RateCard, STANDARD_TIER } from './rateCards.js';

/** A price statement over the list: import, override or contract (docs/decisions/0007; layBook.ts). */

/** Stands for all models of the provider. */
export const ALL_MODELS = '*';

export type StatementKind = 'import' | 'override' | 'contract';

/** The change that a statement makes to the price below it. */
export type PriceTerms =
  | {
      /** Percent off every rate of every tier and length, scaled by 1e12; above 0, below 100. */
      readonly discountPercent: bigint;
    }
  | {
      /** Rates that replace the listed ones; other classes keep theirs. */
      readonly rates: Readonly<Partial<Record<RateClass, Pico>>>;
      /** Batch rate ÷ standard rate, scaled by 1e12; replaces listed batch rates. */
      readonly batchMultiplier?: bigint;
      /** Rates of other tiers and lengths that replace listed ones; imports and overrides contain them. */
      readonly tiers?: readonly PriceTier[];
    };

export interface PriceStatement {
  /** uuid */
  readonly id: string;
  readonly kind: StatementKind;
  readonly provider: Provider;
  /** A model id, a family, or ALL_MODELS. */
  readonly model: string;
  readonly terms: PriceTerms;
  /** First UTC day, inclusive, `YYYY-MM-DD`. */
  readonly fromDay: string;
  /** First UTC day after its end; null: it has no end. */
  readonly toDay: string | null;
  /** Later statements have a higher order; unique within a layer. */
  readonly order: number;
  /** The source: `contract`, `override`, or the key of a price collection. */
  readonly sourceName: string;
  readonly recordedAtMicros: bigint;
  /** The document of the price; null: unknown. */
  readonly proof: {
    readonly document: string;
    readonly clause: string | null;
    readonly url: string | null;
  } | null;
  /** The entry to create if the book has none for the model; default: one with the id only. */
  readonly newEntry?: RecordedPriceModel;
}

const PERCENT_SCALE = 1_000_000_000_000n;
const WHOLE_PERCENT = 100n * PERCENT_SCALE;

/** A rate less a discount, rounded half to even to 1e-12 dollars per million tokens. */
export function discounted(rate: Pico, discountPercent: bigint): Pico {
  return divideHalfEven(rate * (WHOLE_PERCENT - discountPercent), WHOLE_PERCENT);
}

type Prices = Pick<PricePeriod, 'rates' | 'batchMultiplier' | 'tiers'>;

/** A period under a statement's terms; undefined: no price results. */
export function applyTerms(terms: PriceTerms, base: Prices | null): Prices | undefined {
  if ('discountPercent' in terms) return base ? discountAll(base, terms.discountPercent) : undefined;
  const rates = ratesOf((name) => terms.rates[name] ?? base?.rates[name] ?? null);
  if (rates.input === null || rates.output === null) return undefined;
  const kept = (base?.tiers ?? []).filter(
    (tier) =>
      !(terms.batchMultiplier !== undefined && tier.serviceTier === BATCH_TIER) &&
      !terms.tiers?.some((own) => isSameTier(own, tier)),
  );
  return {
    rates,
    batchMultiplier: terms.batchMultiplier ?? base?.batchMultiplier ?? null,
    tiers: [...kept, ...(terms.tiers ?? [])],
  };
}

function discountAll(base: Prices, discountPercent: bigint): Prices {
  const less = (rates: Rates) =>
    ratesOf((name) => {
      const rate = rates[name];
      return rate === null ? null : discounted(rate, discountPercent);
    });
  return {
    rates: less(base.rates),
    // The batch factor applies to rates that are already discounted.
    batchMultiplier: base.batchMultiplier,
    tiers: base.tiers.map((tier) => ({ ...tier, rates: less(tier.rates) })),
  };
}

function isSameTier(a: PriceTier, b: PriceTier): boolean {
  return a.serviceTier === b.serviceTier && a.aboveInputTokens === b.aboveInputTokens;
}

function ratesOf(rateOf: (name: RateClass) => Pico | null): Rates {
  return Object.fromEntries(RATE_CLASSES.map((name) => [name, rateOf(name)])) as Record<
    RateClass,
    Pico | null
  >;
}

/** Whether a statement sets the class's rate, so that the sources of the listed rate do not matter. */
export function givesRate(terms: PriceTerms, name: RateClass): boolean {
  return 'rates' in terms && terms.rates[name] !== undefined;
}

/** Sources that list exactly this rate (keys of data/README.md); none for a derived or assumed one. */
export function sourcesOfRate(
  priced: PricedModel,
  card: RateCard,
  kind: TokenClass,
  { rate, basis }: ClassRate,
): readonly string[] {
  if (basis !== 'listed' && basis !== 'standard_rate') return [];
  if (priced.laid) return sourcesUnder(priced, priced.laid, card, kind, rate);
  const { asOf, sources } = priced.entry.facts;
  const { effectiveFrom, effectiveTo, source } = priced.version;
  const described =
    (effectiveFrom === null || effectiveFrom <= asOf) && (effectiveTo === null || effectiveTo > asOf);
  if (!described) return source.split(', ');
  const keys = basis === 'listed' ? [sourceKey(card.tier, card.band)] : standardKeys(card.band);
  return Object.keys(sources)
    .filter((name) => keys.some((key) => listedRate(sources[name] ?? {}, key, kind) === rate))
    .sort();
}

/** An unchanged rate keeps its sources; any other rate has the statement as its source. */
function sourcesUnder(
  { version }: PricedModel,
  { statement, base }: LaidPrice,
  card: RateCard,
  kind: TokenClass,
  rate: Pico,
): readonly string[] {
  const cards = base?.cards.get(card.tier);
  const before = cards && cardOfBand(cards, card.band);
  const same = before?.band === card.band && before.classes[kind].rate === rate;
  if (!base || !same || givesRate(statement.terms, kind)) return [version.source];
  return sourcesOfRate(base, before, kind, before.classes[kind]);
}

/** The key of a tier in a source's object; '': the object itself. */
export function sourceKey(tier: string, band: number): string {
  const above = band === 0 ? [] : [`above_${band}`];
  return [...(tier === STANDARD_TIER ? [] : [tier]), ...above].join('_');
}

function standardKeys(band: number): string[] {
  return band === 0 ? [''] : [sourceKey(STANDARD_TIER, band), ''];
}

/** The rate of a class in a source's object; `key` as `sourceKey` returns it. */
export function listedRate(
  source: Readonly<Record<string, unknown>>,
  key: string,
  kind: RateClass,
): Pico | undefined {
  const rates = key === '' ? source : source[key];
  if (typeof rates !== 'object' || rates === null) return undefined;
  const value = (rates as Readonly<Record<string, unknown>>)[kind];
  return typeof value === 'number' ? picoFromNumber(value) : undefined;
}
