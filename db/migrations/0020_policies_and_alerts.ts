import type { Migration } from './migration.js';

/** Policies, and the feed of what broke them and of what the system has to say (docs/decisions/0025, 0026). */
export const policiesAndAlerts: Migration = {
  name: '0020_policies_and_alerts',
  up: `
-- Moves with every change of what calls are judged by when they are stored (policies, and who is told of alerts), so
-- that the row's version proves what was assumed of it (docs/decisions/0005).
alter table organizations add column rules_revision bigint not null default 0;
grant update (rules_revision) on organizations to app_rw;

create table policies (
  org_id uuid not null references organizations (id),
  -- 1, 2, … within the organization: a number of the whole instance would tell what others do
  id integer not null check (id > 0),
  policy_type text not null check (policy_type in ('approved_models', 'banned_patterns', 'key_environment_check', 'approval_required_threshold_cents')),
  config jsonb not null check (jsonb_typeof(config) = 'object'),
  enabled boolean not null,
  -- patterns that are passed over on every instance: [{"index", "code", "reason"}]
  skipped jsonb not null default '[]' check (jsonb_typeof(skipped) = 'array'),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  updated_by text not null,
  primary key (org_id, policy_type),
  unique (org_id, id)
);
select protect_tenant_table('policies', 'select, insert, update');
-- Policies hold for the whole organization, and its workspaces may read them.
select limit_to_project('policies', 'true');

create table alerts (
  org_id uuid not null references organizations (id),
  id uuid not null,
  kind text not null check (kind in ('policy', 'notice')),
  policy_type text check (policy_type in ('approved_models', 'banned_patterns', 'key_environment_check', 'approval_required_threshold_cents')),
  policy_id integer,
  event_id uuid,
  event_timestamp timestamptz,
  notice text check (notice in ('connection_broken', 'double_instrumentation', 'webhook_failing', 'webhook_disabled')),
  -- what a notice is about, once: a second one with the same key is the same notice
  notice_key text,
  subject_type text not null,
  subject_id text not null,
  severity text not null check (severity in ('low', 'medium', 'high')),
  status text not null default 'open' check (status in ('open', 'acknowledged')),
  message text not null,
  details jsonb not null check (jsonb_typeof(details) = 'object'),
  -- of the call, as it stood when the alert was made
  provider text,
  model text,
  team_id text,
  feature text,
  session_id text,
  project_id text,
  cost_usd numeric(24,12) check (cost_usd between 0 and 1000000000000),
  created_at timestamptz not null default now(),
  acknowledged_at timestamptz,
  acknowledged_by text,
  -- the alert that stands for this one since two events turned out to be one call; such a row is in no list
  merged_into uuid,
  primary key (org_id, id),
  check ((kind = 'policy') = (policy_type is not null)),
  check ((kind = 'policy') = (policy_id is not null)),
  check ((kind = 'policy') = (event_id is not null)),
  check ((kind = 'policy') = (event_timestamp is not null)),
  check ((kind = 'notice') = (notice is not null)),
  check ((kind = 'notice') = (notice_key is not null)),
  check ((status = 'acknowledged') = (acknowledged_at is not null)),
  check ((acknowledged_at is null) = (acknowledged_by is null))
);
-- One alert a call and policy.
create unique index alerts_of_event on alerts (org_id, event_id, policy_type) where kind = 'policy' and merged_into is null;
create unique index alerts_of_notice on alerts (org_id, notice_key) where kind = 'notice';
-- Of the whole feed, and for what goes for its age.
create index alerts_newest on alerts (org_id, created_at desc, id desc);
-- Of any filter (docs/decisions/0025): words of fixed lists stand before the time, so that each combination of them has
-- its newest at one end.
create index alerts_by_words on alerts (org_id, status, policy_type, severity, created_at desc, id desc) where merged_into is null;
create index alerts_by_model on alerts (org_id, model, status, policy_type, severity, created_at desc, id desc) where merged_into is null and model is not null;
create index alerts_of_project on alerts (org_id, project_id, status, policy_type, severity, created_at desc, id desc) where merged_into is null and project_id is not null;
select protect_tenant_table('alerts', 'select, insert, update, delete');
select limit_to_project('alerts', 'project_id = current_setting(''app.project_id'')');

alter table retention_runs drop constraint retention_runs_step_check;
alter table retention_runs add constraint retention_runs_step_check check (step in ('events', 'payloads', 'idempotency_keys', 'audit_log', 'rate_limits', 'alerts'));
`,
  down: `
delete from retention_runs where step = 'alerts';
alter table retention_runs drop constraint retention_runs_step_check;
alter table retention_runs add constraint retention_runs_step_check check (step in ('events', 'payloads', 'idempotency_keys', 'audit_log', 'rate_limits'));
drop table alerts;
drop table policies;
alter table organizations drop column rules_revision;
`,
};
