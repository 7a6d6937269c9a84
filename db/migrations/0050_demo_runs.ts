import type { Migration } from './migration.js';

/** Loads of the demo that a request asked for; what is loaded belongs to another organization. */
export const demoRuns: Migration = {
  name: '0050_demo_runs',
  up: `
create table demo_runs (
  org_id uuid not null references organizations (id),
  id uuid not null,
  status text not null default 'queued' check (status in ('queued', 'running', 'succeeded', 'failed')),
  stage text not null default 'queued' check (length(stage) between 1 and 256),
  error_message text check (length(error_message) between 1 and 1024),
  requested_by text not null check (length(requested_by) between 1 and 64),
  created_at timestamptz not null default now(),
  started_at timestamptz,
  -- written by the program that loads, while it lives
  alive_at timestamptz not null default now(),
  finished_at timestamptz,
  primary key (org_id, id)
);
create unique index demo_runs_one_open on demo_runs (org_id) where finished_at is null;
select protect_tenant_table('demo_runs', 'select, insert, update');
`,
  down: 'drop table demo_runs;',
};
