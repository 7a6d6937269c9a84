/** Writing of list prices: by the seed (usecases/pricing/priceSeed.ts), and the state also by imports (usecases/pricing/priceImport.ts). */
import { decimalFromPico, picoFromDecimal } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { PriceModel, PricePeriod, PriceTier } from '../../domain/pricing/prices.js';
import { RATE_CLASSES, type RateClass, type Rates } from '../../domain/pricing/prices.js';
import { INSTALLATION_LOCKS } from '../locks.js';
import type { SystemDb } from '../orgDb.js';

/** What names the prices that hold, and the list that they came from. */
export interface PriceStateRow {
  listSha256: string;
  /** `YYYY-MM-DD` */
  listAsOf: string;
  /** Digest over the list and the imports. */
  contentHash: string;
  /** Digest over the list alone. */
  listContentHash: string;
  updatedAtMicros: bigint;
}

/** A change under way: its transaction holds the lock, and everything it writes carries one time. */
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
  /** The day that the list described when it last changed the periods. */
  periodsAsOf: string;
}

/** What is written of an entry itself. */
export interface ChangedModel {
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

/** A change takes a fraction of a second; many processes may stand in line for it. */
const LOCK_TIMEOUT = '30s';

/** The state of the stored prices; undefined before the first list. */
export async function findPriceState(system: SystemDb): Promise<PriceStateRow | undefined> {
  const [row] = await system.rows<{
    list_sha256: string;
    list_as_of: string;
    content_hash: string;
    list_content_hash: string;
    updated_at: bigint;
  }>(
    'select list_sha256, list_as_of, content_hash, coalesce(list_content_hash, content_hash) as list_content_hash, updated_at from price_state',
  );
  return (
    row && {
      listSha256: row.list_sha256,
      listAsOf: row.list_as_of,
      contentHash: row.content_hash,
      listContentHash: row.list_content_hash,
      updatedAtMicros: row.updated_at,
    }
  );
}

/**
 * Takes the lock until the transaction ends, and the time that the change is recorded under: the database's clock,
 * but always after the last change, so that two changes never share a time.
 */
export async function beginPriceChange(system: SystemDb): Promise<PriceChange> {
  await system.run(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
  await system.rows('select pg_advisory_xact_lock($1)', [INSTALLATION_LOCKS.priceChange]);
  const state = await findPriceState(system);
  const [clock] = await system.rows<{ now: bigint }>('select clock_timestamp() as now');
  const now = clock?.now ?? 0n;
  const atMicros = state && state.updatedAtMicros >= now ? state.updatedAtMicros + 1n : now;
  return { state, atMicros };
}

/** All entries ever listed, withdrawn ones too. */
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

/** Appends periods: nothing that was recorded is touched. */
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

/** Takes entries out of the prices that hold; their history stays. */
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

/** A tier as it is stored: decimal texts, so that no rate passes through a double. */
export interface StoredTier {
  service_tier: string | null;
  above_input_tokens: number | null;
  checked_on: string | null;
  rates: Record<string, string | null>;
}

/** A stored tier as the rules take it. */
export function fromStoredTier(tier: StoredTier): PriceTier {
  return {
    serviceTier: tier.service_tier,
    aboveInputTokens: tier.above_input_tokens,
    checkedOn: tier.checked_on,
    rates: Object.fromEntries(
      RATE_CLASSES.map((name) => {
        const text = tier.rates[name] ?? null;
        return [name, text === null ? null : (picoFromDecimal(text) ?? null)];
      }),
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

export function decimalOf(scaled: bigint | null): string | null {
  return scaled === null ? null : decimalFromPico(scaled);
}
