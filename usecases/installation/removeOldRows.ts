import {
  emptyPages,
  listPastPartitions,
  listTakenOut,
  takeOutMonth,
  withOwner,
} from '../../db/installation/monthPartitions.js';
import {
  listOrganizationIds,
  type RetentionWork,
  removeSlices,
  sliceCondition,
} from '../../db/installation/retentionRuns.js';
import { OrgDb, type SystemDb, unscoped } from '../../db/orgDb.js';
import { plainArray } from '../../db/pgArray.js';
import { removeModeledCalls } from '../../db/policies/modeledSavings.js';
import { clearEndedExplanations } from '../../db/reconciliation/explanations.js';
import { retentionLimit } from '../../domain/installation/retention.js';
import { isoFromMicros, MICROS_PER_DAY } from '../../domain/period.js';

/** Payloads of one transaction: each may have 256 KB. */
const SLICE_PAYLOADS = 1_000;
const WHY_PAYLOADS = 'payloads are removed for their age, whosever they are';

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
      why: WHY_PAYLOADS,
      remove: (system, values) => system.run(sql, values),
    });
}

/** A notice that was acknowledged is kept for so long after that: a year, and a month to look back on it. */
export const NOTICE_DAYS = 400n;
/** Alerts of one transaction. */
const SLICE_ALERTS = 5_000;
const WHY_ALERTS = 'alerts are removed for their age, whosever they are';

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
  const notices = await unscoped(work.database, WHY_ALERTS, (system) =>
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
      sliceRows: SLICE_ALERTS,
      why: WHY_ALERTS,
      remove: (system, values) => system.run(DELETE_ALERTS, values),
    });
}

/** What a run compared is kept so long after its end where it is not published, for whoever looks into a run that failed. */
const UNPUBLISHED_KEPT_DAYS = 7;
/** The runs themselves, with their results. */
const GAP_RUNS_KEPT_DAYS = 400;
/** Provider-days of one transaction. */
const SLICE_DAYS = 200;

const HAS_ENDED = `status not in ('queued', 'running')`;

/**
 * Provider-days of ended runs that are not published: those of runs that failed, that were cancelled, or that newer ones have
 * taken the place of. The units of published days stay, since their marks tell the next run what has changed.
 */
const REMOVE_UNITS = `
with gone as (
  select u.run_id, u.ordinal, u.provider, u.day from gap_run_units u
  where u.org_id = $1
    and u.run_id in (select id from gap_runs where org_id = $1 and ${HAS_ENDED} and finished_at < now() - make_interval(days => ${UNPUBLISHED_KEPT_DAYS}))
    and not exists (select from gap_published p where p.org_id = $1 and p.provider = u.provider and p.day = u.day and p.run_id = u.run_id)
  limit ${SLICE_DAYS}
), buckets as (
  delete from gap_buckets b using gone
  where b.org_id = $1 and b.run_id = gone.run_id and b.provider = gone.provider and b.bucket >= gone.day and b.bucket < gone.day + 1
)
delete from gap_run_units u using gone where u.org_id = $1 and u.run_id = gone.run_id and u.ordinal = gone.ordinal`;

/** Runs that ended long ago and that nothing rests on any more. */
const REMOVE_RUNS = `
delete from gap_runs r where ${HAS_ENDED} and finished_at < now() - make_interval(days => ${GAP_RUNS_KEPT_DAYS})
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

/** The result that holds, and the one before it, which somebody may be going through page by page. */
const STANDARD_KEPT = 2;
/** Results of periods that were named: of the newest so many runs, and so long. */
const OTHERS_KEPT = 10;
const OTHERS_KEPT_DAYS = 7;
/** The runs themselves, without what they found. */
const SAVINGS_KEPT_DAYS = 90;
/** Rows of one transaction. */
const SLICE_MODELED = 5_000;

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
    for (let removed = SLICE_MODELED; removed > 0; ) {
      removed = await removeModeledCalls(orgDb, id, SLICE_MODELED);
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
      [orgId, SAVINGS_KEPT_DAYS],
    );
    if (runs > 0) await report({ rows: runs, partitions: [] });
  }
}

/** Messages are kept for so long after what they tell of, with every attempt to deliver them. */
export const WEBHOOK_MESSAGE_DAYS = 30n;
/** Messages of one transaction. */
const SLICE_MESSAGES = 500;
const WHY_MESSAGES = 'messages to webhook endpoints are removed for their age, whosever they are';

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
      const slice = await unscoped(database, WHY_MESSAGES, (system) => removeSlice(system, orgId, before));
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
