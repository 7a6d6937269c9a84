import type { Migration } from './migration.js';

/**
 * Inputs and results of gap runs, kept so that the cost of a run is proportional to what changed since the last one: the mark of a
 * provider-day's inputs, the evidence of a model's day, and the explanation of a series.
 */
export const runInputs: Migration = {
  name: '0026_run_inputs',
  up: `
-- What the search for explanations reads of a model's day; null on hours, and on days from before it was kept.
alter table gap_buckets add column evidence jsonb;

-- What a unit was matched from: the same text means that matching it again would find the same. '' equals nothing.
alter table gap_run_units add column input_mark text not null default '';

-- Provider-days that were compared and found as they were published; by how many hours each provider's days are shifted.
alter table gap_runs add column unchanged_units integer not null default 0;
alter table gap_runs add column day_offsets jsonb not null default '{}';
-- When its units were decided: a repeat goes by them.
alter table gap_runs add column planned_at timestamptz;
-- Since when it is its turn to explain: one run of an organization at a time, up to its end.
alter table gap_runs add column explaining_since timestamptz;

-- Grows whenever billing_cells of the day change: what the fold added of the log, in rows.
create table observed_days (
  org_id uuid not null,
  billed_by text not null,
  day date not null,
  revision bigint not null,
  primary key (org_id, billed_by, day)
);
select protect_tenant_table('observed_days', 'select');

-- The accounts that a run explains anew, in their order, with what it found there.
create table gap_run_accounts (
  org_id uuid not null,
  run_id uuid not null,
  ordinal integer not null,
  provider text not null,
  provider_account_id text not null,
  status text not null default 'pending' check (status in ('pending', 'done', 'failed')),
  error_message text,
  -- what an account's explanation rests on beside its days: {ties, suspects}, and what tells that it has changed
  context jsonb not null,
  context_mark text not null,
  suspects_mark text not null,
  findings jsonb not null default '[]' check (jsonb_typeof(findings) = 'array'),
  primary key (org_id, run_id, ordinal),
  unique (org_id, run_id, provider, provider_account_id),
  foreign key (org_id, run_id) references gap_runs (org_id, id)
);
select protect_tenant_table('gap_run_accounts', 'select, insert, update, delete');

-- The series of these accounts that are explained anew.
create table gap_run_series (
  org_id uuid not null,
  run_id uuid not null,
  provider text not null,
  provider_account_id text not null,
  model text not null,
  is_done boolean not null default false,
  -- null on a series that is done: it has no day any more
  explanation jsonb,
  primary key (org_id, run_id, provider, provider_account_id, model),
  foreign key (org_id, run_id) references gap_runs (org_id, id)
);
select protect_tenant_table('gap_run_series', 'select, insert, update, delete');

-- The explanation of each series as it was published, before other series of its account were looked at.
create table series_explanations (
  org_id uuid not null,
  provider text not null,
  provider_account_id text not null,
  model text not null,
  run_id uuid not null,
  explanation jsonb not null,
  explained_at timestamptz not null default now(),
  primary key (org_id, provider, provider_account_id, model),
  foreign key (org_id, run_id) references gap_runs (org_id, id)
);
select protect_tenant_table('series_explanations', 'select, insert, update, delete');

-- What the published findings of an account rest on; stale: some of its days were published without being explained.
create table explained_accounts (
  org_id uuid not null,
  provider text not null,
  provider_account_id text not null,
  context_mark text not null,
  suspects_mark text not null,
  stale boolean not null default false,
  primary key (org_id, provider, provider_account_id)
);
select protect_tenant_table('explained_accounts', 'select, insert, update, delete');

-- What had been decided on a finding that is gone: it holds again when the finding returns.
alter table findings add column decided_as text check (decided_as in ('confirmed', 'dismissed'));
create index finding_days_by_day on finding_days (org_id, day);

-- The keys that bills name, each found without reading its rows.
create index billing_rows_by_key on billing_rows (org_id, provider, api_key) where api_key <> '';

-- A day's charges are a few rows beside the hours of its usage report: found without reading these.
drop index billing_rows_by_day;
create index billing_rows_by_day on billing_rows (org_id, provider, day, source_id, feed);

alter table retention_runs drop constraint retention_runs_step_check;
alter table retention_runs add constraint retention_runs_step_check check (step in ('events', 'payloads', 'idempotency_keys', 'audit_log', 'rate_limits', 'alerts', 'webhook_messages', 'savings_runs', 'gap_runs'));
`,
  down: `
drop index billing_rows_by_day;
create index billing_rows_by_day on billing_rows (org_id, provider, day, source_id);
delete from retention_runs where step = 'gap_runs';
alter table retention_runs drop constraint retention_runs_step_check;
alter table retention_runs add constraint retention_runs_step_check check (step in ('events', 'payloads', 'idempotency_keys', 'audit_log', 'rate_limits', 'alerts', 'webhook_messages', 'savings_runs'));
drop index billing_rows_by_key;
drop index finding_days_by_day;
alter table findings drop column decided_as;
drop table explained_accounts, series_explanations, gap_run_series, gap_run_accounts, observed_days;
alter table gap_runs drop column unchanged_units, drop column day_offsets, drop column explaining_since, drop column planned_at;
alter table gap_run_units drop column input_mark;
alter table gap_buckets drop column evidence;
`,
};
