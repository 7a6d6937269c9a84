import type { Migration } from './migration.js';

/** Tokens and costs that metrics report, to find calls that are missing (docs/ingest.md). */
export const meteredUsage: Migration = {
  name: '0054_metered_usage',
  up: `
-- The last value of each series, so that a repeated point adds nothing and a cumulative one adds its growth.
create table metered_series (
  org_id uuid not null,
  series_id uuid not null,
  -- false: a single point of a delta, kept as long as its client may repeat it
  is_cumulative boolean not null,
  -- tokens, or pico-dollars
  amount numeric(38) not null check (amount >= 0),
  updated_at timestamptz not null default now(),
  primary key (org_id, series_id)
);
create index metered_series_oldest on metered_series (is_cumulative, updated_at);
select protect_tenant_table('metered_series', 'select, insert, update');

create table metered_usage (
  org_id uuid not null,
  hour timestamptz not null,
  -- project of the reporting key's workspace; '' is a key of the organization
  project_id text not null,
  service_name text not null,
  metric text not null,
  measure text not null check (measure in ('input', 'output', 'cost')),
  -- tokens, or pico-dollars
  amount numeric(38) not null check (amount >= 0),
  last_at timestamptz not null default now(),
  primary key (org_id, hour, project_id, service_name, metric, measure)
);
select protect_tenant_table('metered_usage', 'select, insert, update');
select limit_to_project('metered_usage', 'project_id = current_setting(''app.project_id'')');
`,
  down: 'drop table metered_usage, metered_series;',
};
