import type { Migration } from './migration.js';

/**
 * Settings of an organization, with checks of their shape; and retention: the runs that removed
 * calls, and the totals of the removed calls (docs/decisions/0005, 0039).
 */
export const settingsAndRetention: Migration = {
  name: '0016_settings_and_retention',
  up: `
-- Absent: the default. The fields themselves are read and checked by domain/installation/settings.ts; a field that no
-- version knows, or one of another type, would be obeyed by nobody.
alter table organizations add constraint organizations_settings_check check (
  jsonb_typeof(settings) = 'object'
  and settings - array['drop_payloads', 'holidays', 'time_zone', 'counted_scopes'] = '{}'
  and jsonb_typeof(coalesce(settings -> 'drop_payloads', 'false')) = 'boolean'
  and jsonb_typeof(coalesce(settings -> 'holidays', '[]')) = 'array'
  and jsonb_typeof(coalesce(settings -> 'time_zone', '""')) = 'string'
  and jsonb_typeof(coalesce(settings -> 'counted_scopes', '[]')) = 'array'
);

-- What the events and copies that were removed for their age added up to: totals stay, so they are the events that
-- are left plus this.
create table removed_usage (
  org_id uuid primary key,
  calls bigint not null,
  cost_usd numeric(24,12) not null,
  removed_at timestamptz not null default now()
);
select protect_tenant_table('removed_usage', 'select');

-- Each step of each run of the retention. No tenant's datum: it removes across organizations.
create table retention_runs (
  id uuid not null,
  step text not null check (step in ('events', 'payloads', 'idempotency_keys', 'audit_log', 'rate_limits')),
  started_at timestamptz not null default now(),
  -- null: at work, or killed
  finished_at timestamptz,
  removed_rows bigint not null default 0,
  dropped_partitions text[] not null default '{}',
  -- null: it did all that there was to do
  error_message text,
  primary key (id, step)
);
create index retention_runs_newest on retention_runs (step, started_at desc);
grant select, insert, update, delete on retention_runs to app_system;
`,
  down: `
drop table retention_runs;
drop table removed_usage;
alter table organizations drop constraint organizations_settings_check;
`,
};
