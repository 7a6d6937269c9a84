import type { TokenClass } from '../events/event.js';
import { type Pico, picoFromNumber } from '../money.js';
import type { LaidPrice, PricedModel } from './pricedModel.js';
import { givesRate } from './priceStatement.js';
import type { RateClass } from './prices.js';
import { type ClassRate, cardOfBand, type RateCard, STANDARD_TIER } from './rateCards.js';

/**
 * The sources that list exactly the rate of a class, by their keys in data/README.md. Empty for a rate that is derived
 * or assumed. What the sources list is kept for the day of the list only; every other period comes from the one
 * source that dates its prices.
 */
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

/** A rate that a statement left as it was has the sources that it had; any other is the statement's. */
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

/** Where a source's object keeps a tier; '' is the object itself. */
export function sourceKey(tier: string, band: number): string {
  const above = band === 0 ? [] : [`above_${band}`];
  return [...(tier === STANDARD_TIER ? [] : [tier]), ...above].join('_');
}

function standardKeys(band: number): string[] {
  return band === 0 ? [''] : [sourceKey(STANDARD_TIER, band), ''];
}

/** What a source's object lists for a class; `key` as `sourceKey` makes it. */
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
