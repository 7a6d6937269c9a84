import type { Migration } from './migration.js';

/**
 * List prices: public facts, no tenant's data. Append-only: a changed rate is a new row with a later `recorded_at`,
 * and the newest row of (provider, model, effective_from) holds. Rates in USD per million tokens; null = not known,
 * never free.
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
  -- what else the price data says: dissent, conflicts, notes, regional_multipliers, variants, sources
  facts jsonb not null,
  updated_at timestamptz not null default now(),
  primary key (provider, model)
);

create table price_versions (
  id uuid primary key,
  provider text not null,
  model text not null,
  effective_from date,
  effective_to date,
  input numeric(24,12),
  output numeric(24,12),
  cache_read numeric(24,12),
  cache_write_5m numeric(24,12),
  cache_write_1h numeric(24,12),
  cache_write_12h numeric(24,12),
  input_audio numeric(24,12),
  output_audio numeric(24,12),
  cache_read_audio numeric(24,12),
  batch_multiplier numeric(24,12),
  tiers jsonb not null,
  source text not null,
  content_hash text not null,
  recorded_at timestamptz not null default now(),
  foreign key (provider, model) references price_models (provider, model)
);
create unique index price_versions_content on price_versions (provider, model, content_hash);
create index price_versions_by_model on price_versions (provider, model, effective_from, recorded_at desc);

grant select on price_models, price_versions to app_rw, app_system;
grant insert, update on price_models to app_system;
grant insert on price_versions to app_system;
`,
  down: 'drop table price_versions, price_models;',
};
