import type { Migration } from './migration.js';

/**
 * Starts and signals of workflows, written in the transaction of the row that they follow and delivered by the
 * dispatcher (temporal.md R3). Ids are deterministic, so a second delivery is the same start.
 */
export const outbox: Migration = {
  name: '0006_outbox',
  up: `
create table outbox (
  org_id uuid not null,
  id bigint generated always as identity,
  kind text not null check (kind in ('gap_run.start', 'gap_run.cancel', 'billing_import.start')),
  -- what the message is about, e.g. the run's uuid
  subject_id uuid not null,
  attempts integer not null default 0,
  next_attempt_at timestamptz not null default now(),
  last_error text,
  dispatched_at timestamptz,
  dead_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (org_id, id)
);
create index outbox_due on outbox (next_attempt_at) where dispatched_at is null and dead_at is null;
select protect_tenant_table('outbox', 'select, insert');
`,
  down: 'drop table outbox;',
};
