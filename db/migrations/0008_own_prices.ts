import type { Migration } from './migration.js';

/**
 * Prices beside the shipped list: an organization's contract and overrides, what was imported from public price
 * collections, and which provider keys are the organization's. Prices are append-only: an entry that is taken back
 * gets an end beside it, and says for ever what it said.
 */
export const ownPrices: Migration = {
  name: '0008_own_prices',
  up: `
create table own_prices (
  org_id uuid not null,
  id uuid not null,
  kind text not null check (kind in ('contract', 'override')),
  -- counts the organization's changes to its own prices; the later entry stands over the earlier
  revision bigint not null,
  provider text not null,
  -- a model id, a family, or * for all of the provider's
  model text not null check (length(model) between 1 and 512),
  discount_percent numeric(24,12) check (discount_percent > 0 and discount_percent < 100),
  input numeric(24,12) check (input >= 0),
  output numeric(24,12) check (output >= 0),
  cache_read numeric(24,12) check (cache_read >= 0),
  cache_write_5m numeric(24,12) check (cache_write_5m >= 0),
  cache_write_1h numeric(24,12) check (cache_write_1h >= 0),
  batch_multiplier numeric(24,12) check (batch_multiplier >= 0),
  effective_from date not null,
  effective_to date,
  -- {document, clause, url}
  source jsonb,
  created_at timestamptz not null default now(),
  created_by text not null,
  primary key (org_id, id),
  unique (org_id, revision),
  check (effective_to > effective_from),
  -- a discount, or at least one rate
  check ((discount_percent is not null) <> (num_nonnulls(input, output, cache_read, cache_write_5m, cache_write_1h, batch_multiplier) > 0)),
  check (kind = 'contract' or discount_percent is null),
  check (model <> '*' or discount_percent is not null),
  check (kind = 'override' or source is not null)
);
create index own_prices_newest on own_prices (org_id, kind, revision desc);
select protect_tenant_table('own_prices', 'select, insert');

-- An entry that was taken back, from a day on; taken back twice, the earlier day holds.
create table own_price_ends (
  org_id uuid not null,
  own_price_id uuid not null,
  revision bigint not null,
  ends_on date not null,
  ended_at timestamptz not null default now(),
  ended_by text not null,
  primary key (org_id, own_price_id, revision),
  foreign key (org_id, own_price_id) references own_prices (org_id, id)
);
select protect_tenant_table('own_price_ends', 'select, insert');

-- How often an organization has changed its own prices: small, so that a process asks for all of them every few
-- seconds; locked by a change, so that revisions are in the order of the commits.
create table own_price_state (
  org_id uuid primary key,
  revision bigint not null,
  updated_at timestamptz not null
);
select protect_tenant_table('own_price_state', 'select, insert, update');

create table provider_keys (
  org_id uuid not null,
  provider text not null,
  -- the provider's own id of the key, never the key
  provider_key_id text not null check (length(provider_key_id) between 1 and 256),
  provider_account_id text,
  name text not null check (length(name) between 1 and 256),
  project text,
  team_id text,
  status text not null check (status in ('active', 'revoked')),
  active_from timestamptz,
  revoked_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, provider, provider_key_id),
  check ((status = 'revoked') = (revoked_at is not null)),
  check (revoked_at >= active_from)
);
select protect_tenant_table('provider_keys', 'select, insert, update');

-- What an entry of provider_keys said at each change.
create table provider_key_changes (
  org_id uuid not null,
  id bigint generated always as identity,
  provider text not null,
  provider_key_id text not null,
  item jsonb not null,
  changed_at timestamptz not null default now(),
  changed_by text not null,
  primary key (org_id, id),
  foreign key (org_id, provider, provider_key_id) references provider_keys (org_id, provider, provider_key_id)
);
create index provider_key_changes_by_key on provider_key_changes (org_id, provider, provider_key_id, id);
select protect_tenant_table('provider_key_changes', 'select, insert');

-- The day that the list described when it last changed the model's periods: an import that knows of a later day
-- stands over them.
alter table price_models add column periods_as_of date;
update price_models set periods_as_of = (facts ->> 'asOf')::date;
-- The digest of the list alone: content_hash covers the imports too. Null: there were none yet.
alter table price_state add column list_content_hash text;

create table price_imports (
  id uuid primary key,
  -- in the order in which they were recorded
  ordinal bigint not null unique,
  source text not null check (source in ('litellm', 'models_dev')),
  filename text not null,
  file_sha256 text not null check (file_sha256 ~ '^[0-9a-f]{64}$'),
  -- the day on which the file was fetched: what it knows is as of then
  retrieved_on date not null,
  effective_from date not null,
  imported_at timestamptz not null
);

-- What an import says of a model: only what differed from the prices in force. A class that it does not give is null
-- and stays as listed.
create table imported_prices (
  id uuid primary key,
  import_id uuid not null references price_imports (id),
  provider text not null,
  model text not null,
  input numeric(24,12) check (input >= 0),
  output numeric(24,12) check (output >= 0),
  cache_read numeric(24,12),
  cache_write_5m numeric(24,12),
  cache_write_1h numeric(24,12),
  cache_write_12h numeric(24,12),
  input_audio numeric(24,12),
  output_audio numeric(24,12),
  cache_read_audio numeric(24,12),
  batch_multiplier numeric(24,12),
  tiers jsonb not null,
  -- the entry to make where the list has none: family, mode, maker, context window
  entry jsonb not null,
  unique (import_id, provider, model)
);
grant select on price_imports, imported_prices to app_rw, app_system;
grant insert on price_imports, imported_prices to app_system;
`,
  down: `
drop table imported_prices, price_imports;
alter table price_state drop column list_content_hash;
alter table price_models drop column periods_as_of;
drop table provider_key_changes, provider_keys, own_price_state, own_price_ends, own_prices;
`,
};
