import type { Migration } from './migration.js';

const STEPS_BEFORE = `'payloads', 'events', 'idempotency_keys', 'audit_log', 'rate_limits', 'alerts', 'webhook_messages', 'savings_runs', 'gap_runs', 'reports', 'blobs'`;

/** Sessions of browsers and the one-time links that begin them (docs/sign-in.md). */
export const sessions: Migration = {
  name: '0049_sessions',
  up: `
create table sign_in_links (
  org_id uuid not null references organizations (id),
  id uuid not null,
  -- sha256 of the token: 256 random bits need no slow hash
  token_hash bytea not null check (length(token_hash) = 32),
  -- the rights of the session that it begins; scopes null: all of the role
  role text not null check (role in ('admin', 'member', 'auditor', 'ingest')),
  scopes text[] check (cardinality(scopes) > 0),
  workspace_id uuid,
  created_by text not null check (length(created_by) between 1 and 128),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  used_at timestamptz,
  primary key (org_id, id),
  constraint sign_in_links_workspace foreign key (org_id, workspace_id) references workspaces (org_id, id)
);
-- Not unique: a unique index begins with the organization, and two tokens are never equal.
create index sign_in_links_by_token on sign_in_links (token_hash);
select protect_tenant_table('sign_in_links', 'select, insert, update');

create table sessions (
  org_id uuid not null references organizations (id),
  id uuid not null,
  -- sha256 of what the cookie holds
  secret_hash bytea not null check (length(secret_hash) = 32),
  sign_in text not null check (sign_in in ('key', 'link', 'oidc')),
  -- who signed in: the id of a key (key_), of a link (lnk_), of a person at the provider of identities (usr_)
  principal text not null check (length(principal) between 1 and 64),
  -- the secret of the key at the sign-in: the session ends with it
  key_secret_hash bytea check (length(key_secret_hash) = 32),
  -- null: those of the key, as they are at each request
  role text check (role in ('admin', 'member', 'auditor', 'ingest')),
  scopes text[] check (cardinality(scopes) > 0),
  workspace_id uuid,
  person_sub text check (length(person_sub) between 1 and 255),
  person_name text check (length(person_name) between 1 and 256),
  person_email text check (length(person_email) between 1 and 254),
  user_agent text check (length(user_agent) between 1 and 256),
  created_at timestamptz not null default now(),
  -- written at most once a minute
  last_seen_at timestamptz not null default now(),
  expires_at timestamptz not null,
  ended_at timestamptz,
  ended_by text check (length(ended_by) between 1 and 128),
  primary key (org_id, id),
  check ((sign_in = 'key') = (key_secret_hash is not null)),
  check ((sign_in = 'key') = (role is null)),
  check ((sign_in = 'oidc') = (person_sub is not null)),
  check ((ended_at is null) = (ended_by is null)),
  constraint sessions_workspace foreign key (org_id, workspace_id) references workspaces (org_id, id)
);
create index sessions_by_secret on sessions (secret_hash);
create index sessions_newest on sessions (org_id, created_at desc, id desc);
select protect_tenant_table('sessions', 'select, insert, update');

-- When somebody first signed in; null: nobody has, and each start prints a link.
alter table organizations add column signed_in_at timestamptz;
grant update (signed_in_at) on organizations to app_rw;

-- A person who signed in elsewhere, and a link, act without a key.
alter table audit_log drop constraint audit_log_actor_kind_check;
alter table audit_log add constraint audit_log_actor_kind_check check (actor_kind in ('key', 'link', 'person', 'command', 'system'));
alter table retention_runs drop constraint retention_runs_step_check;
alter table retention_runs add constraint retention_runs_step_check check (step in (${STEPS_BEFORE}, 'sessions'));
`,
  down: `
set local role app_system;
delete from retention_runs where step = 'sessions';
reset role;
alter table retention_runs drop constraint retention_runs_step_check;
alter table retention_runs add constraint retention_runs_step_check check (step in (${STEPS_BEFORE}));
-- Rows of the log are never removed: those of people and links stay as they were written.
alter table audit_log drop constraint audit_log_actor_kind_check;
alter table audit_log add constraint audit_log_actor_kind_check check (actor_kind in ('key', 'command', 'system')) not valid;
do $$ begin
  alter table audit_log validate constraint audit_log_actor_kind_check;
exception when check_violation then null; end $$;
revoke update (signed_in_at) on organizations from app_rw;
alter table organizations drop column signed_in_at;
drop table sessions;
drop table sign_in_links;
`,
};
