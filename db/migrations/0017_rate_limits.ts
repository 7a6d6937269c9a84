import type { Migration } from './migration.js';

/**
 * Buckets that the instances of the API share, so that a limit holds over all of them. Both tables are unlogged: they are
 * written often, nothing rests on them, and a bucket that a crash took with it is a full one.
 */
export const rateLimits: Migration = {
  name: '0017_rate_limits',
  up: `
-- Buckets that are not full; a missing one is full. Instances take tokens out of them in advance.
create unlogged table rate_buckets (
  org_id uuid not null,
  -- the key's id, or 'organization'
  subject text not null check (length(subject) between 1 and 64),
  policy text not null check (length(policy) between 1 and 64),
  -- negative while it owes: a batch larger than the bucket was taken from a full one
  tokens double precision not null,
  -- what the last asker got
  granted double precision not null check (granted >= 0),
  refilled_at timestamptz not null default now(),
  primary key (org_id, subject, policy)
) with (fillfactor = 50);
create index rate_buckets_idle on rate_buckets (refilled_at);
select protect_tenant_table('rate_buckets', 'select, insert, update, delete');

-- Requests that may go on for long, each in one of its organization's places; who dies lets its place expire.
create unlogged table request_slots (
  org_id uuid not null,
  kind text not null check (kind in ('export')),
  slot smallint not null check (slot > 0),
  holder uuid not null,
  expires_at timestamptz not null,
  primary key (org_id, kind, slot)
);
select protect_tenant_table('request_slots', 'select, insert, update, delete');
`,
  down: `
drop table request_slots;
drop table rate_buckets;
`,
};
