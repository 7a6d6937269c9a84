import {
  emptyPages,
  listPastPartitions,
  takeOutMonth,
  withOwner,
} from '../../db/installation/monthPartitions.js';
import {
  listOrganizationIds,
  type RetentionWork,
  removeSlices,
  sliceCondition,
} from '../../db/installation/retentionWork.js';
import { listTakenOut } from '../../db/installation/takenOutMonths.js';
import { retentionLimit } from '../../domain/installation/retention.js';
import { isoFromMicros } from '../../domain/period.js';

/** Payloads of one transaction: each may have 256 KB. */
const SLICE_PAYLOADS = 1_000;
const WHY = 'payloads are removed for their age, whosever they are';

/**
 * Removes the payloads of calls that are older than so many days: months that lie before the limit as a whole are
 * dropped, what is left is deleted row by row. A repeat finds nothing left.
 */
export async function removeOldPayloads(work: RetentionWork, days: number): Promise<void> {
  const { directUrl, nowMicros, report } = work;
  const limit = retentionLimit(nowMicros, days);
  await withOwner(directUrl, async (client) => {
    const past = await listPastPartitions(client, 'event_payloads', limit);
    if (past.olderEndMicros !== undefined) {
      // Emptied first: to let it reach further, Postgres looks through it under the lock.
      await deletePayloads(work, past.olderEndMicros < limit ? past.olderEndMicros : limit);
      if (past.months.length > 0) await emptyPages(client, 'event_payloads');
      for (const month of past.months)
        if (!(await takeOutMonth(client, 'event_payloads', month, async () => true))) break;
    }
    for (const name of await listTakenOut(client, 'event_payloads')) {
      await client.query(`drop table if exists ${name}`);
      await report({ rows: 0, partitions: [name] });
    }
  });
  await deletePayloads(work, limit);
}

/** Deletes payloads of calls before a time, by the index that every organization's lie in. */
async function deletePayloads(work: RetentionWork, beforeMicros: bigint): Promise<void> {
  const rows = {
    table: 'event_payloads',
    column: 'timestamp',
    type: 'timestamptz',
    before: isoFromMicros(beforeMicros),
  } as const;
  const sql = `delete from event_payloads where ${sliceCondition(rows)}`;
  for (const orgId of await listOrganizationIds(work.database))
    await removeSlices(work, orgId, {
      rows,
      sliceRows: SLICE_PAYLOADS,
      why: WHY,
      remove: (system, values) => system.run(sql, values),
    });
}
