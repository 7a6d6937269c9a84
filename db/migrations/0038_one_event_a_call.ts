import type { Migration } from './migration.js';

/**
 * One call has one event that counts, however often it is reported: its identities point at that event, and calls that
 * earlier versions counted several times are looked for (docs/decisions/0001).
 */
export const oneEventACall: Migration = {
  name: '0038_one_event_a_call',
  up: `
-- the event that counts for the call; null: the first one, event_id
alter table call_spans add column live_event_id uuid;

-- The search for calls that are counted more than once, for each organization that may have some. search: which requests
-- have events that supersede each other in a row; merge: of their calls one event each stays; done: nothing is left.
create table call_repairs (
  org_id uuid primary key,
  stage text not null check (stage in ('search', 'merge', 'done')),
  -- the time of the last event that the stage has looked at; null: none yet
  looked_until timestamptz,
  -- calls that were counted more than once, their events that count no more, and what those had counted for
  calls bigint not null default 0,
  events bigint not null default 0,
  cost_usd numeric(24,12) not null default 0,
  started_at timestamptz not null default now(),
  finished_at timestamptz
);
select protect_tenant_table('call_repairs', 'select, update');

create table call_repair_requests (
  org_id uuid not null,
  request_id text not null,
  is_repaired boolean not null default false,
  primary key (org_id, request_id)
);
select protect_tenant_table('call_repair_requests', 'select, insert, update, delete');

set local role app_system;
insert into call_repairs (org_id, stage) select id, 'search' from organizations;
reset role;
`,
  down: `
drop table call_repair_requests, call_repairs;
alter table call_spans drop column live_event_id;
`,
};
