/** Lays imported prices over the shipped list, each over the prices at the time of its import (docs/decisions/0007). */
import type { Pico } from '../money.js';
import type { Provider } from '../providers.js';
import type { PriceCollection } from './imports/collection.js';
import { layBook } from './layBook.js';
import type { PriceBook } from './priceBook.js';
import type { EnteredModel, PriceMode, PriceTier, RateClass, RecordedPriceModel } from './pricedModel.js';
import type { PriceStatement } from './priceStatement.js';

/** The entry of a model that only an import contains. */
export interface ImportedEntry {
  readonly canonicalFamily: string;
  readonly mode: PriceMode;
  readonly firstParty: boolean;
  readonly contextWindow: number | null;
}

/** An import's prices of a model: only those that differed from the prices in force. */
export interface ImportedPrice {
  /** uuid */
  readonly id: string;
  readonly provider: Provider;
  readonly model: string;
  readonly rates: Readonly<Partial<Record<RateClass, Pico>>>;
  readonly batchMultiplier: bigint | null;
  readonly tiers: readonly PriceTier[];
  readonly entry: ImportedEntry;
}

export interface PriceImport {
  /** uuid */
  readonly id: string;
  readonly source: PriceCollection;
  readonly filename: string;
  readonly fileSha256: string;
  /** The day on which the file was fetched, `YYYY-MM-DD`; its prices are those of that day. */
  readonly retrievedOn: string;
  /** First UTC day of its prices. */
  readonly effectiveFrom: string;
  readonly importedAtMicros: bigint;
  readonly prices: readonly ImportedPrice[];
}

/**
 * The list with imports in order. An import older than the list's last change of a model (`periodsAsOf`) is
 * skipped.
 */
export function bookWithImports(
  list: PriceBook,
  imports: readonly PriceImport[],
  periodsAsOf: (entry: RecordedPriceModel) => string,
): PriceBook {
  return imports.reduce((book, one) => {
    const statements = one.prices.flatMap((price) => statementOf(list, one, price, periodsAsOf) ?? []);
    return statements.length === 0 ? book : layBook(book, statements, list.state);
  }, list);
}

function statementOf(
  list: PriceBook,
  one: PriceImport,
  price: ImportedPrice,
  periodsAsOf: (entry: RecordedPriceModel) => string,
): PriceStatement | undefined {
  const listed = list.entryNamed(price.provider, price.model);
  if (listed && periodsAsOf(listed.entry) > one.retrievedOn) return undefined;
  return {
    id: price.id,
    kind: 'import',
    provider: price.provider,
    model: price.model,
    terms: {
      rates: price.rates,
      tiers: price.tiers,
      ...(price.batchMultiplier === null ? {} : { batchMultiplier: price.batchMultiplier }),
    },
    fromDay: one.effectiveFrom,
    toDay: listed ? nextChange(listed, one.effectiveFrom) : null,
    order: 0,
    sourceName: one.source,
    recordedAtMicros: one.importedAtMicros,
    proof: null,
    newEntry: entryOf(one, price),
  };
}

/** A later change that the list announces stays, since a collection contains only the prices of its day. */
function nextChange({ periods }: EnteredModel, day: string): string | null {
  const later = periods.flatMap(({ version }) =>
    version.effectiveFrom !== null && version.effectiveFrom > day ? [version.effectiveFrom] : [],
  );
  return later.sort()[0] ?? null;
}

function entryOf(one: PriceImport, { provider, model, entry }: ImportedPrice): RecordedPriceModel {
  return {
    provider,
    model,
    ...entry,
    aliases: [],
    agreement: 'single_source',
    facts: {
      asOf: one.retrievedOn,
      dissent: [],
      conflicts: [],
      notes: [`only ${one.source} lists it, in a file of ${one.retrievedOn}`],
      regionalMultipliers: {},
      variants: {},
      sources: {},
    },
    updatedAtMicros: one.importedAtMicros,
  };
}
