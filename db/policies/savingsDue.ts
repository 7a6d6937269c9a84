import type { Database } from '../client.js';
import { unscoped } from '../orgDb.js';

/** Pause between two runs that nobody asked for, seconds; and the share of the time that they may take: a twentieth. */
const PAUSE_SECONDS = 3_600;
const PAUSE_OF_RUN = 20;
/** After so long the last 30 days are others, whether calls came or not. */
const STALE_SECONDS = 86_400;

/**
 * Organizations whose savings are to be modeled anew without anybody asking: they have enabled rules, no run of the last
 * hour, and calls since the last result, or none of the last day, or rules that changed after it and whose run failed.
 */
const DUE = `
select o.org_id from (select distinct org_id from enforcement_rules where enabled and removed_at is null) o
left join lateral (
  select status, created_at, started_at, coalesce(finished_at, now()) as ended_at from savings_runs r
  where r.org_id = o.org_id and is_standard order by created_at desc, id desc limit 1) newest on true
left join lateral (
  select window_end, as_of from savings_runs r
  where r.org_id = o.org_id and is_standard and status = 'succeeded' order by created_at desc, id desc limit 1) good on true
where (newest.created_at is null or (newest.status not in ('queued', 'running')
    and newest.created_at < now() - make_interval(secs => $1) - coalesce(newest.ended_at - newest.started_at, interval '0') * $2))
  and (good.as_of is null
    or good.as_of < now() - make_interval(secs => $3)
    or exists (select from enforcement_rules e where e.org_id = o.org_id and greatest(e.updated_at, e.removed_at) > good.as_of)
    or exists (select from events e where e.org_id = o.org_id and e.timestamp >= good.window_end and e.timestamp <= now()))
order by newest.created_at nulls first
limit greatest(0, $4 - (select count(*) from savings_runs where is_standard and status in ('queued', 'running')))`;

/** Those that waited longest first; so many that with the runs that are open now there are at most `openMax`. */
export async function listSavingsDue(database: Database, openMax: number): Promise<string[]> {
  const rows = await unscoped(
    database,
    'savings are modeled anew for every organization that has rules',
    (system) => system.rows<{ org_id: string }>(DUE, [PAUSE_SECONDS, PAUSE_OF_RUN, STALE_SECONDS, openMax]),
  );
  return rows.map((row) => row.org_id);
}
