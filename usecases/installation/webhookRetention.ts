import { listOrganizationIds, type RetentionWork } from '../../db/installation/retentionWork.js';
import { type SystemDb, unscoped } from '../../db/orgDb.js';
import { plainArray } from '../../db/pgArray.js';
import { isoFromMicros, MICROS_PER_DAY } from '../../domain/period.js';

/** Messages are kept for so long after what they tell of, with every attempt to deliver them. */
export const WEBHOOK_MESSAGE_DAYS = 30n;
/** Messages of one transaction. */
const SLICE_MESSAGES = 500;
const WHY = 'messages to webhook endpoints are removed for their age, whosever they are';

/**
 * Removes messages that are older than 30 days, with their deliveries and attempts, slice by slice; one that is still to
 * be delivered to somebody stays. A repeat finds nothing left.
 */
export async function removeOldWebhookMessages({
  database,
  nowMicros,
  report,
}: Pick<RetentionWork, 'database' | 'nowMicros' | 'report'>): Promise<void> {
  const before = isoFromMicros(nowMicros - WEBHOOK_MESSAGE_DAYS * MICROS_PER_DAY);
  for (const orgId of await listOrganizationIds(database)) {
    for (let found = SLICE_MESSAGES; found === SLICE_MESSAGES; ) {
      const slice = await unscoped(database, WHY, (system) => removeSlice(system, orgId, before));
      found = slice.found;
      if (slice.removed > 0) await report({ rows: slice.removed, partitions: [] });
    }
  }
}

async function removeSlice(
  system: SystemDb,
  orgId: string,
  before: string,
): Promise<{ found: number; removed: number }> {
  const old = await system.rows<{ id: string }>(
    `select m.id from webhook_messages m where m.org_id = $1 and m.created_at < $2
       and not exists (select from webhook_deliveries d where d.org_id = m.org_id and d.message_id = m.id and d.status = 'pending')
     order by m.created_at limit $3`,
    [orgId, before, SLICE_MESSAGES],
  );
  const oldIds = plainArray(old.map(({ id }) => id));
  // Somebody may be having one sent again just now: locked, they are what they are.
  const deliveries = await system.rows<{ message_id: string; status: string }>(
    'select message_id, status from webhook_deliveries where org_id = $1 and message_id = any($2::uuid[]) order by id for update',
    [orgId, oldIds],
  );
  const sentAgain = new Set(
    deliveries.filter(({ status }) => status === 'pending').map(({ message_id }) => message_id),
  );
  const ids = plainArray(old.map(({ id }) => id).filter((id) => !sentAgain.has(id)));
  await system.run(
    `delete from webhook_attempts a using webhook_deliveries d
     where a.org_id = $1 and d.org_id = $1 and d.id = a.delivery_id and d.message_id = any($2::uuid[])`,
    [orgId, ids],
  );
  await system.run('delete from webhook_deliveries where org_id = $1 and message_id = any($2::uuid[])', [
    orgId,
    ids,
  ]);
  const removed = await system.run(
    'delete from webhook_messages where org_id = $1 and id = any($2::uuid[])',
    [orgId, ids],
  );
  return { found: old.length, removed };
}
