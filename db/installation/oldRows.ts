import type pg from 'pg';
import { uuidFromMicros } from '../../domain/ids.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Database } from '../client.js';
import { type OrgDb, type SystemDb, unscoped } from '../orgDb.js';
import { ADD_UP, COUNTED, type PastMonth } from '../partitions.js';
import { plainArray } from '../pgArray.js';
import { signed } from '../usage/usageLog.js';
import {
  type Removal,
  type RetentionWork,
  type Rows,
  removeSlices,
  sliceCondition,
} from './retentionRuns.js';

/** Deletes rows that exceed their retention, in slices. Each function works for one organization. */

const EVENTS = { table: 'events', column: 'timestamp', type: 'timestamptz' } as const;
const COPIES = { ...EVENTS, table: 'event_adjustments' } as const;
const PAYLOADS = { ...EVENTS, table: 'event_payloads' } as const;
const PRICE_CHANGES = { table: 'event_price_changes', column: 'event_id', type: 'uuid' } as const;
const ALERTS = { table: 'alerts', column: 'created_at', type: 'timestamptz' } as const;

/** Rows of one transaction; payloads have a smaller limit, since each may have 256 KB. */
const SLICE_ROWS = 5_000;
const SLICE_PAYLOADS = 1_000;
const WHY = 'rows are removed for their age, whosever they are';

interface Slicer {
  database: Database;
  report: RetentionWork['report'];
}
type Slice = Pick<Removal, 'rows' | 'remove'>;

function removeRows(work: Slicer, orgId: string, slice: Slice, sliceRows = SLICE_ROWS): Promise<number> {
  return removeSlices(work, orgId, { ...slice, sliceRows, why: WHY });
}

/** Deletes payloads of calls before a time. */
export function deletePayloads(work: Slicer, orgId: string, beforeMicros: bigint): Promise<number> {
  const rows = { ...PAYLOADS, before: isoFromMicros(beforeMicros) };
  const sql = `delete from event_payloads where ${sliceCondition(rows)}`;
  return removeRows(
    work,
    orgId,
    { rows, remove: (system, values) => system.run(sql, values) },
    SLICE_PAYLOADS,
  );
}

/** Deletes alerts of calls before a time; notices stay. */
export function deleteAlertsOfCalls(work: Slicer, orgId: string, beforeMicros: bigint): Promise<number> {
  const rows = { ...ALERTS, before: isoFromMicros(beforeMicros) };
  const sql = `delete from alerts where ${sliceCondition(rows)} and kind = 'policy'`;
  return removeRows(work, orgId, { rows, remove: (system, values) => system.run(sql, values) });
}

/** Deletes notices of all organizations that were acknowledged before a time. */
export function deleteAcknowledgedNotices(database: Database, beforeMicros: bigint): Promise<number> {
  return unscoped(database, WHY, (system) =>
    system.run(
      `delete from alerts where kind = 'notice' and status = 'acknowledged' and acknowledged_at < $1::timestamptz`,
      [isoFromMicros(beforeMicros)],
    ),
  );
}

/** Deletes the folded rows of a slice, and records their sums. */
const deleteFoldedSql = (rows: Pick<Rows, 'table' | 'column' | 'type'>, calls: string, cost: string) => `
with gone as (delete from ${rows.table} where ${sliceCondition(rows)} and ingest_xid < $5 returning *),
  sums as (select count(*) as all_rows, coalesce(${calls}, 0)::bigint as calls, coalesce(${cost}, 0) as cost from gone),
  noted as (insert into removed_usage (org_id, calls, cost_usd) select $1, calls, cost from sums where all_rows > 0 ${ADD_UP})
select all_rows from sums`;

const DELETE_EVENTS = deleteFoldedSql(
  EVENTS,
  `count(*) filter (where ${COUNTED})`,
  `sum(cost_usd) filter (where ${COUNTED})`,
);
const DELETE_COPIES = deleteFoldedSql(
  COPIES,
  `sum(sign) filter (where status <> 'blocked')`,
  `sum(${signed('cost_usd')}) filter (where status <> 'blocked')`,
);

/** Deletes events before a time that are in all totals. */
export function deleteEvents(work: Slicer, orgId: string, beforeMicros: bigint): Promise<number> {
  return deleteFolded(work, orgId, { ...EVENTS, before: isoFromMicros(beforeMicros) }, DELETE_EVENTS);
}

/** Deletes the copies of such events that their changes left. */
export function deleteEventCopies(work: Slicer, orgId: string, beforeMicros: bigint): Promise<number> {
  return deleteFolded(work, orgId, { ...COPIES, before: isoFromMicros(beforeMicros) }, DELETE_COPIES);
}

async function deleteFolded(work: Slicer, orgId: string, rows: Rows, sql: string): Promise<number> {
  const foldedXid = await unscoped(work.database, WHY, (system) => findFoldedXid(system, orgId));
  return removeRows(work, orgId, {
    rows,
    async remove(system, values) {
      const [gone] = await system.rows<{ all_rows: number }>(sql, [...values, foldedXid]);
      return gone?.all_rows ?? 0;
    },
  });
}

/** The transaction below which all totals of the organization are complete. */
async function findFoldedXid(system: SystemDb, orgId: string): Promise<number> {
  const [row] = await system.rows<{ folded_xid: number }>(
    'select least(folded_xid, projects_xid) as folded_xid from rollup_state where org_id = $1',
    [orgId],
  );
  return row?.folded_xid ?? 0;
}

/** Deletes the price history of events before a time: an event's id contains its time, and the primary key its id. */
export function deletePriceChanges(work: Slicer, orgId: string, beforeMicros: bigint): Promise<number> {
  const rows = { ...PRICE_CHANGES, before: uuidFromMicros(beforeMicros, 0n) };
  const sql = `delete from event_price_changes where ${sliceCondition(rows)} and timestamp < $5::timestamptz`;
  const before = isoFromMicros(beforeMicros);
  return removeRows(work, orgId, { rows, remove: (system, values) => system.run(sql, [...values, before]) });
}

/**
 * SQL of whether every call of a month ($1 to $2) is in its organization's totals. It reads the newest call of each
 * organization by one index lookup. For "does one exist from here on" Postgres estimates that a third of all rows
 * match, and would read the month once for each organization, while no call can be stored.
 */
export const IS_FOLDED = `
select coalesce(bool_and(newest.xid < coalesce(least(s.folded_xid, s.projects_xid), 0)), true) as is_folded
from organizations o left join rollup_state s on s.org_id = o.id cross join lateral (
  select max(e.ingest_xid) as xid from events e
  where e.org_id = o.id and e.timestamp >= $1::timestamptz and e.timestamp < $2::timestamptz) newest`;

/** Whether every call of a month is in its organization's totals; called while no call can be stored. */
export async function isFolded(client: pg.ClientBase, month: PastMonth): Promise<boolean> {
  await client.query('set local role app_system');
  const { rows } = await client.query<{ is_folded: boolean }>(IS_FOLDED, [
    isoFromMicros(month.fromMicros),
    isoFromMicros(month.toMicros),
  ]);
  await client.query('reset role');
  return rows[0]?.is_folded === true;
}

/** Drops a month that was detached from its table. */
export async function dropMonth(client: pg.ClientBase, name: string): Promise<void> {
  await client.query(`drop table if exists ${name}`);
}

const HAS_ENDED = `status not in ('queued', 'running')`;

/** Retention of compared data and of the runs themselves, days after their end; and provider-days of one statement. */
export interface KeptGapRuns {
  unpublishedDays: number;
  runDays: number;
  sliceDays: number;
}

/**
 * Deletes unpublished provider-days of ended runs: of failed, cancelled and replaced runs. The units of published days
 * stay, since their marks show the next run which inputs have changed.
 */
export function deleteUnpublishedUnits(orgDb: OrgDb, kept: KeptGapRuns): Promise<number> {
  return orgDb.run(
    `with gone as (
       select u.run_id, u.ordinal, u.provider, u.day from gap_run_units u
       where u.org_id = $1
         and u.run_id in (select id from gap_runs where org_id = $1 and ${HAS_ENDED} and finished_at < now() - make_interval(days => $2))
         and not exists (select from gap_published p where p.org_id = $1 and p.provider = u.provider and p.day = u.day and p.run_id = u.run_id)
       limit $3
     ), buckets as (
       delete from gap_buckets b using gone
       where b.org_id = $1 and b.run_id = gone.run_id and b.provider = gone.provider and b.bucket >= gone.day and b.bucket < gone.day + 1
     )
     delete from gap_run_units u using gone where u.org_id = $1 and u.run_id = gone.run_id and u.ordinal = gone.ordinal`,
    [orgDb.orgId, kept.unpublishedDays, kept.sliceDays],
  );
}

/** Deletes runs of all organizations that ended long ago and that nothing refers to. */
export function deleteOldGapRuns(database: Database, { runDays }: KeptGapRuns): Promise<number> {
  return unscoped(database, WHY, (system) =>
    system.run(
      `delete from gap_runs r where ${HAS_ENDED} and finished_at < now() - make_interval(days => $1)
         and not exists (select from gap_run_units o where o.org_id = r.org_id and o.run_id = r.id)
         and not exists (select from gap_published o where o.org_id = r.org_id and o.run_id = r.id)
         and not exists (select from gap_buckets o where o.org_id = r.org_id and o.run_id = r.id)
         and not exists (select from findings o where o.org_id = r.org_id and o.run_id = r.id)
         and not exists (select from series_explanations o where o.org_id = r.org_id and o.run_id = r.id)`,
      [runDays],
    ),
  );
}

/** Deletes messages before a time without pending deliveries, with their deliveries and attempts, up to a limit. */
export async function deleteWebhookMessages(
  system: SystemDb,
  orgId: string,
  { beforeMicros, limit }: { beforeMicros: bigint; limit: number },
): Promise<{ found: number; removed: number }> {
  const old = await system.rows<{ id: string }>(
    `select m.id from webhook_messages m where m.org_id = $1 and m.created_at < $2
       and not exists (select from webhook_deliveries d where d.org_id = m.org_id and d.message_id = m.id and d.status = 'pending')
     order by m.created_at limit $3`,
    [orgId, isoFromMicros(beforeMicros), limit],
  );
  const oldIds = plainArray(old.map(({ id }) => id));
  // A client may be redelivering one right now, so they are locked and read again.
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
