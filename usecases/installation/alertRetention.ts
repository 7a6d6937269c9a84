import {
  listOrganizationIds,
  type RetentionWork,
  removeSlices,
  sliceCondition,
} from '../../db/installation/retentionWork.js';
import { unscoped } from '../../db/orgDb.js';
import { retentionLimit } from '../../domain/installation/retention.js';
import { isoFromMicros, MICROS_PER_DAY } from '../../domain/period.js';

/** A notice that was acknowledged is kept for so long after that: a year, and a month to look back on it. */
export const NOTICE_DAYS = 400n;
/** Alerts of one transaction. */
const SLICE_ROWS = 5_000;
const WHY = 'alerts are removed for their age, whosever they are';

const ALERTS = { table: 'alerts', column: 'created_at', type: 'timestamptz' } as const;
const DELETE_ALERTS = `delete from alerts where ${sliceCondition(ALERTS)} and kind = 'policy'`;

/**
 * Removes what calls have raised once it is as old as calls are kept, acknowledged or not: it carries their labels. With
 * `eventDays` undefined calls are kept for good, and so are their alerts. Notices that were acknowledged long ago go
 * too; an open one stays however old it is. A repeat finds nothing left.
 */
export async function removeOldAlerts(work: RetentionWork, eventDays: number | undefined): Promise<void> {
  if (eventDays !== undefined) await removeOfCalls(work, retentionLimit(work.nowMicros, eventDays));
  const limit = isoFromMicros(work.nowMicros - NOTICE_DAYS * MICROS_PER_DAY);
  const notices = await unscoped(work.database, WHY, (system) =>
    system.run(
      `delete from alerts where kind = 'notice' and status = 'acknowledged' and acknowledged_at < $1::timestamptz`,
      [limit],
    ),
  );
  if (notices > 0) await work.report({ rows: notices, partitions: [] });
}

async function removeOfCalls(work: RetentionWork, limitMicros: bigint): Promise<void> {
  const rows = { ...ALERTS, before: isoFromMicros(limitMicros) };
  for (const orgId of await listOrganizationIds(work.database))
    await removeSlices(work, orgId, {
      rows,
      sliceRows: SLICE_ROWS,
      why: WHY,
      remove: (system, values) => system.run(DELETE_ALERTS, values),
    });
}
