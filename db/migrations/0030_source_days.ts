import type { Migration } from './migration.js';

/**
 * The services that sent the calls of a biller's day, kept as calls are folded: a gap run would otherwise read every call for
 * it (docs/decisions/0018).
 */
export const sourceDays: Migration = {
  name: '0030_source_days',
  up: `
create table source_days (
  org_id uuid not null,
  billed_by text not null,
  -- of the calls' end, by the biller's clock where that is known: UTC's, Pacific time for Google
  day date not null,
  provider_account_id text not null,
  provider_key_id text not null,
  -- the model that the provider answered with, else the one asked for
  model text not null,
  service_name text not null,
  calls bigint not null,
  -- of them: those that cannot tell cached input, that name the model that answered, that the provider refused
  without_cache bigint not null,
  named_by_answer bigint not null,
  refused bigint not null,
  primary key (org_id, billed_by, day, provider_account_id, provider_key_id, model, service_name)
);
select protect_tenant_table('source_days', 'select');

-- How many of the day's rows of the log are in source_days: fewer than its revision on days that were folded before there was
-- one. Of these the calls themselves are read.
alter table observed_days add column sources_revision bigint not null default 0 check (sources_revision between 0 and revision);

-- What of a changed call source_days count. Copies that are in the totals already are never read again.
alter table event_adjustments add column http_status integer, add column usage_missing text[];
set local role app_system;
update event_adjustments a set http_status = e.http_status, usage_missing = e.usage_missing
from events e
where e.org_id = a.org_id and e.timestamp = a.timestamp and e.id = a.event_id
  and a.ingest_xid >= coalesce((select s.folded_xid from rollup_state s where s.org_id = a.org_id), 0);
reset role;
`,
  down: `
alter table event_adjustments drop column usage_missing, drop column http_status;
alter table observed_days drop column sources_revision;
drop table source_days;
`,
};
