import type pg from 'pg';
import { recordAudit } from '../../db/access/auditLog.js';
import type { Database } from '../../db/client.js';
import {
  ADD_UP,
  COUNTED,
  dropEventMonth,
  emptyPages,
  listPastPartitions,
  listTakenOut,
  type PastMonth,
  takeOutMonth,
  withOwner,
} from '../../db/installation/monthPartitions.js';
import {
  listOrganizationIds,
  type RetentionWork,
  type Rows,
  removeSlices,
  sliceCondition,
} from '../../db/installation/retentionRuns.js';
import { OrgDb, type SystemDb, unscoped } from '../../db/orgDb.js';
import { signed } from '../../db/usage/usageLog.js';
import { uuidFromMicros } from '../../domain/ids.js';
import { retentionLimit } from '../../domain/installation/retention.js';
import { dayOf, isoFromMicros, MICROS_PER_DAY } from '../../domain/period.js';
import { foldAll } from '../usage/usage.js';

/** Rows of one transaction. */
const SLICE_ROWS = 5_000;
const WHY = 'events are removed for their age, whosever they are';
/** Folds of one organization at most before its events are looked at: what is left waits for the next run. */
const FOLDS_MAX = 1_000;

/**
 * Removes the calls that are older than so many days, with the copies that were kept when they changed and the history
 * of their prices. Months that lie before the limit as a whole are dropped, what is left is deleted row by row. Nothing
 * goes that is in no total yet, so all totals stay as they are; what goes is added up in removed_usage, so that totals
 * can still be held against events. A repeat finds nothing left.
 */
export async function removeOldEvents(work: RetentionWork, days: number): Promise<void> {
  const limit = retentionLimit(work.nowMicros, days);
  const gone = new Map<string, number>();
  await foldAll(work, FOLDS_MAX);
  try {
    await removeMonths(work, limit, gone);
    await deleteEvents(work, limit, gone);
    await deleteCopies(work, limit);
    await deletePriceChanges(work, limit);
  } finally {
    // What went is told even when the rest could not go.
    await tellOrganizations(work.database, dayOf(limit), gone);
  }
}

/** Drops the months that lie before the limit as a whole. `gone` counts the events of each organization. */
async function removeMonths(work: RetentionWork, limit: bigint, gone: Map<string, number>): Promise<void> {
  await withOwner(work.directUrl, async (client) => {
    await dropTakenOut(client, work, gone);
    // A day later than it could be: a call that was taken in just before the limit may still be on its way.
    const past = await listPastPartitions(client, 'events', limit - MICROS_PER_DAY);
    const { olderEndMicros, months } = past;
    if (olderEndMicros === undefined) return;
    // Emptied first: to let it reach further, Postgres looks through it under the lock.
    await deleteEvents(work, olderEndMicros < limit ? olderEndMicros : limit, gone);
    if (months.length > 0) await emptyPages(client, 'events');
    for (const month of months)
      if (!(await takeOutMonth(client, 'events', month, (owner) => isFolded(owner, month)))) break;
    await dropTakenOut(client, work, gone);
  });
}

/** Each organization's log tells how many of its calls went, once a run. */
async function tellOrganizations(
  database: Database,
  before: string,
  gone: ReadonlyMap<string, number>,
): Promise<void> {
  for (const [orgId, calls] of gone)
    await new OrgDb(database, orgId).transaction(async (inside) => {
      // A demo may have been removed meanwhile, and with it the log that it would be told in.
      const [there] = await inside.rows('select id from organizations where id = $1', [orgId]);
      if (!there) return;
      await recordAudit(inside, {
        action: 'retention.ran',
        actor: { kind: 'system', id: 'retention' },
        subject: null,
        details: { calls_removed: calls, before },
        requestId: null,
      });
    });
}

function addTo(gone: Map<string, number>, orgId: string, rows: number): void {
  gone.set(orgId, (gone.get(orgId) ?? 0) + rows);
}

/**
 * SQL of whether every call of a month ($1 to $2) is in its organization's totals. The newest of each organization, one
 * look into an index: of "is there one from here on" Postgres believes that a third of all rows would do, and would read
 * the month once for each organization, while nobody can store a call.
 */
export const IS_FOLDED = `
select coalesce(bool_and(newest.xid < coalesce(least(s.folded_xid, s.projects_xid), 0)), true) as is_folded
from organizations o left join rollup_state s on s.org_id = o.id cross join lateral (
  select max(e.ingest_xid) as xid from events e
  where e.org_id = o.id and e.timestamp >= $1::timestamptz and e.timestamp < $2::timestamptz) newest`;

/** Asked while nobody can add a call. */
async function isFolded(client: pg.ClientBase, month: PastMonth): Promise<boolean> {
  await client.query('set local role app_system');
  const { rows } = await client.query<{ is_folded: boolean }>(IS_FOLDED, [
    isoFromMicros(month.fromMicros),
    isoFromMicros(month.toMicros),
  ]);
  await client.query('reset role');
  return rows[0]?.is_folded === true;
}

/** Drops months that were taken out of the table, by this run or by one that was killed. */
async function dropTakenOut(
  client: pg.ClientBase,
  { report }: RetentionWork,
  gone: Map<string, number>,
): Promise<void> {
  for (const name of await listTakenOut(client, 'events')) {
    const dropped = await dropEventMonth(client, name);
    if (!dropped) continue;
    for (const { orgId, rows } of dropped) addTo(gone, orgId, rows);
    await report({ rows: dropped.reduce((sum, { rows }) => sum + rows, 0), partitions: [name] });
  }
}

const EVENTS = { table: 'events', column: 'timestamp', type: 'timestamptz' } as const;
const COPIES = { ...EVENTS, table: 'event_adjustments' } as const;
const PRICE_CHANGES = { table: 'event_price_changes', column: 'event_id', type: 'uuid' } as const;

/** Deletes rows of a slice that are in the totals, and notes what they added up to. */
const DELETE = (rows: Pick<Rows, 'table' | 'column' | 'type'>, calls: string, cost: string) => `
with gone as (delete from ${rows.table} where ${sliceCondition(rows)} and ingest_xid < $5 returning *),
  sums as (select count(*) as all_rows, coalesce(${calls}, 0)::bigint as calls, coalesce(${cost}, 0) as cost from gone),
  noted as (insert into removed_usage (org_id, calls, cost_usd) select $1, calls, cost from sums where all_rows > 0 ${ADD_UP})
select all_rows from sums`;

const DELETE_EVENTS = DELETE(
  EVENTS,
  `count(*) filter (where ${COUNTED})`,
  `sum(cost_usd) filter (where ${COUNTED})`,
);
const DELETE_COPIES = DELETE(
  COPIES,
  `sum(sign) filter (where status <> 'blocked')`,
  `sum(${signed('cost_usd')}) filter (where status <> 'blocked')`,
);

function deleteEvents(work: RetentionWork, beforeMicros: bigint, gone: Map<string, number>): Promise<void> {
  const rows = { ...EVENTS, before: isoFromMicros(beforeMicros) };
  return deleteFolded(work, rows, DELETE_EVENTS, (orgId, count) => addTo(gone, orgId, count));
}

/** The copies of events that were changed: they are part of what is known of a call. */
function deleteCopies(work: RetentionWork, beforeMicros: bigint): Promise<void> {
  return deleteFolded(
    work,
    { ...COPIES, before: isoFromMicros(beforeMicros) },
    DELETE_COPIES,
    () => undefined,
  );
}

async function deleteFolded(
  work: RetentionWork,
  rows: Rows,
  sql: string,
  tell: (orgId: string, removed: number) => void,
): Promise<void> {
  for (const orgId of await listOrganizationIds(work.database)) {
    const foldedXid = await unscoped(work.database, WHY, (system) => readFolded(system, orgId));
    const removed = await removeSlices(work, orgId, {
      rows,
      sliceRows: SLICE_ROWS,
      why: WHY,
      async remove(system, values) {
        const [gone] = await system.rows<{ all_rows: number }>(sql, [...values, foldedXid]);
        return gone?.all_rows ?? 0;
      },
    });
    if (removed > 0) tell(orgId, removed);
  }
}

/** The transaction below which everything of the organization is in all of its totals. */
async function readFolded(system: SystemDb, orgId: string): Promise<number> {
  const [row] = await system.rows<{ folded_xid: number }>(
    'select least(folded_xid, projects_xid) as folded_xid from rollup_state where org_id = $1',
    [orgId],
  );
  return row?.folded_xid ?? 0;
}

/** The history of prices of events that are gone: an event's id carries its time, and the primary key its id. */
async function deletePriceChanges(work: RetentionWork, limitMicros: bigint): Promise<void> {
  const rows = { ...PRICE_CHANGES, before: uuidFromMicros(limitMicros, 0n) };
  const sql = `delete from event_price_changes where ${sliceCondition(rows)} and timestamp < $5::timestamptz`;
  const limit = isoFromMicros(limitMicros);
  for (const orgId of await listOrganizationIds(work.database))
    await removeSlices(work, orgId, {
      rows,
      sliceRows: SLICE_ROWS,
      why: WHY,
      remove: (system, values) => system.run(sql, [...values, limit]),
    });
}
