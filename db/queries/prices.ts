/** Reading of list prices. They are public facts and belong to no organization. */
import { picoFromDecimal } from '../../domain/money.js';
import { PriceBook, type PriceState } from '../../domain/pricing/priceBook.js';
import {
  type Agreement,
  type PriceFacts,
  type PriceMode,
  type PriceTier,
  type PriceVersion,
  RATE_CLASSES,
  type RateClass,
  type Rates,
  type RecordedPriceModel,
} from '../../domain/pricing/prices.js';
import type { Provider } from '../../domain/providers.js';
import type { Database } from '../client.js';
import { type SystemDb, unscoped } from '../orgDb.js';
import { findPriceState, type StoredTier } from './priceChanges.js';

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
      return PriceBook.from(await listModels(system), await listVersions(system), state);
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
}

async function listModels(system: SystemDb): Promise<RecordedPriceModel[]> {
  const rows = await system.rows<ModelRow>(
    `select provider, model, canonical_family, aliases, mode, first_party, context_window, agreement, facts, updated_at
     from price_models where not withdrawn`,
  );
  return rows.map((row) => ({
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

function fromStoredTier(tier: StoredTier): PriceTier {
  return {
    serviceTier: tier.service_tier,
    aboveInputTokens: tier.above_input_tokens,
    checkedOn: tier.checked_on,
    rates: ratesOf((name) => {
      const text = tier.rates[name] ?? null;
      return text === null ? null : (picoFromDecimal(text) ?? null);
    }),
  };
}

function ratesOf(rateOf: (name: RateClass) => bigint | null): Rates {
  return Object.fromEntries(RATE_CLASSES.map((name) => [name, rateOf(name)])) as Record<
    RateClass,
    bigint | null
  >;
}
