import { listOrganizationIds, type RetentionWork } from '../../db/installation/retentionWork.js';
import { OrgDb, unscoped } from '../../db/orgDb.js';
import { clearEndedExplanations } from '../../db/reconciliation/explanations.js';

/** What a run compared is kept so long after its end where it is not published, for whoever looks into a run that failed. */
const UNPUBLISHED_KEPT_DAYS = 7;
/** The runs themselves, with their results. */
const RUNS_KEPT_DAYS = 400;
/** Provider-days of one transaction. */
const SLICE_DAYS = 200;

const ENDED = `status not in ('queued', 'running')`;

/**
 * Provider-days of ended runs that are not published: those of runs that failed, that were cancelled, or that newer ones have
 * taken the place of. The units of published days stay, since their marks tell the next run what has changed.
 */
const REMOVE_UNITS = `
with gone as (
  select u.run_id, u.ordinal, u.provider, u.day from gap_run_units u
  where u.org_id = $1
    and u.run_id in (select id from gap_runs where org_id = $1 and ${ENDED} and finished_at < now() - make_interval(days => ${UNPUBLISHED_KEPT_DAYS}))
    and not exists (select from gap_published p where p.org_id = $1 and p.provider = u.provider and p.day = u.day and p.run_id = u.run_id)
  limit ${SLICE_DAYS}
), buckets as (
  delete from gap_buckets b using gone
  where b.org_id = $1 and b.run_id = gone.run_id and b.provider = gone.provider and b.bucket >= gone.day and b.bucket < gone.day + 1
)
delete from gap_run_units u using gone where u.org_id = $1 and u.run_id = gone.run_id and u.ordinal = gone.ordinal`;

/** Runs that ended long ago and that nothing rests on any more. */
const REMOVE_RUNS = `
delete from gap_runs r where ${ENDED} and finished_at < now() - make_interval(days => ${RUNS_KEPT_DAYS})
  and not exists (select from gap_run_units o where o.org_id = r.org_id and o.run_id = r.id)
  and not exists (select from gap_published o where o.org_id = r.org_id and o.run_id = r.id)
  and not exists (select from gap_buckets o where o.org_id = r.org_id and o.run_id = r.id)
  and not exists (select from findings o where o.org_id = r.org_id and o.run_id = r.id)
  and not exists (select from series_explanations o where o.org_id = r.org_id and o.run_id = r.id)`;

/** What is left over of every organization's gap runs, and runs that ended long ago. A repeat goes on with what is left. */
export async function removeOldGapRuns({
  database,
  report,
}: Pick<RetentionWork, 'database' | 'report'>): Promise<void> {
  for (const orgId of await listOrganizationIds(database)) {
    const orgDb = new OrgDb(database, orgId);
    await orgDb.transaction((inside) => clearEndedExplanations(inside));
    for (let removed = SLICE_DAYS; removed === SLICE_DAYS; ) {
      removed = await orgDb.run(REMOVE_UNITS, [orgId]);
      if (removed > 0) await report({ rows: removed, partitions: [] });
    }
  }
  const runs = await unscoped(database, 'the retention concerns all organizations', (system) =>
    system.run(REMOVE_RUNS),
  );
  if (runs > 0) await report({ rows: runs, partitions: [] });
}
