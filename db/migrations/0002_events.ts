import type { Migration } from './migration.js';

/**
 * Events, their payloads, what makes two spans one call, and the totals over them. `ingest_xid` is the
 * transaction that wrote a row: totals are folded up to a transaction below which all are finished, so folded
 * plus unfolded is exact in any snapshot, and ingest itself appends nothing to totals (docs/decisions/0006).
 */
export const events: Migration = {
  name: '0002_events',
  up: `
create table events (
  org_id uuid not null,
  timestamp timestamptz not null,
  id uuid not null,
  end_at timestamptz not null,
  ingested_at timestamptz not null default now(),
  ingest_xid bigint not null default current_xid(),
  -- the transaction that first changed the row (superseded or completed by another span of the call)
  revised_xid bigint,
  superseded_by uuid,
  kind text not null check (kind in ('otel_span', 'observability_generation', 'sdk_event')),
  status text not null check (status in ('ok', 'error', 'cancelled', 'blocked')),
  http_status integer,
  provider text not null,
  billed_by text not null,
  provider_account_id text,
  provider_key_id text,
  model text not null,
  response_model text,
  request_id text,
  api_key_hash text not null,
  api_key_id text not null,
  session_id text not null,
  team_id text,
  feature text,
  project_id text,
  user_id text,
  environment text,
  service_tier text,
  is_batch boolean not null,
  batch_id text,
  -- presented classes: input includes input_audio, output includes output_audio and reasoning
  input_tokens bigint not null check (input_tokens between 0 and 1000000000000),
  output_tokens bigint not null check (output_tokens between 0 and 1000000000000),
  cache_read bigint not null check (cache_read between 0 and 1000000000000),
  cache_creation bigint not null check (cache_creation between 0 and 1000000000000),
  cache_creation_5m bigint check (cache_creation_5m between 0 and 1000000000000),
  cache_creation_1h bigint check (cache_creation_1h between 0 and 1000000000000),
  reasoning_tok bigint not null check (reasoning_tok between 0 and 1000000000000),
  cached_tok bigint not null check (cached_tok between 0 and 1000000000000),
  input_audio bigint not null default 0 check (input_audio between 0 and 1000000000000),
  output_audio bigint not null default 0 check (output_audio between 0 and 1000000000000),
  -- the long-context boundary whose rates hold for the call; 0 = the ordinary rates
  context_band integer not null default 0,
  unmetered boolean not null,
  -- numeric takes NaN, which sorts above every number: the range check refuses it
  cost_usd numeric(24,12) not null check (cost_usd between 0 and 1000000000000),
  computed_cost_usd numeric(24,12) check (computed_cost_usd between 0 and 1000000000000),
  reported_cost_usd numeric(24,12) check (reported_cost_usd between 0 and 1000000),
  cost_source text not null check (cost_source in ('reported', 'computed', 'unpriced')),
  price_gaps text[],
  usage_source text not null,
  input_semantics text not null check (input_semantics in ('inclusive', 'exclusive', 'disjoint')),
  usage_missing text[],
  -- what is wrong with the counts as they came, e.g. a total that is not the sum of its parts
  usage_flags text[],
  usage_raw text check (length(usage_raw) <= 1024),
  -- what decides between tellings of one call: how many classes this one told, and how it knew the biller
  told_classes smallint not null,
  biller_from_host boolean not null,
  biller_span text,
  duration_ms bigint not null check (duration_ms between 0 and 1000000000),
  stop_reason text not null,
  blocked_rule_id text,
  prevented_usd numeric(24,12) check (prevented_usd between 0 and 1000000),
  service_name text not null,
  scope_name text not null,
  constraint events_unique unique (org_id, timestamp, api_key_hash, model, provider)
) partition by range (timestamp);

create index events_by_ingest on events (org_id, ingest_xid);
create index events_by_team on events (org_id, team_id) where team_id is not null;
create index events_by_feature on events (org_id, feature) where feature is not null;
create index events_by_session on events (org_id, session_id) where session_id <> '';
select protect_tenant_table('events', 'select, insert, update');

create table event_payloads (
  org_id uuid not null,
  timestamp timestamptz not null,
  event_id uuid not null,
  payload jsonb,
  tool_input jsonb,
  tool_output jsonb,
  service jsonb,
  primary key (org_id, timestamp, event_id)
) partition by range (timestamp);
select protect_tenant_table('event_payloads', 'select, insert, update');

-- Partitions are made by the owner, ahead of time (db/partitions.ts): ingest never runs DDL.

-- Spans seen: those that are calls (event_id set) and the ignored ones between them. A response id belongs to one
-- call of a biller, a span to one row; what conflicts here is another telling of the same call.
create table call_spans (
  org_id uuid not null,
  biller text,
  response_id text,
  trace_id uuid,
  span_id bigint,
  parent_span_id bigint,
  event_id uuid,
  ingest_xid bigint not null default current_xid(),
  created_at timestamptz not null default now(),
  constraint call_spans_by_response unique (org_id, biller, response_id),
  constraint call_spans_by_span unique (org_id, trace_id, span_id)
);
create index call_spans_by_ingest on call_spans (ingest_xid);
select protect_tenant_table('call_spans', 'select, insert, update, delete');

-- What changed about an event after it was stored, as signed copies: -1 the old telling, +1 the new one. Totals
-- add these to the events; nothing that was counted is edited.
create table event_adjustments (
  org_id uuid not null,
  id bigint generated always as identity,
  ingest_xid bigint not null default current_xid(),
  sign smallint not null check (sign in (-1, 1)),
  event_id uuid not null,
  timestamp timestamptz not null,
  end_at timestamptz not null,
  status text not null,
  provider text not null,
  billed_by text not null,
  provider_account_id text,
  provider_key_id text,
  model text not null,
  response_model text,
  api_key_id text not null,
  session_id text not null,
  team_id text,
  feature text,
  project_id text,
  user_id text,
  service_tier text,
  is_batch boolean not null,
  context_band integer not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read bigint not null,
  cache_creation bigint not null,
  cache_creation_5m bigint,
  cache_creation_1h bigint,
  reasoning_tok bigint not null,
  cached_tok bigint not null,
  input_audio bigint not null,
  output_audio bigint not null,
  unmetered boolean not null,
  cost_usd numeric(24,12) not null,
  computed_cost_usd numeric(24,12),
  reported_cost_usd numeric(24,12),
  cost_source text not null,
  price_gaps text[],
  service_name text not null,
  scope_name text not null,
  primary key (org_id, id)
);
create index event_adjustments_by_ingest on event_adjustments (org_id, ingest_xid);
select protect_tenant_table('event_adjustments', 'select, insert');

-- Totals by one attribution dimension. bucket is the UTC hour of the call's start; the UTC day for user and session.
create table usage_rollups (
  org_id uuid not null,
  dimension text not null check (dimension in ('model', 'provider', 'team', 'feature', 'project', 'key', 'user', 'session', 'source')),
  bucket timestamptz not null,
  -- '' stands for an absent label
  key text not null,
  calls bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read bigint not null,
  cache_creation bigint not null,
  reasoning_tok bigint not null,
  cost_usd numeric(24,12) not null,
  computed_cost_usd numeric(24,12) not null,
  reported_cost_usd numeric(24,12) not null,
  unpriced bigint not null,
  price_gaps bigint not null,
  unmetered bigint not null,
  unknown_biller bigint not null,
  first_seen timestamptz not null,
  last_seen timestamptz not null,
  primary key (org_id, dimension, bucket, key)
);
select protect_tenant_table('usage_rollups', 'select');

-- Totals by day for the filtered breakdowns: every combination of the labels that occurred.
create table label_cells (
  org_id uuid not null,
  day date not null,
  provider text not null,
  model text not null,
  team_id text not null,
  feature text not null,
  calls bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read bigint not null,
  cache_creation bigint not null,
  reasoning_tok bigint not null,
  cost_usd numeric(24,12) not null,
  computed_cost_usd numeric(24,12) not null,
  reported_cost_usd numeric(24,12) not null,
  unpriced bigint not null,
  first_seen timestamptz not null,
  last_seen timestamptz not null,
  primary key (org_id, day, provider, model, team_id, feature)
);
select protect_tenant_table('label_cells', 'select');

-- What reconciliation compares with a bill: quantities by class. hour is of the call's END, since a provider books
-- a call on the day that it ended.
create table billing_cells (
  org_id uuid not null,
  hour timestamptz not null,
  billed_by text not null,
  provider_account_id text not null,
  provider_key_id text not null,
  -- the model that the provider answered with, else the one asked for
  model text not null,
  service_tier text not null,
  is_batch boolean not null,
  context_band integer not null,
  status text not null,
  calls bigint not null,
  input_tokens bigint not null,
  cache_read bigint not null,
  cache_write_5m bigint not null,
  cache_write_1h bigint not null,
  output_tokens bigint not null,
  input_audio bigint not null,
  output_audio bigint not null,
  reasoning_tok bigint not null,
  computed_cost_usd numeric(24,12) not null,
  unpriced bigint not null,
  price_gaps bigint not null,
  unmetered bigint not null,
  first_seen timestamptz not null,
  last_seen timestamptz not null,
  primary key (org_id, hour, billed_by, provider_account_id, provider_key_id, model, service_tier, is_batch, context_band, status)
);
select protect_tenant_table('billing_cells', 'select');

-- Items that were refused, by hour and reason, for ingest health.
create table ingest_rejections (
  org_id uuid not null,
  hour timestamptz not null,
  service_name text not null,
  scope_name text not null,
  reason text not null,
  count bigint not null,
  primary key (org_id, hour, service_name, scope_name, reason)
);
select protect_tenant_table('ingest_rejections', 'select, insert, update');

-- Everything of the organization below folded_xid is in its totals; absent: nothing is.
create table rollup_state (
  org_id uuid primary key,
  folded_xid bigint not null,
  folded_at timestamptz not null default now()
);
select protect_tenant_table('rollup_state', 'select');

-- How far the search for spans of one call has come, over all organizations. One row; no tenant's datum.
create table sweep_state (
  singleton boolean primary key default true check (singleton),
  swept_xid bigint not null
);
insert into sweep_state (swept_xid) values (0);
grant select, update on sweep_state to app_system;
`,
  down: `
drop table sweep_state, rollup_state, ingest_rejections, billing_cells, label_cells, usage_rollups, event_adjustments, call_spans, event_payloads, events;
`,
};
