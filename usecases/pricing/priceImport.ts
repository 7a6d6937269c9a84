import type { Database } from '../../db/client.js';
import { type SystemDb, unscoped } from '../../db/orgDb.js';
import {
  beginPriceChange,
  insertPriceImport,
  listPriceImportIds,
  listPriceImports,
  listRecordedModels,
  loadPriceBook,
  recordPriceState,
} from '../../db/pricing/prices.js';
import { newUuid } from '../../domain/ids.js';
import type { ImportedPrice, PriceImport } from '../../domain/pricing/importedPrices.js';
import type { ListedCollection } from '../../domain/pricing/imports/collection.js';
import {
  type CollectionDifferences,
  compareCollection,
  type ModelDifference,
} from '../../domain/pricing/imports/differences.js';
import type { PriceState } from '../../domain/pricing/priceBook.js';
import { priceVersionName } from '../../domain/pricing/priceFile.js';
import type { Provider } from '../../domain/providers.js';
import { priceContentHash } from './priceSeed.js';

const WHY = 'list prices belong to no organization';

export interface PriceImportOptions {
  readonly collection: ListedCollection;
  readonly filename: string;
  readonly fileSha256: string;
  /** The day on which the file was fetched, `YYYY-MM-DD`. */
  readonly retrievedOn: string;
  /** First UTC day of the new prices. */
  readonly effectiveFrom: string;
  readonly provider: Provider | undefined;
}

/** The changes of an import, and the prices that it was compared with. */
export interface PriceImportPreview {
  readonly differences: CollectionDifferences;
  readonly state: PriceState;
}

/** Compares a collection with the prices in force; stores nothing. */
export async function previewPriceImport(
  database: Database,
  options: PriceImportOptions,
): Promise<PriceImportPreview> {
  const book = await loadPriceBook(database);
  const known = await knownPriceDays(database);
  const differences = compareCollection(options.collection, book, {
    day: options.effectiveFrom,
    retrievedOn: options.retrievedOn,
    provider: options.provider,
    knownAsOf: (provider, model) => known.get(`${provider}\n${model}`),
  });
  return { differences, state: book.state };
}

/** The date of each model's price: that of the list that changed it, or of a later import. */
export function knownPriceDays(database: Database): Promise<ReadonlyMap<string, string>> {
  return unscoped(database, WHY, knownDays);
}

async function knownDays(system: SystemDb): Promise<Map<string, string>> {
  const days = new Map<string, string>();
  for (const { provider, model, withdrawn, periodsAsOf } of await listRecordedModels(system))
    if (!withdrawn) days.set(`${provider}\n${model}`, periodsAsOf);
  for (const { retrievedOn, prices } of await listPriceImports(system)) {
    for (const { provider, model } of prices) {
      const key = `${provider}\n${model}`;
      if (retrievedOn > (days.get(key) ?? '')) days.set(key, retrievedOn);
    }
  }
  return days;
}

/**
 * Appends the previewed prices; every process uses them within seconds. Returns the version of the present prices;
 * undefined: the prices have changed since the preview and nothing was stored.
 */
export async function storePriceImport(
  database: Database,
  options: PriceImportOptions,
  preview: PriceImportPreview,
  taken: readonly ModelDifference[],
): Promise<string | undefined> {
  return unscoped(database, WHY, async (system) => {
    const change = await beginPriceChange(system);
    const { state } = change;
    const same =
      state?.updatedAtMicros === preview.state.updatedAtMicros &&
      state.contentHash === preview.state.contentHash;
    if (!state || !same) return undefined;
    const newId = () => newUuid(change.atMicros);
    const one: PriceImport = {
      id: newId(),
      source: options.collection.source,
      filename: options.filename,
      fileSha256: options.fileSha256,
      retrievedOn: options.retrievedOn,
      effectiveFrom: options.effectiveFrom,
      importedAtMicros: change.atMicros,
      prices: taken.map((difference) => priceOf(newId(), difference)),
    };
    await insertPriceImport(system, one);
    const contentHash = priceContentHash(state.listContentHash, await listPriceImportIds(system));
    await recordPriceState(system, { ...state, contentHash, updatedAtMicros: change.atMicros });
    return priceVersionName(change.atMicros, contentHash);
  });
}

function priceOf(id: string, { listed, news, entry }: ModelDifference): ImportedPrice {
  return { id, provider: listed.provider, model: listed.model, ...news, entry };
}
