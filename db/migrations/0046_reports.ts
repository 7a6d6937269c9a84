import type { Migration } from './migration.js';

const OUTBOX_BEFORE = `'gap_run.start', 'gap_run.cancel', 'billing_import.start', 'billing_sync.start', 'connection.schedule', 'reprice.start', 'reprice.cancel', 'webhook.deliver', 'savings_run.start', 'claim.wake', 'weights.recompute', 'invoice_run.start', 'invoice_run.cancel'`;
const MESSAGES_BEFORE = `'alert.created', 'claim.created', 'claim.reminder', 'claim.status_changed', 'dispute.opened', 'dispute.resolved', 'gap_run.completed', 'webhook.test', 'invoice.processed', 'invoice.failed'`;
const STEPS_BEFORE = `'events', 'payloads', 'idempotency_keys', 'audit_log', 'rate_limits', 'alerts', 'webhook_messages', 'savings_runs', 'gap_runs', 'blobs'`;
const SECTIONS = `array['summary', 'spend', 'violations', 'enforcement', 'reconciliation']`;

/** Management reports, each of which is its run too, and their schedules. The documents are in the blob store. */
export const reports: Migration = {
  name: '0046_reports',
  up: `
create table reports (
  org_id uuid not null references organizations (id),
  id uuid not null,
  -- UTC days, both included
  period_from date not null,
  period_to date not null,
  sections text[] not null check (cardinality(sections) > 0 and sections <@ ${SECTIONS}),
  cause text not null check (cause in ('request', 'schedule')),
  -- of the schedule that it is of
  cadence text check (cadence in ('weekly', 'monthly')),
  requested_by text,
  -- of the Idempotency-Key that it was asked for with: a repeat finds it
  request_key text,
  status text not null check (status in ('queued', 'running', 'succeeded', 'partial', 'failed', 'cancelled')),
  stage text not null default 'queued',
  -- where the blob store holds the document
  blob_key text,
  size_bytes bigint check (size_bytes > 0),
  generated_at timestamptz,
  expires_at timestamptz,
  error_code text,
  error_message text,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  heartbeat_at timestamptz,
  finished_at timestamptz,
  primary key (org_id, id),
  check (period_from <= period_to),
  check ((cause = 'schedule') = (cadence is not null)),
  check (num_nonnulls(blob_key, size_bytes, generated_at, expires_at) in (0, 4)),
  check (status <> 'succeeded' or generated_at is not null)
);
-- A scheduled report is made once; one that failed may be tried again.
create unique index reports_of_schedule on reports (org_id, cadence, period_from)
  where cadence is not null and status in ('queued', 'running', 'succeeded');
create unique index reports_of_request on reports (org_id, request_key) where request_key is not null;
create index reports_newest on reports (org_id, created_at desc, id);
create index reports_generated on reports (org_id, generated_at desc, id) where generated_at is not null;
select protect_tenant_table('reports', 'select, insert, update, delete');

create table report_schedules (
  org_id uuid not null references organizations (id),
  cadence text not null check (cadence in ('weekly', 'monthly')),
  sections text[] not null check (cardinality(sections) > 0 and sections <@ ${SECTIONS}),
  -- IANA name
  time_zone text not null,
  -- where a report goes: objects with id, type and, of an e-mail, to
  deliveries jsonb not null default '[]',
  -- the first day of the first period that is not made yet
  due_from date not null,
  created_by text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, cadence)
);
select protect_tenant_table('report_schedules', 'select, insert, update, delete');

alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in (${OUTBOX_BEFORE}, 'report.start', 'report.schedule'));

alter table webhook_messages drop constraint webhook_messages_type_check;
alter table webhook_messages add constraint webhook_messages_type_check check (type in (${MESSAGES_BEFORE}, 'report.generated'));

alter table retention_runs drop constraint retention_runs_step_check;
alter table retention_runs add constraint retention_runs_step_check check (step in (${STEPS_BEFORE}, 'reports'));
`,
  down: `
delete from retention_runs where step = 'reports';
alter table retention_runs drop constraint retention_runs_step_check;
alter table retention_runs add constraint retention_runs_step_check check (step in (${STEPS_BEFORE}));
set local role app_system;
delete from webhook_attempts a using webhook_deliveries d, webhook_messages m
where a.org_id = d.org_id and a.delivery_id = d.id and d.org_id = m.org_id and d.message_id = m.id and m.type = 'report.generated';
delete from webhook_deliveries d using webhook_messages m where d.org_id = m.org_id and d.message_id = m.id and m.type = 'report.generated';
delete from webhook_messages where type = 'report.generated';
delete from outbox where kind like 'report.%';
reset role;
alter table webhook_messages drop constraint webhook_messages_type_check;
alter table webhook_messages add constraint webhook_messages_type_check check (type in (${MESSAGES_BEFORE}));
alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in (${OUTBOX_BEFORE}));
drop table report_schedules, reports;
`,
};
