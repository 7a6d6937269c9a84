import { microsOfDay } from '../period.js';
import type { PriceStatement } from './priceStatement.js';
import { isDisputed, type PriceAgreement, type PriceVersion, type RecordedPriceModel } from './prices.js';
import { cardsOf, type PeriodCards } from './rateCards.js';

/** How an id led to its entry: as listed, by the base of a fine-tuned model, or by its family having one price. */
export type MatchedBy = 'exact' | 'fine_tuned' | 'family';

/** A price in force: the entry, its period, and the rates worked out from it. */
export interface PricedModel {
  readonly entry: RecordedPriceModel;
  readonly version: PriceVersion;
  readonly matchedBy: MatchedBy;
  readonly cards: PeriodCards;
  /** First microsecond at which it holds; null: as far back as is known. */
  readonly fromMicros: bigint | null;
  /** First microsecond at which it no longer holds; null: in force. */
  readonly toMicros: bigint | null;
  /** How far its sources agree, or whose own price it is. */
  readonly agreement: PriceAgreement;
  /** A source contradicts it: no claim that counts as certain may rest on it. */
  readonly disputed: boolean;
  /** What was laid over the listed price to make it: an import, an override or a contract; undefined for a listed one. */
  readonly laid?: LaidPrice;
}

/** A statement in force, and the price before it; null where there was none. */
export interface LaidPrice {
  readonly statement: PriceStatement;
  readonly base: PricedModel | null;
}

/** An entry with its periods, oldest first. */
export interface EnteredModel {
  readonly entry: RecordedPriceModel;
  readonly periods: readonly PricedModel[];
}

/** The price of a stored period. */
export function priceWith(entry: RecordedPriceModel, version: PriceVersion): PricedModel {
  return {
    entry,
    version,
    matchedBy: 'exact',
    cards: cardsOf(entry.provider, version),
    fromMicros: version.effectiveFrom === null ? null : microsOfDay(version.effectiveFrom),
    toMicros: version.effectiveTo === null ? null : microsOfDay(version.effectiveTo),
    agreement: entry.agreement,
    disputed: isDisputed(entry),
  };
}

/** Prices as an id that is not listed itself finds them. */
export function matchedAs(priced: readonly PricedModel[], matchedBy: MatchedBy): PricedModel[] {
  return priced.map((one) => ({ ...one, matchedBy }));
}

/** Whether a price is in force at a time. */
export function holdsAt(priced: PricedModel, atMicros: bigint): boolean {
  return (
    (priced.fromMicros === null || atMicros >= priced.fromMicros) &&
    (priced.toMicros === null || atMicros < priced.toMicros)
  );
}

/** Two entries have one price when every rate of every period is the same. */
export function samePrice(left: readonly PricedModel[], right: readonly PricedModel[]): boolean {
  return (
    left.length === right.length && left.every((one, index) => priceText(one) === priceText(right[index]))
  );
}

function priceText(priced: PricedModel | undefined): string {
  if (!priced) return '';
  const { effectiveFrom, effectiveTo, rates, batchMultiplier, tiers } = priced.version;
  const plain = [
    effectiveFrom,
    effectiveTo,
    rates,
    batchMultiplier,
    tiers.map(({ checkedOn: _, ...tier }) => tier),
  ];
  return JSON.stringify(plain, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}
