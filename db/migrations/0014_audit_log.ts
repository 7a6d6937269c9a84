import type { Migration } from './migration.js';

/**
 * The audit log: what was done, in a chain of hashes for each organization (docs/decisions/0030). Rows are added and
 * never changed; they leave only under a signed checkpoint that vouches for them (docs/decisions/0030).
 */
export const auditLog: Migration = {
  name: '0014_audit_log',
  up: `
-- Where each organization's chain ends. Its row is the lock under which rows are added, one after the other.
create table audit_heads (
  org_id uuid primary key references organizations (id),
  seq bigint not null check (seq >= 1),
  at timestamptz not null,
  prev_hash bytea not null check (length(prev_hash) = 32),
  hash bytea not null check (length(hash) = 32)
-- each row is changed again and again: its versions are to find room beside it
) with (fillfactor = 50);
select protect_tenant_table('audit_heads', 'select, insert, update');

create table audit_log (
  org_id uuid not null references organizations (id),
  -- 1, 2, 3 … without a gap
  seq bigint not null check (seq >= 1),
  -- never earlier than that of the row before
  at timestamptz not null,
  -- The list is domain/access/auditLog.ts; it grows with each subject, and a row of a later version stays readable.
  action text not null check (action ~ '^[a-z_]+[.][a-z_]+$' and length(action) <= 64),
  actor_kind text not null check (actor_kind in ('key', 'command', 'system')),
  actor_id text not null check (length(actor_id) between 1 and 128),
  subject_type text check (subject_type ~ '^[a-z_]+$' and length(subject_type) <= 64),
  subject_id text check (length(subject_id) between 1 and 256),
  -- JSON as text, not jsonb: the hash is over these very bytes, which jsonb would put in another order.
  details text not null check (octet_length(details) between 2 and 16384),
  request_id text check (length(request_id) <= 128),
  prev_hash bytea not null check (length(prev_hash) = 32),
  hash bytea not null check (length(hash) = 32),
  primary key (org_id, seq),
  check ((subject_type is null) = (subject_id is null))
);
create index audit_log_by_time on audit_log (org_id, at);
create index audit_log_by_subject on audit_log (org_id, subject_type, subject_id, seq);
select protect_tenant_table('audit_log', 'select, insert');
revoke update on audit_log from app_system;

-- What stands for the rows that retention has dropped: all up to seq. Signed with a key that is not in the database.
create table audit_checkpoints (
  org_id uuid primary key references organizations (id),
  seq bigint not null check (seq >= 1),
  -- time of row seq
  at timestamptz not null,
  -- hash of row seq, from which the chain goes on
  hash bytea not null check (length(hash) = 32),
  made_at timestamptz not null,
  key_id text not null check (length(key_id) between 1 and 64),
  signature bytea not null check (length(signature) = 32)
);
select protect_tenant_table('audit_checkpoints', 'select');

-- The hash of a row: over the hash of the row before and the row's text, which begins with its number and its time in
-- microseconds and goes on with the rest. domain/access/auditLog.ts writes the same text.
create function audit_hash(before bytea, seq bigint, at timestamptz, rest text) returns bytea
  language sql immutable parallel safe
  as $$ select sha256(before || convert_to('{"seq":' || seq || ',"at":' || (extract(epoch from at) * 1000000)::bigint || rest, 'UTF8')) $$;

-- The grants forbid it to the roles; this forbids it to the tables' owner too. A demo's organization may be removed
-- with all that it has; any other row goes once a checkpoint stands for it.
create function refuse_audit_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    if exists (select from audit_checkpoints c where c.org_id = old.org_id and c.seq >= old.seq)
      or exists (select from organizations o where o.id = old.org_id and o.demo_end_day is not null) then
      return old;
    end if;
  end if;
  raise exception 'the audit log is append-only: % is refused', lower(tg_op) using errcode = 'insufficient_privilege';
end $$;
create trigger audit_log_is_append_only before update or delete on audit_log
  for each row execute function refuse_audit_change();
create trigger audit_log_is_not_emptied before truncate on audit_log
  for each statement execute function refuse_audit_change();
`,
  down: `
drop table audit_checkpoints;
drop table audit_log;
drop table audit_heads;
drop function refuse_audit_change();
drop function audit_hash(bytea, bigint, timestamptz, text);
`,
};
