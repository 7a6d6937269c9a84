/** Imports of public price collections; like the list they belong to no organization. */
import type { Pico } from '../../domain/money.js';
import { decimalFromPico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { ImportedEntry, ImportedPrice, PriceImport } from '../../domain/pricing/importedPrices.js';
import type { PriceCollection } from '../../domain/pricing/imports/collection.js';
import { RATE_CLASSES, type RateClass } from '../../domain/pricing/prices.js';
import type { Provider } from '../../domain/providers.js';
import type { SystemDb } from '../orgDb.js';
import { decimalOf, fromStoredTier, type StoredTier, tierJson } from './priceChanges.js';

interface ImportRow {
  id: string;
  source: PriceCollection;
  filename: string;
  file_sha256: string;
  retrieved_on: string;
  effective_from: string;
  imported_at: bigint;
}

type ImportedPriceRow = Record<RateClass, Pico | null> & {
  id: string;
  import_id: string;
  provider: Provider;
  model: string;
  batch_multiplier: bigint | null;
  tiers: StoredTier[];
  entry: ImportedEntry;
};

/** All imports with what they say, in the order in which they were made. */
export async function listPriceImports(system: SystemDb): Promise<PriceImport[]> {
  const imports = await system.rows<ImportRow>(
    'select id, source, filename, file_sha256, retrieved_on, effective_from, imported_at from price_imports order by ordinal',
  );
  if (imports.length === 0) return [];
  const prices = await system.rows<ImportedPriceRow>(
    `select id, import_id, provider, model, ${RATE_CLASSES.join(', ')}, batch_multiplier, tiers, entry from imported_prices
     order by provider, model`,
  );
  const byImport = new Map<string, ImportedPrice[]>(imports.map((row) => [row.id, []]));
  for (const row of prices) byImport.get(row.import_id)?.push(fromImportedPriceRow(row));
  return imports.map((row) => ({
    id: row.id,
    source: row.source,
    filename: row.filename,
    fileSha256: row.file_sha256,
    retrievedOn: row.retrieved_on,
    effectiveFrom: row.effective_from,
    importedAtMicros: row.imported_at,
    prices: byImport.get(row.id) ?? [],
  }));
}

function fromImportedPriceRow(row: ImportedPriceRow): ImportedPrice {
  const rates: Partial<Record<RateClass, Pico>> = {};
  for (const name of RATE_CLASSES) {
    const rate = row[name];
    if (rate !== null) rates[name] = rate;
  }
  return {
    id: row.id,
    provider: row.provider,
    model: row.model,
    rates,
    batchMultiplier: row.batch_multiplier,
    tiers: row.tiers.map(fromStoredTier),
    entry: row.entry,
  };
}

/** The ids of all imports in their order: with the list they name the prices that hold. */
export async function listPriceImportIds(system: SystemDb): Promise<string[]> {
  const rows = await system.rows<{ id: string }>('select id from price_imports order by ordinal');
  return rows.map((row) => row.id);
}

/** Appends an import; the caller holds the lock on price changes. */
export async function insertPriceImport(system: SystemDb, one: PriceImport): Promise<void> {
  await system.run(
    `insert into price_imports (id, ordinal, source, filename, file_sha256, retrieved_on, effective_from, imported_at)
     select $1, coalesce(max(ordinal), 0) + 1, $2, $3, $4, $5, $6, $7 from price_imports`,
    [
      one.id,
      one.source,
      one.filename,
      one.fileSha256,
      one.retrievedOn,
      one.effectiveFrom,
      isoFromMicros(one.importedAtMicros),
    ],
  );
  const rows = one.prices.map((price) => ({
    id: price.id,
    provider: price.provider,
    model: price.model,
    ...Object.fromEntries(
      RATE_CLASSES.map((name) => {
        const rate = price.rates[name];
        return [name, rate === undefined ? null : decimalFromPico(rate)];
      }),
    ),
    batch_multiplier: decimalOf(price.batchMultiplier),
    tiers: price.tiers.map(tierJson),
    entry: price.entry,
  }));
  const classes = RATE_CLASSES.join(', ');
  await system.run(
    `insert into imported_prices (import_id, id, provider, model, ${classes}, batch_multiplier, tiers, entry)
     select $2::uuid, id, provider, model, ${classes}, batch_multiplier, tiers, entry
     from jsonb_to_recordset($1::jsonb) as t (id uuid, provider text, model text,
       ${RATE_CLASSES.map((name) => `${name} numeric`).join(', ')}, batch_multiplier numeric, tiers jsonb, entry jsonb)`,
    [JSON.stringify(rows), one.id],
  );
}
