import type { Migration } from './migration.js';

const MESSAGES_BEFORE = `'alert.created', 'claim.created', 'claim.reminder', 'claim.status_changed', 'dispute.opened', 'dispute.resolved', 'gap_run.completed', 'webhook.test', 'invoice.processed', 'invoice.failed', 'report.generated', 'digest.daily'`;

/** Public price lists that are fetched daily, and the prices that they propose (docs/pricing.md). */
export const priceProposals: Migration = {
  name: '0051_price_proposals',
  up: `
-- A feed belongs to the installation, as the list prices do.
create table price_feeds (
  url text primary key check (length(url) between 1 and 2048),
  -- of the last answer, sent back as If-None-Match
  etag text check (length(etag) between 1 and 512),
  -- the file as it was received; organizations are compared with it even when it has not changed
  content bytea,
  -- the day on which it was last known to be the current file
  retrieved_on date,
  checked_at timestamptz,
  changed_at timestamptz,
  failed_at timestamptz,
  error_message text check (length(error_message) between 1 and 1024),
  check ((content is null) = (retrieved_on is null))
);
grant select on price_feeds to app_rw, app_system;
grant insert, update on price_feeds to app_system;

create table price_proposals (
  org_id uuid not null references organizations (id),
  id uuid not null,
  -- the name of the feed in PRICE_FEEDS
  feed text not null check (length(feed) between 1 and 256),
  source text not null check (source in ('litellm', 'models_dev')),
  provider text not null,
  model text not null check (length(model) between 1 and 512),
  kind text not null check (kind in ('new', 'changed')),
  -- present and proposed rates, for people: [{tier, rate_class, before, after}], decimal texts
  rates jsonb not null,
  -- the change that an override makes: {rates, tiers, batch_multiplier}, decimal texts; equal terms are one proposal
  terms jsonb not null,
  is_jump boolean not null,
  suspicions jsonb not null,
  retrieved_on date not null,
  -- the 30 days before this time are those of the calls and costs
  effect_until timestamptz not null,
  calls bigint not null check (calls >= 0),
  -- null: some of the calls have no price
  current_cost_usd numeric(38,12),
  proposed_cost_usd numeric(38,12),
  status text not null default 'open' check (status in ('open', 'applied', 'dismissed', 'superseded')),
  reason text check (length(reason) between 1 and 1024),
  override_id uuid,
  created_at timestamptz not null default now(),
  decided_at timestamptz,
  decided_by text check (length(decided_by) between 1 and 128),
  primary key (org_id, id),
  check ((status = 'open') = (decided_at is null)),
  check ((status = 'applied') = (override_id is not null)),
  check ((status in ('applied', 'dismissed')) = (decided_by is not null)),
  foreign key (org_id, override_id) references own_prices (org_id, id)
);
create unique index price_proposals_one_open on price_proposals (org_id, feed, provider, model) where status = 'open';
create index price_proposals_by_model on price_proposals (org_id, provider, model);
create index price_proposals_newest on price_proposals (org_id, created_at desc, id desc);
select protect_tenant_table('price_proposals', 'select, insert, update');

-- Rates of other tiers and lengths of an override, decimal texts.
alter table own_prices add column tiers jsonb not null default '[]' check (jsonb_typeof(tiers) = 'array');

alter table webhook_messages drop constraint webhook_messages_type_check;
alter table webhook_messages add constraint webhook_messages_type_check check (type in (${MESSAGES_BEFORE}, 'pricing.proposed'));
`,
  down: `
set local role app_system;
delete from webhook_attempts a using webhook_deliveries d, webhook_messages m
where a.org_id = d.org_id and a.delivery_id = d.id and d.org_id = m.org_id and d.message_id = m.id and m.type = 'pricing.proposed';
delete from webhook_deliveries d using webhook_messages m where d.org_id = m.org_id and d.message_id = m.id and m.type = 'pricing.proposed';
delete from webhook_messages where type = 'pricing.proposed';
reset role;
alter table webhook_messages drop constraint webhook_messages_type_check;
alter table webhook_messages add constraint webhook_messages_type_check check (type in (${MESSAGES_BEFORE}));
alter table own_prices drop column tiers;
drop table price_proposals, price_feeds;
`,
};
