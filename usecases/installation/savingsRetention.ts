import { listOrganizationIds, type RetentionWork } from '../../db/installation/retentionWork.js';
import { OrgDb } from '../../db/orgDb.js';
import { removeModeledCalls } from '../../db/policies/modeledSavings.js';

/** The result that holds, and the one before it, which somebody may be going through page by page. */
const STANDARD_KEPT = 2;
/** Results of periods that were named: of the newest so many runs, and so long. */
const OTHERS_KEPT = 10;
const OTHERS_KEPT_DAYS = 7;
/** The runs themselves, without what they found. */
const RUNS_KEPT_DAYS = 90;
/** Rows of one transaction. */
const SLICE_ROWS = 5_000;

/** Ended runs whose results gave way, and with them those that came to none. */
const REPLACED = `
select id from (
  select id, is_standard, status, created_at,
    row_number() over (partition by is_standard, status = 'succeeded' order by created_at desc, id desc) as place
  from savings_runs where org_id = $1 and emptied_at is null and status not in ('queued', 'running')) r
where status <> 'succeeded' or (is_standard and place > ${STANDARD_KEPT})
  or (not is_standard and (place > ${OTHERS_KEPT} or created_at < now() - make_interval(days => ${OTHERS_KEPT_DAYS})))
order by created_at, id`;

/**
 * Removes results that newer ones have taken the place of, slice by slice; `report` is told of each and may throw to end
 * it there. A repeat goes on with what is left.
 */
export async function emptyReplacedSavings(
  orgDb: OrgDb,
  report: (rows: number) => Promise<void>,
): Promise<void> {
  for (const { id } of await orgDb.rows<{ id: string }>(REPLACED, [orgDb.orgId])) {
    for (let removed = SLICE_ROWS; removed > 0; ) {
      removed = await removeModeledCalls(orgDb, id, SLICE_ROWS);
      if (removed > 0) await report(removed);
    }
    await orgDb.transaction(async (inside) => {
      await inside.run('delete from modeled_savings where org_id = $1 and run_id = $2', [orgDb.orgId, id]);
      await inside.run('update savings_runs set emptied_at = now() where org_id = $1 and id = $2', [
        orgDb.orgId,
        id,
      ]);
    });
  }
}

/** What is left over of every organization's results, and runs that ended long ago. */
export async function removeOldSavings({
  database,
  report,
}: Pick<RetentionWork, 'database' | 'report'>): Promise<void> {
  for (const orgId of await listOrganizationIds(database)) {
    const orgDb = new OrgDb(database, orgId);
    await emptyReplacedSavings(orgDb, (rows) => report({ rows, partitions: [] }));
    const runs = await orgDb.run(
      'delete from savings_runs where org_id = $1 and emptied_at < now() - make_interval(days => $2)',
      [orgId, RUNS_KEPT_DAYS],
    );
    if (runs > 0) await report({ rows: runs, partitions: [] });
  }
}
