import type { Migration } from './migration.js';

/** Observations that clients report in parts, until all parts are there (docs/ingest.md). */
export const observationRecords: Migration = {
  name: '0052_observation_records',
  up: `
create table observation_records (
  org_id uuid not null,
  -- the reporting key: clients' ids are unique among its reports
  api_key_id text not null,
  kind text not null check (kind in ('generation', 'trace')),
  record_id text not null check (length(record_id) between 1 and 512),
  -- of a generation; null: not reported yet
  trace_id text check (length(trace_id) between 1 and 512),
  -- {name: [microseconds, 0 for a create or 1 for an update, value]}: usage, times and labels, never prompts
  fields jsonb not null default '{}',
  -- of a trace: a hash of the labels that all its stored calls have
  passed_on text check (length(passed_on) <= 32),
  updated_at timestamptz not null default now(),
  primary key (org_id, api_key_id, kind, record_id)
);
create index observation_records_of_trace on observation_records (org_id, api_key_id, trace_id) where trace_id is not null;
create index observation_records_oldest on observation_records (updated_at);
select protect_tenant_table('observation_records', 'select, insert, update');
`,
  down: 'drop table observation_records;',
};
