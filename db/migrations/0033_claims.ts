import type { Migration } from './migration.js';

/**
 * Claims: what is asked back from a provider, with every move of its life, what came of it, the evidence as it was frozen,
 * what was netted, and the credits that later bills seem to bring (docs/claims.md).
 */
export const claims: Migration = {
  name: '0033_claims',
  up: `
-- The legal moves of a claim; domain/claims/lifecycle.ts is the same table, and a test compares both.
create function is_claim_move(from_status text, to_status text) returns boolean language sql immutable as $$
  select coalesce(to_status = any (case from_status
    when 'draft' then array['submitted_to_provider']
    when 'submitted_to_provider' then array['provider_acknowledged', 'under_review', 'credit_approved', 'credit_issued', 'partial', 'denied', 'escalated']
    when 'provider_acknowledged' then array['under_review', 'credit_approved', 'credit_issued', 'partial', 'denied', 'escalated']
    when 'under_review' then array['credit_approved', 'credit_issued', 'partial', 'denied', 'escalated']
    when 'credit_approved' then array['credit_issued', 'partial', 'escalated']
    when 'escalated' then array['provider_acknowledged', 'under_review', 'credit_approved', 'credit_issued', 'partial', 'denied']
  end), false)
$$;

create table claims (
  org_id uuid not null references organizations (id),
  id uuid not null,
  -- counts up with every change of the row that somebody asked for; a command names the one that it has seen
  version integer not null default 1 check (version > 0),
  status text not null default 'draft' check (status in ('draft', 'submitted_to_provider', 'provider_acknowledged', 'under_review', 'credit_approved', 'credit_issued', 'denied', 'partial', 'escalated')),
  provider text not null,
  provider_account_id text not null,
  period_start date not null,
  period_end date not null check (period_end >= period_start),
  -- of its disputes' days less what was netted, rounded down
  total_recoverable_cents bigint not null check (total_recoverable_cents > 0),
  -- of the least sure of its disputes
  confidence_tier text not null check (confidence_tier in ('HIGH', 'MEDIUM', 'LOW')),
  evidence jsonb not null check (jsonb_typeof(evidence) = 'object'),
  -- of the canonical text of the evidence
  evidence_sha256 bytea not null check (length(evidence_sha256) = 32),
  -- what the bill said of its series' days when it was frozen, [{model, day, usd}]: by it a restated day is told
  billed_days jsonb not null default '[]' check (jsonb_typeof(billed_days) = 'array'),
  -- a day under it was restated after it was frozen
  evidence_stale_at timestamptz,
  submitted_at timestamptz,
  resolved_at timestamptz,
  -- when it came into its status
  entered_at timestamptz not null default now(),
  external_ticket_id text check (length(external_ticket_id) between 1 and 256),
  credit_issued_cents bigint check (credit_issued_cents > 0),
  notes text check (length(notes) <= 4000),
  -- the next notice, by name, and when it is due; null: none
  next_action text,
  next_action_at timestamptz,
  -- the steps of its status that somebody was told of
  steps_told text[] not null default '{}',
  snoozed_until timestamptz,
  created_at timestamptz not null default now(),
  created_by text not null,
  updated_at timestamptz not null default now(),
  primary key (org_id, id),
  check ((status = 'draft') = (submitted_at is null)),
  check ((status in ('credit_issued', 'denied', 'partial')) = (resolved_at is not null)),
  check (status not in ('credit_issued', 'partial') or credit_issued_cents is not null),
  check (status <> 'partial' or credit_issued_cents < total_recoverable_cents),
  check ((next_action is null) = (next_action_at is null)),
  check (resolved_at is null or next_action is null)
);
create index claims_newest on claims (org_id, created_at desc, id desc);
create index claims_open on claims (org_id, provider, provider_account_id) where resolved_at is null;
create index claims_due on claims (next_action_at) where next_action_at is not null;
select protect_tenant_table('claims', 'select, insert, update, delete');

create function refuse_illegal_claim_move() returns trigger language plpgsql as $$
begin
  if new.status <> old.status and not is_claim_move(old.status, new.status) then
    raise exception 'a claim does not go from % to %', old.status, new.status using errcode = 'check_violation';
  end if;
  if old.submitted_at is not null and new.submitted_at is distinct from old.submitted_at
    or old.resolved_at is not null and new.resolved_at is distinct from old.resolved_at then
    raise exception 'when a claim was submitted or resolved never changes' using errcode = 'check_violation';
  end if;
  if new.status <> 'draft' and (new.total_recoverable_cents <> old.total_recoverable_cents or new.evidence_sha256 <> old.evidence_sha256) then
    raise exception 'what a claim asks for is frozen once it is sent' using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger claims_move_legally before update on claims for each row execute function refuse_illegal_claim_move();

-- Every move, its making among them, in the order of the versions that it made. Nothing is ever changed in it.
create table claim_events (
  org_id uuid not null,
  claim_id uuid not null,
  version integer not null,
  -- of the command that asked for it: a second one with the same id is the same command
  command_id text not null check (length(command_id) between 1 and 200),
  from_status text,
  to_status text not null,
  at timestamptz not null,
  actor text not null,
  -- what the move said: ticket, reason of a denial, credit
  fields jsonb not null default '{}' check (jsonb_typeof(fields) = 'object'),
  -- the notice that was next from then on
  next_action text,
  next_action_at timestamptz,
  primary key (org_id, claim_id, version),
  foreign key (org_id, claim_id) references claims (org_id, id) on delete cascade,
  check (case when from_status is null then to_status = 'draft' else is_claim_move(from_status, to_status) end)
);
create unique index claim_events_of_command on claim_events (org_id, command_id);
select protect_tenant_table('claim_events', 'select, insert');

-- What the provider's last word was.
create table claim_outcomes (
  org_id uuid not null,
  claim_id uuid not null,
  status text not null check (status in ('credit_issued', 'denied', 'partial')),
  denial_reason text check (length(denial_reason) between 1 and 4000),
  -- a key of the taxonomy: what it was, by the provider's word
  violation_type text,
  credit_issued_cents bigint check (credit_issued_cents > 0),
  actor text not null,
  at timestamptz not null,
  primary key (org_id, claim_id),
  foreign key (org_id, claim_id) references claims (org_id, id),
  check (status <> 'denied' or (denial_reason is not null and violation_type is not null and credit_issued_cents is null)),
  check (status = 'denied' or credit_issued_cents is not null)
);
select protect_tenant_table('claim_outcomes', 'select, insert');

-- The same, kind by kind of what was claimed, with what it was believed on: what the weights are learned from.
create table claim_outcome_kinds (
  org_id uuid not null,
  claim_id uuid not null,
  claimed_type text not null,
  provider text not null,
  claimed_cents bigint not null check (claimed_cents >= 0),
  -- credited / claimed, 0 to 1
  fraction numeric(13,12) not null check (fraction between 0 and 1),
  -- of each signal the level that its match had
  levels jsonb not null check (jsonb_typeof(levels) = 'object'),
  -- as it was claimed, and before what outcomes had taught by then (rawProbabilityOf in domain/reconciliation/weights/levels.ts)
  probability double precision not null check (probability between 0 and 1),
  raw_probability double precision not null check (raw_probability between 0 and 1),
  weight_set text not null,
  at timestamptz not null,
  primary key (org_id, claim_id, claimed_type),
  foreign key (org_id, claim_id) references claim_outcomes (org_id, claim_id)
);
create index claim_outcome_kinds_in_order on claim_outcome_kinds (org_id, at, claim_id);
select protect_tenant_table('claim_outcome_kinds', 'select, insert');

-- Days that the provider charged too little in the account and months of a claim, taken off what it asks for.
create table claim_undercharges (
  org_id uuid not null,
  claim_id uuid not null,
  finding_id uuid not null,
  day date not null,
  provider text not null,
  provider_account_id text not null,
  model text not null,
  kind text not null,
  variant text not null,
  impact_usd numeric(24,12) not null check (impact_usd < 0),
  -- false once the claim is over
  live boolean not null default true,
  primary key (org_id, claim_id, finding_id, day),
  foreign key (org_id, claim_id) references claims (org_id, id) on delete cascade
);
-- What was charged too little is taken off once at a time.
create unique index claim_undercharges_live on claim_undercharges (org_id, provider, provider_account_id, model, day, kind, variant) where live;
-- Deleted while it is a draft: drafts that are merged net anew.
select protect_tenant_table('claim_undercharges', 'select, insert, update, delete');

-- The evidence as files, as they were when the claim was made.
create table claim_files (
  org_id uuid not null,
  claim_id uuid not null,
  name text not null check (length(name) between 1 and 200),
  media_type text not null,
  -- of the content before it is compressed
  bytes bigint not null check (bytes >= 0),
  sha256 bytea not null check (length(sha256) = 32),
  -- gzip
  content bytea not null,
  primary key (org_id, claim_id, name),
  foreign key (org_id, claim_id) references claims (org_id, id) on delete cascade
);
-- Deleted while it is a draft: drafts that are merged are frozen anew.
select protect_tenant_table('claim_files', 'select, insert, delete');

-- Credits on later bills, and days that were restated, that look like the answer to a claim. Somebody says whether they are.
create table claim_credits (
  org_id uuid not null,
  id uuid not null,
  claim_id uuid not null,
  -- rows of a bill that answer together are one proposal
  proposal_id uuid not null,
  -- credit_row: a row of a bill; restatement: days of the claim that are billed at less now
  source text not null check (source in ('credit_row', 'restatement')),
  -- what it is, once: a row of a bill is the answer to one claim
  source_key text not null check (length(source_key) between 1 and 400),
  day date not null,
  amount_usd numeric(24,12) not null check (amount_usd > 0),
  -- of one proposal they sum to its cents; a row of less than a cent may have none of them
  amount_cents bigint not null check (amount_cents >= 0),
  description text not null,
  status text not null default 'proposed' check (status in ('proposed', 'accepted', 'rejected')),
  found_at timestamptz not null default now(),
  decided_at timestamptz,
  decided_by text,
  primary key (org_id, id),
  foreign key (org_id, claim_id) references claims (org_id, id),
  check ((status = 'proposed') = (decided_at is null)),
  check ((decided_at is null) = (decided_by is null))
);
create unique index claim_credits_once on claim_credits (org_id, source_key) where status <> 'rejected';
create index claim_credits_of_claim on claim_credits (org_id, claim_id, found_at, proposal_id, id);
select protect_tenant_table('claim_credits', 'select, insert, update');

alter table disputes add foreign key (org_id, claim_id) references claims (org_id, id);
create index disputes_of_claim on disputes (org_id, claim_id) where claim_id is not null;

alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in ('gap_run.start', 'gap_run.cancel', 'billing_import.start', 'billing_sync.start', 'connection.schedule', 'reprice.start', 'reprice.cancel', 'webhook.deliver', 'savings_run.start', 'claim.wake', 'weights.recompute'));

alter table alerts drop constraint alerts_notice_check;
alter table alerts add constraint alerts_notice_check check (notice in ('connection_broken', 'double_instrumentation', 'webhook_failing', 'webhook_disabled', 'claim_due', 'claim_credit_proposed', 'claim_evidence_stale'));

alter table webhook_messages drop constraint webhook_messages_type_check;
alter table webhook_messages add constraint webhook_messages_type_check check (type in ('alert.created', 'claim.created', 'claim.status_changed', 'dispute.opened', 'gap_run.completed', 'webhook.test'));
`,
  down: `
set local role app_system;
delete from webhook_attempts a using webhook_deliveries d, webhook_messages m
where a.org_id = d.org_id and a.delivery_id = d.id and d.org_id = m.org_id and d.message_id = m.id and m.type like 'claim.%';
delete from webhook_deliveries d using webhook_messages m where d.org_id = m.org_id and d.message_id = m.id and m.type like 'claim.%';
delete from webhook_messages where type like 'claim.%';
delete from alerts where notice like 'claim\\_%';
delete from outbox where kind in ('claim.wake', 'weights.recompute');
update disputes set claim_id = null, status = case when status = 'claimed' then 'open' else status end where claim_id is not null;
reset role;
alter table webhook_messages drop constraint webhook_messages_type_check;
alter table webhook_messages add constraint webhook_messages_type_check check (type in ('alert.created', 'dispute.opened', 'gap_run.completed', 'webhook.test'));
alter table alerts drop constraint alerts_notice_check;
alter table alerts add constraint alerts_notice_check check (notice in ('connection_broken', 'double_instrumentation', 'webhook_failing', 'webhook_disabled'));
alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in ('gap_run.start', 'gap_run.cancel', 'billing_import.start', 'billing_sync.start', 'connection.schedule', 'reprice.start', 'reprice.cancel', 'webhook.deliver', 'savings_run.start'));
drop index disputes_of_claim;
alter table disputes drop constraint disputes_org_id_claim_id_fkey;
drop table claim_credits, claim_files, claim_undercharges, claim_outcome_kinds, claim_outcomes, claim_events, claims;
drop function refuse_illegal_claim_move();
drop function is_claim_move(text, text);
`,
};
