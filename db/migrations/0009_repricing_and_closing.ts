import type { Migration } from './migration.js';

/**
 * Calls priced anew, with both versions kept, and months that are closed: the state at a closing is in its
 * snapshot, and what came later is summed apart, on the day on which it came (docs/decisions/0013).
 */
export const repricingAndClosing: Migration = {
  name: '0009_repricing_and_closing',
  up: `
-- When the row came into the log. Copies of an event as it was first counted keep the event's own time.
alter table event_adjustments add column ingested_at timestamptz not null default now();
-- The edges of a window in a closed month are added up from the log itself.
create index event_adjustments_by_time on event_adjustments (org_id, timestamp);

create table reprice_runs (
  org_id uuid not null,
  id uuid not null,
  window_start timestamptz not null,
  window_end timestamptz not null,
  -- null: all
  provider text,
  model text,
  status text not null check (status in ('queued', 'running', 'succeeded', 'partial', 'failed', 'cancelled')),
  stage text not null default 'queued',
  -- the last event that was looked at: the next batch begins behind it
  cursor_at timestamptz,
  cursor_id uuid,
  -- the prices by which the run works: of one state from beginning to end, else the run ends partial
  price_version text,
  requested_by text,
  error_code text,
  error_message text,
  cancel_requested_at timestamptz,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  heartbeat_at timestamptz,
  finished_at timestamptz,
  primary key (org_id, id),
  check (window_start < window_end),
  check ((cursor_at is null) = (cursor_id is null))
);
-- Single flight: one re-pricing of an organization at a time.
create unique index reprice_runs_open on reprice_runs (org_id) where status in ('queued', 'running');
create index reprice_runs_newest on reprice_runs (org_id, created_at desc, id);
select protect_tenant_table('reprice_runs', 'select, insert, update');

-- What a run has found so far, added to in the transaction that moves its cursor.
create table reprice_totals (
  org_id uuid not null,
  run_id uuid not null,
  provider text not null,
  model text not null,
  events bigint not null,
  changed bigint not null,
  old_cost_usd numeric(24,12) not null,
  new_cost_usd numeric(24,12) not null,
  old_computed_cost_usd numeric(24,12) not null,
  new_computed_cost_usd numeric(24,12) not null,
  old_unpriced bigint not null,
  new_unpriced bigint not null,
  primary key (org_id, run_id, provider, model),
  foreign key (org_id, run_id) references reprice_runs (org_id, id)
);
select protect_tenant_table('reprice_totals', 'select, insert, update');

-- Each event's price before and after a run that changed it.
create table event_price_changes (
  org_id uuid not null,
  event_id uuid not null,
  run_id uuid not null,
  timestamp timestamptz not null,
  old_cost_usd numeric(24,12) not null,
  new_cost_usd numeric(24,12) not null,
  old_computed_cost_usd numeric(24,12),
  new_computed_cost_usd numeric(24,12),
  old_cost_source text not null check (old_cost_source in ('reported', 'computed', 'unpriced')),
  new_cost_source text not null check (new_cost_source in ('reported', 'computed', 'unpriced')),
  old_price_gaps text[],
  new_price_gaps text[],
  old_context_band integer not null,
  new_context_band integer not null,
  price_version text not null,
  changed_at timestamptz not null default now(),
  primary key (org_id, event_id, run_id),
  foreign key (org_id, run_id) references reprice_runs (org_id, id)
);
select protect_tenant_table('event_price_changes', 'select, insert');

-- The end of the last closed month. Closing changes it under the lock of the fold, so neither overtakes the other.
alter table rollup_state add column closed_until timestamptz;

create table period_closings (
  org_id uuid not null,
  month date not null check (extract(day from month) = 1),
  -- first moment after the month
  ends_at timestamptz not null,
  -- what the closing saw: a row of the log that is not visible in it came later
  snapshot pg_snapshot not null,
  -- the month that was asked for: the first closing takes all earlier months along
  closed_with date not null,
  closed_at timestamptz not null default now(),
  closed_by text,
  primary key (org_id, month)
);
select protect_tenant_table('period_closings', 'select');

-- A closed month's totals as they were closed: of its own calls, and of changes of earlier months booked in it.
create table period_totals (
  org_id uuid not null,
  month date not null,
  part text not null check (part in ('own', 'booked')),
  provider text not null,
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
  primary key (org_id, month, part, provider),
  foreign key (org_id, month) references period_closings (org_id, month)
);
select protect_tenant_table('period_totals', 'select');

-- What was billed for each day of a closed month, by the copies that counted at its closing.
create table period_billed (
  org_id uuid not null,
  month date not null,
  provider text not null,
  provider_account_id text not null,
  charge_category text not null,
  day date not null,
  amount_usd numeric(24,12) not null,
  primary key (org_id, month, provider, provider_account_id, charge_category, day),
  foreign key (org_id, month) references period_closings (org_id, month)
);
select protect_tenant_table('period_billed', 'select');

-- Bills of closed months that were restated: settled when the month in which the newer copy came is closed.
create table billed_adjustments (
  org_id uuid not null,
  provider text not null,
  provider_account_id text not null,
  charge_category text not null,
  -- the billed day, in a month closed before
  day date not null,
  -- the day on which the newer copy came, in the month that was being closed or an open one before it
  booked_on date not null,
  amount_usd numeric(24,12) not null,
  settled_with date not null,
  primary key (org_id, settled_with, day, provider, provider_account_id, charge_category)
);
select protect_tenant_table('billed_adjustments', 'select');

-- Totals of what came after its month was closed, as usage_rollups and label_cells, by the day on which it is booked.
-- It is in these and not in those: totals of a closed month are never added to.
create table adjustment_rollups (
  org_id uuid not null,
  dimension text not null check (dimension in ('model', 'provider', 'team', 'feature', 'project', 'key', 'user', 'session', 'source')),
  booked_on date not null,
  -- of the call, as in usage_rollups
  bucket timestamptz not null,
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
  primary key (org_id, dimension, booked_on, bucket, key)
);
create index adjustment_rollups_by_bucket on adjustment_rollups (org_id, dimension, bucket);
select protect_tenant_table('adjustment_rollups', 'select');

create table adjustment_labels (
  org_id uuid not null,
  booked_on date not null,
  day date not null,
  provider text not null,
  model text not null,
  team_id text not null,
  feature text not null,
  session_id text not null,
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
  primary key (org_id, booked_on, day, provider, model, team_id, feature, session_id)
);
create index adjustment_labels_by_day on adjustment_labels (org_id, day);
select protect_tenant_table('adjustment_labels', 'select');

alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in (
  'gap_run.start', 'gap_run.cancel', 'billing_import.start', 'billing_sync.start', 'connection.schedule', 'reprice.start', 'reprice.cancel'));
`,
  // Without closings an adjustment of a closed month is a change like any other: it goes back into the totals.
  down: `
set local role app_system;
insert into usage_rollups select org_id, dimension, bucket, key, sum(calls), sum(input_tokens), sum(output_tokens), sum(cache_read),
  sum(cache_creation), sum(reasoning_tok), sum(cost_usd), sum(computed_cost_usd), sum(reported_cost_usd), sum(unpriced), sum(price_gaps),
  sum(unmetered), sum(unknown_biller), min(first_seen), max(last_seen)
from adjustment_rollups group by org_id, dimension, bucket, key
on conflict (org_id, dimension, bucket, key) do update set calls = usage_rollups.calls + excluded.calls,
  input_tokens = usage_rollups.input_tokens + excluded.input_tokens, output_tokens = usage_rollups.output_tokens + excluded.output_tokens,
  cache_read = usage_rollups.cache_read + excluded.cache_read, cache_creation = usage_rollups.cache_creation + excluded.cache_creation,
  reasoning_tok = usage_rollups.reasoning_tok + excluded.reasoning_tok, cost_usd = usage_rollups.cost_usd + excluded.cost_usd,
  computed_cost_usd = usage_rollups.computed_cost_usd + excluded.computed_cost_usd,
  reported_cost_usd = usage_rollups.reported_cost_usd + excluded.reported_cost_usd, unpriced = usage_rollups.unpriced + excluded.unpriced,
  price_gaps = usage_rollups.price_gaps + excluded.price_gaps, unmetered = usage_rollups.unmetered + excluded.unmetered,
  unknown_biller = usage_rollups.unknown_biller + excluded.unknown_biller;
insert into label_cells select org_id, day, provider, model, team_id, feature, sum(calls), sum(input_tokens), sum(output_tokens), sum(cache_read),
  sum(cache_creation), sum(reasoning_tok), sum(cost_usd), sum(computed_cost_usd), sum(reported_cost_usd), sum(unpriced), min(first_seen), max(last_seen)
from adjustment_labels group by org_id, day, provider, model, team_id, feature
on conflict (org_id, day, provider, model, team_id, feature) do update set calls = label_cells.calls + excluded.calls,
  input_tokens = label_cells.input_tokens + excluded.input_tokens, output_tokens = label_cells.output_tokens + excluded.output_tokens,
  cache_read = label_cells.cache_read + excluded.cache_read, cache_creation = label_cells.cache_creation + excluded.cache_creation,
  reasoning_tok = label_cells.reasoning_tok + excluded.reasoning_tok, cost_usd = label_cells.cost_usd + excluded.cost_usd,
  computed_cost_usd = label_cells.computed_cost_usd + excluded.computed_cost_usd,
  reported_cost_usd = label_cells.reported_cost_usd + excluded.reported_cost_usd, unpriced = label_cells.unpriced + excluded.unpriced;
delete from outbox where kind in ('reprice.start', 'reprice.cancel');
reset role;
alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check
  check (kind in ('gap_run.start', 'gap_run.cancel', 'billing_import.start', 'billing_sync.start', 'connection.schedule'));
drop table adjustment_labels, adjustment_rollups, billed_adjustments, period_billed, period_totals, period_closings;
alter table rollup_state drop column closed_until;
drop table event_price_changes, reprice_totals, reprice_runs;
drop index event_adjustments_by_time;
alter table event_adjustments drop column ingested_at;
`,
};
