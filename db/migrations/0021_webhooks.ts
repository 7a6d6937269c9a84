import type { Migration } from './migration.js';

/** Receivers of webhooks, every message, and every attempt to deliver one (docs/decisions/0033, 0035). */
export const webhooks: Migration = {
  name: '0021_webhooks',
  up: `
create table webhook_endpoints (
  org_id uuid not null references organizations (id),
  id uuid not null,
  url text not null check (length(url) between 1 and 2048),
  description text not null check (length(description) <= 256),
  -- '{}' stands for every type, those to come included
  event_types text[] not null default '{}',
  status text not null check (status in ('active', 'disabled')),
  disabled_reason text check (disabled_reason in ('requested', 'gone')),
  disabled_at timestamptz,
  -- the secrets, sealed together and bound to organization and endpoint: the current one, and the one before while it
  -- signs too; null once the endpoint is removed, or when the operator has given up what no key opens
  ciphertext bytea,
  secret_key_id text,
  last_delivered_at timestamptz,
  last_failed_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null,
  removed_at timestamptz,
  primary key (org_id, id),
  check ((ciphertext is null) = (secret_key_id is null)),
  check ((status = 'disabled') = (disabled_reason is not null)),
  check ((status = 'disabled') = (disabled_at is not null)),
  check (removed_at is null or ciphertext is null)
);
select protect_tenant_table('webhook_endpoints', 'select, insert, update');

-- One row for each thing that happened, where somebody is told of it: the same bytes for every receiver and attempt.
create table webhook_messages (
  org_id uuid not null references organizations (id),
  id uuid not null,
  type text not null check (type in ('alert.created', 'gap_run.completed', 'webhook.test')),
  body text not null check (length(body) <= 16384),
  created_at timestamptz not null default now(),
  primary key (org_id, id)
);
create index webhook_messages_by_age on webhook_messages (org_id, created_at);
select protect_tenant_table('webhook_messages', 'select, insert');

create table webhook_deliveries (
  org_id uuid not null,
  id uuid not null,
  endpoint_id uuid not null,
  message_id uuid not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed', 'cancelled')),
  -- of the current series: a redelivery begins a new one
  attempts integer not null default 0,
  next_attempt_at timestamptz default now(),
  last_status integer,
  last_error text,
  created_at timestamptz not null default now(),
  finished_at timestamptz,
  primary key (org_id, id),
  unique (org_id, endpoint_id, message_id),
  foreign key (org_id, endpoint_id) references webhook_endpoints (org_id, id),
  foreign key (org_id, message_id) references webhook_messages (org_id, id),
  check ((status = 'pending') = (next_attempt_at is not null)),
  check ((status = 'pending') = (finished_at is null))
);
create index webhook_deliveries_due on webhook_deliveries (org_id, endpoint_id, next_attempt_at) where status = 'pending';
-- What waits too long, whosever it is.
create index webhook_deliveries_overdue on webhook_deliveries (next_attempt_at) where status = 'pending';
create index webhook_deliveries_newest on webhook_deliveries (org_id, endpoint_id, created_at desc, id desc);
create index webhook_deliveries_of_message on webhook_deliveries (org_id, message_id);
select protect_tenant_table('webhook_deliveries', 'select, insert, update');

create table webhook_attempts (
  org_id uuid not null,
  delivery_id uuid not null,
  -- over all series of the delivery, from 1
  number integer not null,
  started_at timestamptz not null default now(),
  duration_ms integer,
  -- the receiver's answer; null where none came
  http_status integer,
  -- why there was none, or why the answer is a failure
  error text,
  -- the beginning of what the receiver said
  answer text check (length(answer) <= 1024),
  primary key (org_id, delivery_id, number),
  foreign key (org_id, delivery_id) references webhook_deliveries (org_id, id)
);
create index webhook_attempts_by_time on webhook_attempts (started_at);
select protect_tenant_table('webhook_attempts', 'select, insert, update');

alter table retention_runs drop constraint retention_runs_step_check;
alter table retention_runs add constraint retention_runs_step_check check (step in ('events', 'payloads', 'idempotency_keys', 'audit_log', 'rate_limits', 'alerts', 'webhook_messages'));

alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in ('gap_run.start', 'gap_run.cancel', 'billing_import.start', 'billing_sync.start', 'connection.schedule', 'reprice.start', 'reprice.cancel', 'webhook.deliver'));
`,
  down: `
set local role app_system;
delete from outbox where kind = 'webhook.deliver';
reset role;
alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in ('gap_run.start', 'gap_run.cancel', 'billing_import.start', 'billing_sync.start', 'connection.schedule', 'reprice.start', 'reprice.cancel'));
delete from retention_runs where step = 'webhook_messages';
alter table retention_runs drop constraint retention_runs_step_check;
alter table retention_runs add constraint retention_runs_step_check check (step in ('events', 'payloads', 'idempotency_keys', 'audit_log', 'rate_limits', 'alerts'));
drop table webhook_attempts, webhook_deliveries, webhook_messages, webhook_endpoints;
`,
};
