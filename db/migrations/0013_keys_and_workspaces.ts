import type { Migration } from './migration.js';

/**
 * Workspaces, keys that are bound to them, and keys with two secrets while a rotation's grace lasts. Whatever changes
 * what a key may do is told to every process in the transaction that changes it (docs/decisions/0028): by triggers, so
 * that a revocation by hand in SQL is told as well.
 */
export const keysAndWorkspaces: Migration = {
  name: '0013_keys_and_workspaces',
  up: `
create table workspaces (
  org_id uuid not null,
  id uuid not null,
  name text not null check (length(name) between 1 and 256),
  -- the label that its calls carry; never changed, since calls are not labelled anew
  project_id text not null check (length(project_id) between 1 and 512),
  created_by text not null,
  created_at timestamptz not null default now(),
  archived_at timestamptz,
  archived_by text,
  primary key (org_id, id),
  check ((archived_at is null) = (archived_by is null))
);
-- Two workspaces that read the same calls would be one; an archived one leaves its project to a new one.
create unique index workspaces_of_project on workspaces (org_id, project_id) where archived_at is null;
create index workspaces_newest on workspaces (org_id, created_at desc, id desc);
select protect_tenant_table('workspaces', 'select, insert, update');

alter table api_keys
  -- the secret before the last rotation, and when it stops
  add column previous_secret_hash bytea check (length(previous_secret_hash) = 32),
  add column previous_valid_until timestamptz,
  add column revoked_by text,
  add constraint api_keys_previous check ((previous_secret_hash is null) = (previous_valid_until is null)),
  add constraint api_keys_scopes check (cardinality(scopes) > 0),
  -- an admin's powers concern the whole organization
  add constraint api_keys_admin_of_all check (workspace_id is null or role <> 'admin'),
  add constraint api_keys_workspace foreign key (org_id, workspace_id) references workspaces (org_id, id);
create index api_keys_of_workspace on api_keys (org_id, workspace_id) where workspace_id is not null;
create index api_keys_newest on api_keys (org_id, created_at desc, id desc);
drop index api_keys_by_org;

create function tell_key_change() returns trigger language plpgsql as $$
begin
  perform pg_notify('key_changed', new.id);
  return null;
end $$;
create trigger api_keys_tell_change
  after update of role, scopes, workspace_id, secret_hash, previous_secret_hash, previous_valid_until, expires_at, revoked_at
  on api_keys for each row execute function tell_key_change();

create function tell_workspace_change() returns trigger language plpgsql as $$
begin
  perform pg_notify('key_changed', id) from api_keys where org_id = new.org_id and workspace_id = new.id;
  return null;
end $$;
create trigger workspaces_tell_change after update of archived_at, project_id
  on workspaces for each row execute function tell_workspace_change();
`,
  down: `
drop trigger workspaces_tell_change on workspaces;
drop trigger api_keys_tell_change on api_keys;
drop function tell_workspace_change();
drop function tell_key_change();
create index api_keys_by_org on api_keys (org_id, created_at);
drop index api_keys_newest;
drop index api_keys_of_workspace;
alter table api_keys
  drop constraint api_keys_workspace, drop constraint api_keys_admin_of_all, drop constraint api_keys_scopes, drop constraint api_keys_previous,
  drop column revoked_by, drop column previous_valid_until, drop column previous_secret_hash;
drop table workspaces;
`,
};
