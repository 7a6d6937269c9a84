import type { Migration } from './migration.js';

/**
 * The three roles: the login that runs this owns the tables; `app_rw` serves requests under
 * forced row-level security; `app_system` does named maintenance across organizations. Roles are taken by SET
 * ROLE inside a transaction, so they belong to no login of their own. They are shared by all databases of a
 * cluster, hence created only where they are missing.
 */
export const rolesAndTenancy: Migration = {
  name: '0001_roles_and_tenancy',
  up: `
do $$
begin
  if not exists (select from pg_roles where rolname = 'app_rw') then
    begin create role app_rw nologin; exception when duplicate_object or unique_violation then null; end;
  end if;
  if not exists (select from pg_roles where rolname = 'app_system') then
    begin create role app_system nologin; exception when duplicate_object or unique_violation then null; end;
  end if;
end $$;
-- Two databases of one cluster may be migrated at once; the grant is then made by the other one.
do $$
begin
  if not pg_has_role(current_user, 'app_rw', 'MEMBER') then execute format('grant app_rw to %I', current_user); end if;
  if not pg_has_role(current_user, 'app_system', 'MEMBER') then execute format('grant app_system to %I', current_user); end if;
end $$;
grant usage on schema public to app_rw, app_system;
grant select on schema_migrations to app_system;

-- The organization of the running transaction. Without one this raises an error: in a money tool a silent
-- "no rows" is worse than a failure.
create function current_org() returns uuid language sql stable parallel safe
  as $$ select current_setting('app.org_id')::uuid $$;

-- The transaction that writes a row, as a number that only grows: what was folded into totals is told by it.
create function current_xid() returns bigint language sql stable parallel safe
  as $$ select pg_current_xact_id()::text::bigint $$;

-- Forces row-level security on a tenant table and gives the two roles their policies.
create function protect_tenant_table(target regclass, app_grants text) returns void language plpgsql as $$
begin
  execute format('alter table %s enable row level security', target);
  execute format('alter table %s force row level security', target);
  execute format('create policy tenant on %s to app_rw using (org_id = current_setting(''app.org_id'')::uuid) with check (org_id = current_setting(''app.org_id'')::uuid)', target);
  execute format('create policy maintenance on %s to app_system using (true) with check (true)', target);
  execute format('grant %s on %s to app_rw', app_grants, target);
  execute format('grant select, insert, update, delete on %s to app_system', target);
end $$;

create table organizations (
  id uuid primary key,
  name text not null check (length(name) between 1 and 256),
  settings jsonb not null default '{}',
  created_at timestamptz not null default now()
);
alter table organizations enable row level security;
alter table organizations force row level security;
create policy tenant on organizations to app_rw using (id = current_setting('app.org_id')::uuid);
create policy maintenance on organizations to app_system using (true) with check (true);
grant select, update on organizations to app_rw;
grant select, insert, update on organizations to app_system;

create table api_keys (
  id text primary key check (id ~ '^key_[0-9A-Za-z]{10}$'),
  org_id uuid not null references organizations (id),
  name text not null check (length(name) between 1 and 256),
  role text not null check (role in ('admin', 'member', 'auditor', 'ingest')),
  -- null: every scope of the role
  scopes text[],
  workspace_id uuid,
  -- sha256 of the secret: 256 random bits need no slow hash (ASVS 6.5.2)
  secret_hash bytea not null check (length(secret_hash) = 32),
  last4 text not null check (length(last4) = 4),
  created_by text,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  expires_at timestamptz,
  revoked_at timestamptz
);
create index api_keys_by_org on api_keys (org_id, created_at);
select protect_tenant_table('api_keys', 'select, insert, update');
`,
  down: `
drop table api_keys;
drop table organizations;
drop function protect_tenant_table(regclass, text);
drop function current_xid();
drop function current_org();
`,
};
