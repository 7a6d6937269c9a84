import type { Migration } from './migration.js';

/** Disputes: amounts that people have decided to ask back from providers, with their days (docs/decisions/0021, 0022). */
export const disputes: Migration = {
  name: '0027_disputes',
  up: `
create table disputes (
  org_id uuid not null,
  id uuid not null,
  finding_id uuid not null,
  -- the claim that it is a part of; it may go from one to another
  claim_id uuid,
  provider text not null,
  provider_account_id text not null,
  model text not null,
  -- a key of the violation taxonomy, or 'unexplained'
  kind text not null,
  period_start date not null,
  period_end date not null check (period_end >= period_start),
  status text not null default 'open' check (status in ('open', 'claimed', 'resolved')),
  -- of the days' impact, rounded down
  amount_cents bigint not null check (amount_cents > 0),
  provider_cost_usd numeric(24,12) not null,
  our_cost_usd numeric(24,12) not null,
  confidence_tier text not null check (confidence_tier in ('HIGH', 'MEDIUM', 'LOW')),
  -- the finding as it was: its sentence, and what it rests on
  reason text not null,
  evidence jsonb not null check (jsonb_typeof(evidence) = 'object'),
  -- of whoever opened it
  notes text check (length(notes) <= 4000),
  opened_at timestamptz not null default now(),
  opened_by text not null,
  resolution text check (length(resolution) between 1 and 64),
  resolution_notes text check (length(resolution_notes) <= 4000),
  resolved_at timestamptz,
  resolved_by text,
  primary key (org_id, id),
  foreign key (org_id, finding_id) references findings (org_id, id),
  check ((status = 'resolved') = (resolved_at is not null)),
  check ((resolved_at is null) = (resolution is null)),
  check ((resolved_at is null) = (resolved_by is null)),
  check (status <> 'claimed' or claim_id is not null)
);
create index disputes_newest on disputes (org_id, opened_at desc, id desc);
create index disputes_of_finding on disputes (org_id, finding_id, opened_at desc, id desc);
select protect_tenant_table('disputes', 'select, insert, update');

-- The days as they were when the dispute was opened: a later run changes none of them.
create table dispute_days (
  org_id uuid not null,
  dispute_id uuid not null,
  day date not null,
  provider text not null,
  provider_account_id text not null,
  model text not null,
  kind text not null,
  variant text not null,
  billed_usd numeric(24,12) not null,
  expected_usd numeric(24,12) not null,
  impact_usd numeric(24,12) not null,
  rate_usd numeric(24,12) not null,
  volume_usd numeric(24,12) not null,
  own_pricing_usd numeric(24,12) not null,
  -- false once the dispute is resolved
  live boolean not null default true,
  primary key (org_id, dispute_id, day),
  foreign key (org_id, dispute_id) references disputes (org_id, id),
  check (impact_usd = rate_usd + volume_usd + own_pricing_usd),
  check (billed_usd - expected_usd = impact_usd)
);
-- The same dollars are never asked back twice at a time.
create unique index dispute_days_live on dispute_days (org_id, provider, provider_account_id, model, day, kind, variant) where live;
create index dispute_days_of_series on dispute_days (org_id, provider, provider_account_id, model, day);
-- What the financial summary takes off again.
create index dispute_days_settled on dispute_days (org_id, provider, provider_account_id, model, kind, variant, day, dispute_id) where not live;
select protect_tenant_table('dispute_days', 'select, insert, update');

-- Findings of every status by their size.
create index findings_by_size on findings (org_id, (abs(impact_usd)) desc, id);
-- What the financial summary and the queue's sums read of a finding, without its evidence; where is which of them count.
create index findings_counted on findings (org_id, provider, provider_account_id, model, kind, variant, first_day)
  include (last_day, id, status, direction, blame, claimable, grade, provisional, critical, impact_usd)
  where status in ('open', 'confirmed') and (blame = 'provider' or kind = 'unexplained');

alter table webhook_messages drop constraint webhook_messages_type_check;
alter table webhook_messages add constraint webhook_messages_type_check check (type in ('alert.created', 'dispute.opened', 'gap_run.completed', 'webhook.test'));
`,
  down: `
set local role app_system;
delete from webhook_attempts a using webhook_deliveries d, webhook_messages m
where a.org_id = d.org_id and a.delivery_id = d.id and d.org_id = m.org_id and d.message_id = m.id and m.type = 'dispute.opened';
delete from webhook_deliveries d using webhook_messages m where d.org_id = m.org_id and d.message_id = m.id and m.type = 'dispute.opened';
delete from webhook_messages where type = 'dispute.opened';
reset role;
alter table webhook_messages drop constraint webhook_messages_type_check;
alter table webhook_messages add constraint webhook_messages_type_check check (type in ('alert.created', 'gap_run.completed', 'webhook.test'));
drop index findings_counted;
drop index findings_by_size;
drop table dispute_days, disputes;
`,
};
