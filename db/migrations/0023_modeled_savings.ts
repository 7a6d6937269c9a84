import type { Migration } from './migration.js';

/** Modeled savings of enforcement rules, run by run, with the calls that contribute to them (docs/decisions/0027). */
export const modeledSavings: Migration = {
  name: '0023_modeled_savings',
  up: `
create table savings_runs (
  org_id uuid not null references organizations (id),
  id uuid not null,
  -- the 30 days before it was opened; another period is one that somebody asked for
  is_standard boolean not null,
  window_start timestamptz not null,
  window_end timestamptz not null,
  cause text not null check (cause in ('request', 'rule_change', 'schedule')),
  requested_by text,
  status text not null check (status in ('queued', 'running', 'succeeded', 'partial', 'failed', 'cancelled')),
  stage text not null default 'queued',
  -- who works on it: one that took longer than anybody waited for finds another here, and writes nothing more
  attempt uuid,
  -- the rules changed after the attempt had read them: another run follows this one
  again boolean not null default false,
  -- what follows is the attempt's: everything that was stored before this moment is in the result
  as_of timestamptz,
  price_version text,
  calls bigint not null default 0,
  -- how far in time
  cursor_at timestamptz,
  -- what all rules came to, which stays when the rest gives way
  saved_usd numeric(24,12) check (saved_usd >= 0),
  blocked bigint,
  downgraded bigint,
  error_code text,
  error_message text,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  heartbeat_at timestamptz,
  finished_at timestamptz,
  -- when what it found gave way to newer results; the run itself is kept for a while
  emptied_at timestamptz,
  primary key (org_id, id),
  check (window_start < window_end),
  check (status <> 'succeeded' or (as_of is not null and price_version is not null)),
  check ((status = 'succeeded') = (saved_usd is not null)),
  check ((saved_usd is null) = (blocked is null)),
  check ((saved_usd is null) = (downgraded is null))
);
-- Single flight, by period.
create unique index savings_runs_open on savings_runs (org_id) where is_standard and status in ('queued', 'running');
create unique index savings_runs_open_other on savings_runs (org_id, window_start, window_end)
  where not is_standard and status in ('queued', 'running');
create index savings_runs_newest on savings_runs (org_id, created_at desc, id);
select protect_tenant_table('savings_runs', 'select, insert, update, delete');

-- A run's rules as they were when it read them, and what each came to.
create table modeled_savings (
  org_id uuid not null,
  run_id uuid not null,
  rule_id uuid not null,
  -- the order in which rules are asked, from 1
  place integer not null,
  name text,
  type text not null,
  config jsonb not null,
  scope jsonb not null,
  mode text not null,
  asked bigint not null default 0,
  blocked bigint not null default 0,
  downgraded bigint not null default 0,
  saved_usd numeric(24,12) not null default 0 check (saved_usd >= 0),
  -- calls by the reason why nothing is known of them
  unpriced jsonb not null default '{}',
  unjudged jsonb not null default '{}',
  forgotten bigint not null default 0,
  primary key (org_id, run_id, rule_id),
  foreign key (org_id, run_id) references savings_runs (org_id, id)
);
select protect_tenant_table('modeled_savings', 'select, insert, update, delete');

-- The calls that make the savings up: a call is of one rule at most.
create table modeled_calls (
  org_id uuid not null,
  run_id uuid not null,
  rule_id uuid not null,
  timestamp timestamptz not null,
  event_id uuid not null,
  action text not null check (action in ('block', 'downgrade')),
  -- null: not known, for the reason beside it
  saved_usd numeric(24,12) check (saved_usd between 0 and 1000000000000),
  unpriced_reason text check (unpriced_reason in ('call_unpriced', 'no_price_for_model')),
  -- also the order in which they are listed and removed: a run has few rules and may have a million calls
  primary key (org_id, run_id, rule_id, timestamp, event_id),
  foreign key (org_id, run_id, rule_id) references modeled_savings (org_id, run_id, rule_id),
  check ((saved_usd is null) = (unpriced_reason is not null))
);
select protect_tenant_table('modeled_calls', 'select, insert, delete');

alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in ('gap_run.start', 'gap_run.cancel', 'billing_import.start', 'billing_sync.start', 'connection.schedule', 'reprice.start', 'reprice.cancel', 'webhook.deliver', 'savings_run.start'));

alter table retention_runs drop constraint retention_runs_step_check;
alter table retention_runs add constraint retention_runs_step_check check (step in ('events', 'payloads', 'idempotency_keys', 'audit_log', 'rate_limits', 'alerts', 'webhook_messages', 'savings_runs'));
`,
  down: `
delete from retention_runs where step = 'savings_runs';
alter table retention_runs drop constraint retention_runs_step_check;
alter table retention_runs add constraint retention_runs_step_check check (step in ('events', 'payloads', 'idempotency_keys', 'audit_log', 'rate_limits', 'alerts', 'webhook_messages'));
set local role app_system;
delete from outbox where kind = 'savings_run.start';
reset role;
alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in ('gap_run.start', 'gap_run.cancel', 'billing_import.start', 'billing_sync.start', 'connection.schedule', 'reprice.start', 'reprice.cancel', 'webhook.deliver'));
drop table modeled_calls, modeled_savings, savings_runs;
`,
};
