import type { Migration } from './migration.js';

/**
 * The stored counts of unpriced calls follow the events: a call without usage, and one that failed with usage of a model
 * without a price, say cost_source unpriced and were in no count (docs/decisions/0008). The log is read once, for these
 * calls alone. Of calls that were removed for their age the counts stay as they were.
 */
const correct = (sign: '+' | '-') => `
set local role app_system;
with calls as materialized (
  select l.*, case when l.timestamp < s.closed_until then (
      select greatest((l.ingested_at at time zone 'UTC')::date, (c.ends_at at time zone 'UTC')::date)
      from period_closings c
      where c.org_id = l.org_id and c.ends_at > l.timestamp and not pg_visible_in_snapshot(l.ingest_xid::text::xid8, c.snapshot)
      order by c.month desc limit 1) end as booked_on,
    l.ingest_xid < coalesce(s.folded_xid, 0) as is_folded, l.ingest_xid < coalesce(s.projects_xid, 0) as is_in_projects, s.closed_until
  from (
    select org_id, 1 as sign, ingest_xid, ingested_at, timestamp, end_at, status, provider, billed_by, provider_account_id, provider_key_id,
      model, response_model, api_key_id, session_id, team_id, feature, project_id, user_id, service_tier, is_batch, context_band,
      service_name, scope_name, cost_source = 'unpriced' as is_unpriced
    from events where revised_xid is null and computed_cost_usd is null and (unmetered or status = 'error') and status <> 'blocked'
    union all
    select org_id, sign, ingest_xid, ingested_at, timestamp, end_at, status, provider, billed_by, provider_account_id, provider_key_id,
      model, response_model, api_key_id, session_id, team_id, feature, project_id, user_id, service_tier, is_batch, context_band,
      service_name, scope_name, cost_source = 'unpriced'
    from event_adjustments where computed_cost_usd is null and (unmetered or status = 'error') and status <> 'blocked') l
  left join rollup_state s on s.org_id = l.org_id),
keyed as (
  select calls.org_id, calls.sign, calls.booked_on, d.dimension, d.bucket, d.key
  from calls cross join lateral (values
    ('model', date_trunc('hour', timestamp, 'UTC'), model),
    ('provider', date_trunc('hour', timestamp, 'UTC'), provider),
    ('team', date_trunc('hour', timestamp, 'UTC'), coalesce(team_id, '')),
    ('feature', date_trunc('hour', timestamp, 'UTC'), coalesce(feature, '')),
    ('project', date_trunc('hour', timestamp, 'UTC'), coalesce(project_id, '')),
    ('key', date_trunc('hour', timestamp, 'UTC'), api_key_id),
    ('user', date_trunc('day', timestamp, 'UTC'), coalesce(user_id, '')),
    ('session', date_trunc('day', timestamp, 'UTC'), session_id),
    ('source', date_trunc('hour', timestamp, 'UTC'), service_name || chr(31) || scope_name)) d (dimension, bucket, key)
  where is_folded and is_unpriced),
rollups as (
  update usage_rollups t set unpriced = t.unpriced ${sign} d.calls
  from (select org_id, dimension, bucket, key, sum(sign) as calls from keyed where booked_on is null group by 1, 2, 3, 4) d
  where (t.org_id, t.dimension, t.bucket, t.key) = (d.org_id, d.dimension, d.bucket, d.key)),
late_rollups as (
  update adjustment_rollups t set unpriced = t.unpriced ${sign} d.calls
  from (select org_id, dimension, booked_on, bucket, key, sum(sign) as calls from keyed where booked_on is not null group by 1, 2, 3, 4, 5) d
  where (t.org_id, t.dimension, t.booked_on, t.bucket, t.key) = (d.org_id, d.dimension, d.booked_on, d.bucket, d.key)),
labelled as (
  select org_id, sign, booked_on, (timestamp at time zone 'UTC')::date as day, provider, model, coalesce(team_id, '') as team_id,
    coalesce(feature, '') as feature, session_id, project_id, coalesce(user_id, '') as user_id, is_folded, is_in_projects
  from calls where is_unpriced),
labels as (
  update label_cells t set unpriced = t.unpriced ${sign} d.calls
  from (select org_id, day, provider, model, team_id, feature, sum(sign) as calls from labelled
    where is_folded and booked_on is null group by 1, 2, 3, 4, 5, 6) d
  where (t.org_id, t.day, t.provider, t.model, t.team_id, t.feature) = (d.org_id, d.day, d.provider, d.model, d.team_id, d.feature)),
late_labels as (
  update adjustment_labels t set unpriced = t.unpriced ${sign} d.calls
  from (select org_id, booked_on, day, provider, model, team_id, feature, session_id, sum(sign) as calls from labelled
    where is_folded and booked_on is not null group by 1, 2, 3, 4, 5, 6, 7, 8) d
  where (t.org_id, t.booked_on, t.day, t.provider, t.model, t.team_id, t.feature, t.session_id)
    = (d.org_id, d.booked_on, d.day, d.provider, d.model, d.team_id, d.feature, d.session_id)),
projects as (
  update project_cells t set unpriced = t.unpriced ${sign} d.calls
  from (select org_id, project_id, day, provider, model, team_id, feature, sum(sign) as calls from labelled
    where is_in_projects and project_id is not null and booked_on is null group by 1, 2, 3, 4, 5, 6, 7) d
  where (t.org_id, t.project_id, t.day, t.provider, t.model, t.team_id, t.feature)
    = (d.org_id, d.project_id, d.day, d.provider, d.model, d.team_id, d.feature)),
late_projects as (
  update project_adjustments t set unpriced = t.unpriced ${sign} d.calls
  from (select org_id, project_id, booked_on, day, provider, model, team_id, feature, session_id, user_id, sum(sign) as calls from labelled
    where is_in_projects and project_id is not null and booked_on is not null group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) d
  where (t.org_id, t.project_id, t.booked_on, t.day, t.provider, t.model, t.team_id, t.feature, t.session_id, t.user_id)
    = (d.org_id, d.project_id, d.booked_on, d.day, d.provider, d.model, d.team_id, d.feature, d.session_id, d.user_id)),
-- A closed month keeps its dollars; without its count the changes since would take off calls that it had not counted.
periods as (
  update period_totals t set unpriced = t.unpriced ${sign} d.calls
  from (
    select org_id, date_trunc('month', coalesce(booked_on::timestamp, timestamp at time zone 'UTC'))::date as month,
      case when booked_on is null then 'own' else 'booked' end as part, provider, sum(sign) as calls
    from calls
    where is_unpriced and coalesce(booked_on::timestamp, timestamp at time zone 'UTC') < closed_until at time zone 'UTC' group by 1, 2, 3, 4) d
  where (t.org_id, t.month, t.part, t.provider) = (d.org_id, d.month, d.part, d.provider))
-- Without usage they are counted apart in what bills are compared with; failed calls that used something are now among them.
update billing_cells t set unpriced = t.unpriced ${sign} d.calls
from (
  select org_id, date_trunc('hour', end_at, 'UTC') as hour, billed_by, coalesce(provider_account_id, '') as provider_account_id,
    coalesce(provider_key_id, '') as provider_key_id, coalesce(response_model, model) as model, coalesce(service_tier, '') as service_tier,
    is_batch, context_band, status, sum(sign) as calls
  from calls where is_folded and status = 'error' group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) d
where (t.org_id, t.hour, t.billed_by, t.provider_account_id, t.provider_key_id, t.model, t.service_tier, t.is_batch, t.context_band, t.status)
  = (d.org_id, d.hour, d.billed_by, d.provider_account_id, d.provider_key_id, d.model, d.service_tier, d.is_batch, d.context_band, d.status);
reset role;
`;

export const unpricedCounts: Migration = {
  name: '0041_unpriced_counts',
  up: correct('+'),
  down: correct('-'),
};
