import { decimalFromPico, type Pico, picoFromDecimal } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import {
  bookWithImports,
  type ImportedEntry,
  type ImportedPrice,
  type PriceImport,
} from '../../domain/pricing/importedPrices.js';
import { PriceBook } from '../../domain/pricing/priceBook.js';
import {
  type PriceModel,
  type PricePeriod,
  type PriceTier,
  type PriceVersion,
  RATE_CLASSES,
  type RateClass,
  type Rates,
  type RecordedPriceModel,
} from '../../domain/pricing/pricedModel.js';
import type { Provider } from '../../domain/providers.js';
import type { Database } from '../client.js';
import { INSTALLATION_LOCKS } from '../locks.js';
import { type SystemDb, unscoped } from '../orgDb.js';

const WHY = 'list prices belong to no organization';

/** All prices in force, in one snapshot. @throws Error when none were recorded. */
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

function keyOf({ provider, model }: { provider: string; model: string }): string {
  return `${provider}\n${model}`;
}

async function listModels(system: SystemDb): Promise<{ model: RecordedPriceModel; periodsAsOf: string }[]> {
  const rows = await system.rows<RecordedPriceModel & { periodsAsOf: string }>(
    `select provider, model, canonical_family as "canonicalFamily", aliases, mode, first_party as "firstParty",
       context_window as "contextWindow", agreement, facts, updated_at as "updatedAtMicros",
       coalesce(periods_as_of, (facts ->> 'asOf')::date) as "periodsAsOf"
     from price_models where not withdrawn`,
  );
  return rows.map(({ periodsAsOf, ...model }) => ({ model, periodsAsOf }));
}

type VersionRow = Rates & Omit<PriceVersion, 'rates' | 'tiers'> & { tiers: StoredTier[] };

async function listVersions(system: SystemDb): Promise<PriceVersion[]> {
  const rows = await system.rows<VersionRow>(
    `select v.id, v.provider, v.model, v.effective_from as "effectiveFrom", v.effective_to as "effectiveTo", ${RATE_CLASSES.map((name) => `v.${name}`).join(', ')},
       v.batch_multiplier as "batchMultiplier", v.tiers, v.source, v.recorded_at as "recordedAtMicros"
     from price_versions v
     join price_models m on m.provider = v.provider and m.model = v.model and m.revision = v.revision
     where not m.withdrawn`,
  );
  return rows.map((row) => ({
    ...splitRates(row, RATE_CLASSES).other,
    rates: Object.fromEntries(RATE_CLASSES.map((name) => [name, row[name]])) as Rates,
    tiers: row.tiers.map(fromStoredTier),
  }));
}

/**
 * Writes list prices: for the seed (usecases/pricing/priceSeed.ts); the state also for imports
 * (usecases/pricing/priceImport.ts).
 */

/** Identifies the prices in force, and the list that they came from. */
export interface PriceStateRow {
  listSha256: string;
  listAsOf: string;
  /** Digest over the list and the imports. */
  contentHash: string;
  /** Digest over the list alone. */
  listContentHash: string;
  updatedAtMicros: bigint;
}

/** A change in progress: its transaction holds the lock, and all its rows have the same time. */
export interface PriceChange {
  state: PriceStateRow | undefined;
  atMicros: bigint;
}

export interface RecordedModel {
  provider: string;
  model: string;
  revision: number;
  withdrawn: boolean;
  modelHash: string;
  periodsHash: string;
  /** Date of the list that last changed the periods. */
  periodsAsOf: string;
}

interface ChangedModel {
  readonly entry: { readonly model: PriceModel };
  readonly revision: number;
  readonly modelHash: string;
  readonly periodsHash: string;
  readonly periodsAsOf: string;
}

export interface NewPeriod {
  id: string;
  provider: string;
  model: string;
  revision: number;
  period: PricePeriod;
}

/** A change takes a fraction of a second, but many processes may queue for it. */
const LOCK_TIMEOUT = '30s';

export async function findPriceState(system: SystemDb): Promise<PriceStateRow | undefined> {
  const [state] = await system.rows<PriceStateRow>(
    `select list_sha256 as "listSha256", list_as_of as "listAsOf", content_hash as "contentHash",
       coalesce(list_content_hash, content_hash) as "listContentHash", updated_at as "updatedAtMicros" from price_state`,
  );
  return state;
}

/** Locks prices; the time is the database's clock, but always after the last change. */
export async function beginPriceChange(system: SystemDb): Promise<PriceChange> {
  await system.run(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
  await system.rows('select pg_advisory_xact_lock($1)', [INSTALLATION_LOCKS.priceChange]);
  const state = await findPriceState(system);
  const [clock] = await system.rows<{ now: bigint }>('select clock_timestamp() as now');
  const now = clock?.now ?? 0n;
  const atMicros = state && state.updatedAtMicros >= now ? state.updatedAtMicros + 1n : now;
  return { state, atMicros };
}

export async function listRecordedModels(system: SystemDb): Promise<RecordedModel[]> {
  return system.rows<RecordedModel>(
    `select provider, model, revision, withdrawn, model_hash as "modelHash", periods_hash as "periodsHash",
       coalesce(periods_as_of, (facts ->> 'asOf')::date) as "periodsAsOf" from price_models`,
  );
}

export async function upsertPriceModels(
  system: SystemDb,
  change: PriceChange,
  changed: readonly ChangedModel[],
): Promise<void> {
  const rows = changed.map(({ entry: { model }, revision, modelHash, periodsHash, periodsAsOf }) => ({
    provider: model.provider,
    model: model.model,
    canonical_family: model.canonicalFamily,
    aliases: model.aliases,
    mode: model.mode,
    first_party: model.firstParty,
    context_window: model.contextWindow,
    agreement: model.agreement,
    facts: model.facts,
    revision,
    model_hash: modelHash,
    periods_hash: periodsHash,
    periods_as_of: periodsAsOf,
  }));
  await system.run(
    `insert into price_models (provider, model, canonical_family, aliases, mode, first_party, context_window, agreement,
       facts, revision, withdrawn, model_hash, periods_hash, periods_as_of, updated_at)
     select provider, model, canonical_family, aliases, mode, first_party, context_window, agreement, facts, revision,
       false, model_hash, periods_hash, periods_as_of, $2::timestamptz
     from jsonb_to_recordset($1::jsonb) as t (provider text, model text, canonical_family text, aliases text[], mode text,
       first_party boolean, context_window bigint, agreement text, facts jsonb, revision integer, model_hash text,
       periods_hash text, periods_as_of date)
     on conflict (provider, model) do update set canonical_family = excluded.canonical_family,
       aliases = excluded.aliases, mode = excluded.mode, first_party = excluded.first_party,
       context_window = excluded.context_window, agreement = excluded.agreement, facts = excluded.facts,
       revision = excluded.revision, withdrawn = false, model_hash = excluded.model_hash,
       periods_hash = excluded.periods_hash, periods_as_of = excluded.periods_as_of, updated_at = excluded.updated_at`,
    [JSON.stringify(rows), isoFromMicros(change.atMicros)],
  );
}

/** Appends periods; recorded periods stay unchanged. */
export async function insertPricePeriods(
  system: SystemDb,
  change: PriceChange,
  periods: readonly NewPeriod[],
): Promise<void> {
  const rows = periods.map(({ id, provider, model, revision, period }) => ({
    id,
    provider,
    model,
    revision,
    effective_from: period.effectiveFrom,
    effective_to: period.effectiveTo,
    ...decimalRates(period.rates),
    batch_multiplier: decimalOf(period.batchMultiplier),
    tiers: period.tiers.map(tierJson),
    source: period.source,
  }));
  const classes = RATE_CLASSES.join(', ');
  const columns = `id, provider, model, revision, effective_from, effective_to, ${classes}, batch_multiplier, tiers, source`;
  await system.run(
    `insert into price_versions (${columns}, recorded_at)
     select ${columns}, $2::timestamptz
     from jsonb_to_recordset($1::jsonb) as t (id uuid, provider text, model text, revision integer, effective_from date,
       effective_to date, ${RATE_CLASSES.map((name) => `${name} numeric`).join(', ')}, batch_multiplier numeric,
       tiers jsonb, source text)`,
    [JSON.stringify(rows), isoFromMicros(change.atMicros)],
  );
}

/** Withdraws entries from the prices in force; their history stays. */
export async function withdrawPriceModels(
  system: SystemDb,
  change: PriceChange,
  models: readonly { provider: string; model: string }[],
): Promise<void> {
  if (models.length === 0) return;
  const rows = models.map(({ provider, model }) => ({ provider, model }));
  await system.run(
    `update price_models m set withdrawn = true, updated_at = $2::timestamptz
     from jsonb_to_recordset($1::jsonb) as t (provider text, model text)
     where m.provider = t.provider and m.model = t.model`,
    [JSON.stringify(rows), isoFromMicros(change.atMicros)],
  );
}

export async function recordPriceState(system: SystemDb, state: PriceStateRow): Promise<void> {
  await system.run(
    `insert into price_state (list_sha256, list_as_of, content_hash, list_content_hash, updated_at) values ($1, $2, $3, $4, $5)
     on conflict (singleton) do update set list_sha256 = excluded.list_sha256, list_as_of = excluded.list_as_of,
       content_hash = excluded.content_hash, list_content_hash = excluded.list_content_hash, updated_at = excluded.updated_at`,
    [
      state.listSha256,
      state.listAsOf,
      state.contentHash,
      state.listContentHash,
      isoFromMicros(state.updatedAtMicros),
    ],
  );
}

/** A stored tier: decimal texts, so that no rate passes through a double. */
export interface StoredTier {
  service_tier: string | null;
  above_input_tokens: number | null;
  checked_on: string | null;
  rates: Record<string, string | null>;
}

export function fromStoredTier(tier: StoredTier): PriceTier {
  return {
    serviceTier: tier.service_tier,
    aboveInputTokens: tier.above_input_tokens,
    checkedOn: tier.checked_on,
    rates: Object.fromEntries(
      RATE_CLASSES.map((name) => [name, picoFromDecimal(tier.rates[name] ?? '') ?? null]),
    ) as Record<RateClass, bigint | null>,
  };
}

export function tierJson(tier: PriceTier): StoredTier {
  return {
    service_tier: tier.serviceTier,
    above_input_tokens: tier.aboveInputTokens,
    checked_on: tier.checkedOn,
    rates: decimalRates(tier.rates),
  };
}

function decimalRates(rates: Rates): Record<string, string | null> {
  return Object.fromEntries(RATE_CLASSES.map((name) => [name, decimalOf(rates[name])]));
}

export function decimalOf(scaled: bigint | null | undefined): string | null {
  return scaled === null || scaled === undefined ? null : decimalFromPico(scaled);
}

/** Splits a row into its rates, without absent ones, and its other columns. */
export function splitRates<Name extends string, Row extends Record<Name, Pico | null>>(
  row: Row,
  classes: readonly Name[],
): { other: Omit<Row, Name>; rates: Partial<Record<Name, Pico>> } {
  const isRate = (name: string) => classes.includes(name as Name);
  const columns = Object.entries(row);
  return {
    other: Object.fromEntries(columns.filter(([name]) => !isRate(name))) as Omit<Row, Name>,
    rates: Object.fromEntries(columns.filter(([name, rate]) => isRate(name) && rate !== null)) as Partial<
      Record<Name, Pico>
    >,
  };
}

type ImportedPriceRow = Record<RateClass, Pico | null> & {
  id: string;
  importId: string;
  provider: Provider;
  model: string;
  batchMultiplier: bigint | null;
  tiers: StoredTier[];
  entry: ImportedEntry;
};

/** All imports with their entries, in order of creation. */
export async function listPriceImports(system: SystemDb): Promise<PriceImport[]> {
  const imports = await system.rows<Omit<PriceImport, 'prices'>>(
    `select id, source, filename, file_sha256 as "fileSha256", retrieved_on as "retrievedOn", effective_from as "effectiveFrom",
       imported_at as "importedAtMicros" from price_imports order by ordinal`,
  );
  if (imports.length === 0) return [];
  const prices = await system.rows<ImportedPriceRow>(
    `select id, import_id as "importId", provider, model, ${RATE_CLASSES.join(', ')}, batch_multiplier as "batchMultiplier", tiers, entry
     from imported_prices
     order by provider, model`,
  );
  const byImport = new Map<string, ImportedPrice[]>(imports.map((row) => [row.id, []]));
  for (const { importId, ...row } of prices) {
    const { other, rates } = splitRates(row, RATE_CLASSES);
    byImport.get(importId)?.push({ ...other, rates, tiers: other.tiers.map(fromStoredTier) });
  }
  return imports.map((row) => ({ ...row, prices: byImport.get(row.id) ?? [] }));
}

/** The ids of all imports in order: with the list they identify the prices in force. */
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
    ...Object.fromEntries(RATE_CLASSES.map((name) => [name, decimalOf(price.rates[name])])),
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
