import type { Migration } from './migration.js';

/**
 * List prices: public facts, no tenant's data. Periods are append-only: when anything about a model's price changes,
 * all its periods are recorded again under the next revision, and price_models.revision says which revision holds.
 * So a period that was withdrawn, or a price that went back to what it was, is recorded as exactly as a new one. Rates in
 * USD per million tokens; null = not known, never free.
 */
export const prices: Migration = {
  name: '0003_prices',
  up: `
create table price_models (
  provider text not null,
  model text not null,
  canonical_family text not null,
  aliases text[] not null,
  mode text not null check (mode in ('chat', 'embedding')),
  first_party boolean not null,
  context_window bigint,
  agreement text not null check (agreement in ('agree', 'single_source', 'disagree')),
  -- what else the price data says: dissent, conflicts, notes, regional multipliers, variants, sources
  facts jsonb not null,
  revision integer not null check (revision > 0),
  -- the list no longer names the model: its periods stay as history, but price nothing
  withdrawn boolean not null default false,
  -- sha256 over everything but the periods, and over the periods: what changed is told without reading it
  model_hash text not null,
  periods_hash text not null,
  updated_at timestamptz not null,
  primary key (provider, model)
);

create table price_versions (
  id uuid primary key,
  provider text not null,
  model text not null,
  revision integer not null check (revision > 0),
  effective_from date,
  effective_to date,
  input numeric(24,12) not null check (input >= 0),
  output numeric(24,12) not null check (output >= 0),
  cache_read numeric(24,12),
  cache_write_5m numeric(24,12),
  cache_write_1h numeric(24,12),
  cache_write_12h numeric(24,12),
  input_audio numeric(24,12),
  output_audio numeric(24,12),
  cache_read_audio numeric(24,12),
  batch_multiplier numeric(24,12),
  -- rates of other service tiers and of long requests, as decimal texts
  tiers jsonb not null,
  source text not null,
  recorded_at timestamptz not null,
  -- in one revision of a model a day has one price
  constraint price_versions_once unique nulls not distinct (provider, model, revision, effective_from),
  foreign key (provider, model) references price_models (provider, model)
);

-- One row: which list was read last, and what names the prices that hold.
create table price_state (
  singleton boolean primary key default true check (singleton),
  list_sha256 text not null,
  list_as_of date not null,
  content_hash text not null check (content_hash ~ '^[0-9a-f]{64}$'),
  updated_at timestamptz not null
);

grant select on price_models, price_versions, price_state to app_rw, app_system;
grant insert, update on price_models, price_state to app_system;
grant insert on price_versions to app_system;
`,
  down: 'drop table price_versions, price_models, price_state;',
};
