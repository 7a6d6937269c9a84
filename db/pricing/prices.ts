import { bookWithImports } from '../../domain/pricing/importedPrices.js';
import { PriceBook, type PriceState } from '../../domain/pricing/priceBook.js';
import {
  type Agreement,
  type PriceFacts,
  type PriceMode,
  type PriceVersion,
  RATE_CLASSES,
  type RateClass,
  type Rates,
  type RecordedPriceModel,
} from '../../domain/pricing/prices.js';
import type { Provider } from '../../domain/providers.js';
import type { Database } from '../client.js';
import { type SystemDb, unscoped } from '../orgDb.js';
import { findPriceState, fromStoredTier, type StoredTier } from './priceChanges.js';
import { listPriceImports } from './priceImports.js';

const WHY = 'list prices belong to no organization';

/** What names the stored prices: one small row, cheap enough to ask for every few seconds. */
export async function readPriceState(database: Database): Promise<PriceState | undefined> {
  return unscoped(database, WHY, findPriceState);
}

/**
 * All prices that hold, in one snapshot. Error when none were ever recorded: the service has not been migrated.
 */
export async function loadPriceBook(database: Database): Promise<PriceBook> {
  return unscoped(
    database,
    WHY,
    async (system) => {
      const state = await findPriceState(system);
      if (!state) throw new Error('no prices are recorded: run the migrations first');
      const models = await listModels(system);
      const list = PriceBook.from(
        models.map(({ model }) => model),
        await listVersions(system),
        state,
      );
      const asOf = new Map(models.map(({ model, periodsAsOf }) => [keyOf(model), periodsAsOf]));
      return bookWithImports(list, await listPriceImports(system), (entry) => asOf.get(keyOf(entry)) ?? '');
    },
    'repeatable read',
  );
}

interface ModelRow {
  provider: Provider;
  model: string;
  canonical_family: string;
  aliases: string[];
  mode: PriceMode;
  first_party: boolean;
  context_window: number | null;
  agreement: Agreement;
  facts: PriceFacts;
  updated_at: bigint;
  periods_as_of: string;
}

function keyOf({ provider, model }: { provider: string; model: string }): string {
  return `${provider}\n${model}`;
}

async function listModels(system: SystemDb): Promise<{ model: RecordedPriceModel; periodsAsOf: string }[]> {
  const rows = await system.rows<ModelRow>(
    `select provider, model, canonical_family, aliases, mode, first_party, context_window, agreement, facts, updated_at,
       coalesce(periods_as_of, (facts ->> 'asOf')::date) as periods_as_of
     from price_models where not withdrawn`,
  );
  return rows.map((row) => ({
    model: {
      provider: row.provider,
      model: row.model,
      canonicalFamily: row.canonical_family,
      aliases: row.aliases,
      mode: row.mode,
      firstParty: row.first_party,
      contextWindow: row.context_window,
      agreement: row.agreement,
      facts: row.facts,
      updatedAtMicros: row.updated_at,
    },
    periodsAsOf: row.periods_as_of,
  }));
}

type VersionRow = Rates & {
  id: string;
  provider: Provider;
  model: string;
  effective_from: string | null;
  effective_to: string | null;
  batch_multiplier: bigint | null;
  tiers: StoredTier[];
  source: string;
  recorded_at: bigint;
};

async function listVersions(system: SystemDb): Promise<PriceVersion[]> {
  const rows = await system.rows<VersionRow>(
    `select v.id, v.provider, v.model, v.effective_from, v.effective_to, ${RATE_CLASSES.map((name) => `v.${name}`).join(', ')},
       v.batch_multiplier, v.tiers, v.source, v.recorded_at
     from price_versions v
     join price_models m on m.provider = v.provider and m.model = v.model and m.revision = v.revision
     where not m.withdrawn`,
  );
  return rows.map((row) => ({
    id: row.id,
    provider: row.provider,
    model: row.model,
    effectiveFrom: row.effective_from,
    effectiveTo: row.effective_to,
    rates: ratesOf((name) => row[name]),
    batchMultiplier: row.batch_multiplier,
    tiers: row.tiers.map(fromStoredTier),
    source: row.source,
    recordedAtMicros: row.recorded_at,
  }));
}

function ratesOf(rateOf: (name: RateClass) => bigint | null): Rates {
  return Object.fromEntries(RATE_CLASSES.map((name) => [name, rateOf(name)])) as Record<
    RateClass,
    bigint | null
  >;
}
