import type { Migration } from './migration.js';

/**
 * Statistics for the planner right after much has been written, whatever autovacuum does (docs/decisions/0042). Before
 * Postgres 17 only a table's owner may analyze it, and the service may log in as a role that owns nothing.
 */
export const statistics: Migration = {
  name: '0039_statistics',
  up: `
-- Tables and partitions that were never analyzed since the server's counters began, or have grown by half since.
create function tables_to_analyze() returns setof text language sql stable set search_path = pg_catalog, pg_temp
  as $$
  select c.relname::text from pg_class c
  where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and pg_relation_size(c.oid) > 0
    and (coalesce(pg_stat_get_last_analyze_time(c.oid), pg_stat_get_last_autoanalyze_time(c.oid)) is null
      or pg_relation_size(c.oid) > 1.5 * c.relpages * current_setting('block_size')::bigint
        + 4 * current_setting('block_size')::bigint)
  order by 1
  $$;

-- Analyzes one of those, with its owner's right; false where it is none of them any more. It does nothing else, takes no
-- lock that reads or writes wait for, and waits for nobody who analyzes the same table.
create function analyze_table(target text) returns boolean language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  as $$
begin
  if not exists (select from public.tables_to_analyze() one where one = target) then return false; end if;
  execute format('analyze (skip_locked) public.%I', target);
  return true;
end $$;
revoke execute on function analyze_table(text) from public;
grant execute on function analyze_table(text) to app_system;

-- Led by the organization it was taken for a list of all days of one, since no such list is shorter without statistics.
drop index billing_days_of_source;
create index billing_days_of_source on billing_days (source_id);
`,
  down: `
drop index billing_days_of_source;
create index billing_days_of_source on billing_days (org_id, source_id);
drop function analyze_table(text);
drop function tables_to_analyze();
`,
};
