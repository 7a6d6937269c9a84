import type { Migration } from './migration.js';

/**
 * Reports of one call by two instrumentations of a process that share no id are paired (docs/decisions/0001). Only
 * services with two instrumentations have rows here.
 */
export const pairedReports: Migration = {
  name: '0053_paired_reports',
  up: `
-- Equal for reports of one process with equal counts; null: the process is unknown, or the report has no usage.
alter table events add column pair_key bigint;

-- The instrumentations that reported calls of each service.
create table instrumentation_scopes (
  org_id uuid not null,
  service_name text not null,
  scope_name text not null,
  ingest_xid bigint not null default current_xid(),
  primary key (org_id, service_name, scope_name)
);
select protect_tenant_table('instrumentation_scopes', 'select, insert');

-- Reports of services with two instrumentations that can be one of a pair, and those that are.
create table paired_reports (
  org_id uuid not null,
  event_id uuid not null,
  pair_key bigint not null,
  start_at timestamptz not null,
  end_at timestamptz not null,
  service_name text not null,
  scope_name text not null,
  -- other scopes whose report of the call is known by an id
  taken_scopes text[] not null default '{}',
  -- the report that counts instead of this one, its scope, and the cost that is no longer counted
  paired_with uuid,
  paired_scope text,
  cost_usd numeric(24,12),
  primary key (org_id, event_id),
  check ((paired_with is null) = (paired_scope is null))
);
create index paired_reports_by_key on paired_reports (org_id, pair_key, start_at);
select protect_tenant_table('paired_reports', 'select, insert, update, delete');
-- Each belongs to an event, and is seen with it.
select limit_to_project('paired_reports', 'exists (select from events e
  where e.org_id = paired_reports.org_id and e.timestamp = paired_reports.start_at and e.id = paired_reports.event_id)');
`,
  down: `
drop table paired_reports, instrumentation_scopes;
alter table events drop column pair_key;
`,
};
