import { isoFromMicros } from '../../domain/period.js';
import { retentionLimit } from '../../domain/retention.js';
import type { Database } from '../client.js';
import { listPastPartitions, listTakenOut, takeOutMonth, withOwner } from './monthPartitions.js';
import {
  inSlices,
  listOrganizationIds,
  type RetentionWork,
  type Rows,
  sliceCondition,
} from './retentionWork.js';

/** Payloads of one transaction: each may have 256 KB. */
const SLICE_PAYLOADS = 1_000;
const WHY = 'payloads are removed for their age, whosever they are';

/**
 * Removes the payloads of calls that are older than so many days: months that lie before the limit as a whole are
 * dropped, what is left is deleted row by row. A repeat finds nothing left.
 */
export async function removeOldPayloads(
  { database, directUrl, nowMicros, report }: RetentionWork,
  days: number,
): Promise<void> {
  const limit = retentionLimit(nowMicros, days);
  await withOwner(directUrl, async (client) => {
    const past = await listPastPartitions(client, 'event_payloads', limit);
    if (past.olderEndMicros !== undefined) {
      // Emptied first: to let it reach further, Postgres looks through it under the lock.
      await deletePayloads(database, past.olderEndMicros < limit ? past.olderEndMicros : limit, report);
      for (const month of past.months)
        if (!(await takeOutMonth(client, 'event_payloads', month, async () => true))) break;
    }
    for (const name of await listTakenOut(client, 'event_payloads')) {
      await client.query(`drop table ${name}`);
      await report({ rows: 0, partitions: [name] });
    }
  });
  await deletePayloads(database, limit, report);
}

/** Deletes payloads of calls before a time, slice by slice, by the index that every organization's lie in. */
async function deletePayloads(
  database: Database,
  beforeMicros: bigint,
  report: RetentionWork['report'],
): Promise<void> {
  const rows: Rows = {
    table: 'event_payloads',
    column: 'timestamp',
    type: 'timestamptz',
    before: isoFromMicros(beforeMicros),
  };
  for (const orgId of await listOrganizationIds(database))
    await inSlices(database, WHY, orgId, rows, SLICE_PAYLOADS, async (system, after, upTo) => {
      const removed = await system.run(`delete from event_payloads where ${sliceCondition(rows)}`, [
        orgId,
        rows.before,
        after,
        upTo,
      ]);
      if (removed > 0) await report({ rows: removed, partitions: [] });
    });
}
