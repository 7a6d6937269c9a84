import type { Migration } from './migration.js';

/**
 * The structures by which a key of a workspace reads (docs/decisions/0029, 0006): an index of a project's events in time, totals of a
 * project by the labels, and a role that sees one project's rows and has no privilege on anything that is not limited
 * to one.
 */
export const workspaceReads: Migration = {
  name: '0018_workspace_reads',
  up: `
-- Roles belong to the cluster; another database of it may have made this one.
do $$
begin
  if not exists (select from pg_roles where rolname = 'app_workspace') then
    begin create role app_workspace nologin; exception when duplicate_object or unique_violation then null; end;
  end if;
end $$;
do $$
begin
  if not pg_has_role(current_user, 'app_workspace', 'MEMBER') then execute format('grant app_workspace to %I', current_user); end if;
end $$;
grant usage on schema public to app_workspace;

-- Events without a project cost it nothing.
create index events_of_project on events (org_id, project_id, timestamp) where project_id is not null;

-- As label_cells, of the calls that name a project.
create table project_cells (
  org_id uuid not null,
  project_id text not null,
  day date not null,
  provider text not null,
  model text not null,
  -- '' stands for an absent label
  team_id text not null,
  feature text not null,
  calls bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read bigint not null,
  cache_creation bigint not null,
  reasoning_tok bigint not null,
  cost_usd numeric(24,12) not null,
  computed_cost_usd numeric(24,12) not null,
  reported_cost_usd numeric(24,12) not null,
  unpriced bigint not null,
  first_seen timestamptz not null,
  last_seen timestamptz not null,
  primary key (org_id, project_id, day, provider, model, team_id, feature)
);
select protect_tenant_table('project_cells', 'select');

-- As adjustment_labels: what came after its month was closed, by the day on which it is booked. With session and user,
-- of which no project has a total of its own.
create table project_adjustments (
  org_id uuid not null,
  project_id text not null,
  booked_on date not null,
  day date not null,
  provider text not null,
  model text not null,
  team_id text not null,
  feature text not null,
  session_id text not null,
  user_id text not null,
  calls bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read bigint not null,
  cache_creation bigint not null,
  reasoning_tok bigint not null,
  cost_usd numeric(24,12) not null,
  computed_cost_usd numeric(24,12) not null,
  reported_cost_usd numeric(24,12) not null,
  unpriced bigint not null,
  first_seen timestamptz not null,
  last_seen timestamptz not null,
  primary key (org_id, project_id, booked_on, day, provider, model, team_id, feature, session_id, user_id)
);
create index project_adjustments_by_day on project_adjustments (org_id, project_id, day);
select protect_tenant_table('project_adjustments', 'select');

-- Everything of the organization below it is in the totals of projects. They are folded for themselves, so that what
-- was stored before there were any comes in by the same fold, a share at a time, while reads add up the rest.
alter table rollup_state add column projects_xid bigint not null default 0;

-- Refused items have no project; they belong to the workspace whose key sent them. '' is a key of the organization.
alter table ingest_rejections add column project_id text not null default '';
alter table ingest_rejections drop constraint ingest_rejections_pkey;
alter table ingest_rejections add primary key (org_id, hour, project_id, service_name, scope_name, reason);

-- Lets app_workspace read the rows of its project, by a condition on the row or by the one given.
create function limit_to_project(target regclass, condition text) returns void language plpgsql as $$
begin
  execute format('create policy workspace on %s for select to app_workspace using (org_id = current_setting(''app.org_id'')::uuid and %s)', target, condition);
  execute format('grant select on %s to app_workspace', target);
end $$;

select limit_to_project(name::regclass, 'project_id = current_setting(''app.project_id'')')
from unnest('{events,event_adjustments,project_cells,project_adjustments,ingest_rejections}'::text[]) name;
-- Each belongs to an event, and is seen with it: the events in the condition are those that the role sees.
select limit_to_project('event_payloads', 'exists (select from events e
  where e.org_id = event_payloads.org_id and e.timestamp = event_payloads.timestamp and e.id = event_payloads.event_id)');
select limit_to_project('event_price_changes', 'exists (select from events e
  where e.org_id = event_price_changes.org_id and e.timestamp = event_price_changes.timestamp and e.id = event_price_changes.event_id)');
-- How far the totals are and which months are closed is of the whole organization, and says nothing of any project.
select limit_to_project(name::regclass, 'true') from unnest('{rollup_state,period_closings}'::text[]) name;
`,
  // Counts of several workspaces become one again.
  down: `
do $$
declare target text;
begin
  foreach target in array '{events,event_adjustments,ingest_rejections,event_payloads,event_price_changes,rollup_state,period_closings}'::text[] loop
    execute format('drop policy workspace on %I', target);
    execute format('revoke select on %I from app_workspace', target);
  end loop;
end $$;
revoke usage on schema public from app_workspace;
drop function limit_to_project(regclass, text);
alter table ingest_rejections drop constraint ingest_rejections_pkey;
set local role app_system;
update ingest_rejections r set count = t.total from (
  select org_id, hour, service_name, scope_name, reason, sum(count) as total, min(project_id) as project_id from ingest_rejections group by 1, 2, 3, 4, 5) t
where (r.org_id, r.hour, r.service_name, r.scope_name, r.reason) = (t.org_id, t.hour, t.service_name, t.scope_name, t.reason) and r.project_id = t.project_id;
delete from ingest_rejections r using ingest_rejections o
where (r.org_id, r.hour, r.service_name, r.scope_name, r.reason) = (o.org_id, o.hour, o.service_name, o.scope_name, o.reason) and r.project_id > o.project_id;
reset role;
alter table ingest_rejections drop column project_id;
alter table ingest_rejections add primary key (org_id, hour, service_name, scope_name, reason);
alter table rollup_state drop column projects_xid;
drop table project_adjustments, project_cells;
drop index events_of_project;
`,
};
