import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { parseTimestampMicros } from '../client.js';
import { plainArray } from '../pgArray.js';

/** Waits for a lock so long: whoever comes behind waits with us, and must not notice. */
const LOCK_WAIT_MS = 200;
const LOCK_ATTEMPTS = 40;
const LOCK_PAUSE_MS = 250;
/** Times that pages are asked back for while somebody else keeps them. */
const VACUUM_ATTEMPTS = 20;
const VACUUM_PAUSE_MS = 500;
/** SQLSTATE of a lock that was not to be had in time. */
const LOCK_NOT_AVAILABLE = '55P03';

export type PartitionedTable = 'events' | 'event_payloads';

/** A monthly partition that lies before a limit as a whole. */
export interface PastMonth {
  name: string;
  fromMicros: bigint;
  toMicros: bigint;
}

export interface PastPartitions {
  /** The one that holds everything before the first month, where that ends; undefined when there is none. */
  olderEndMicros: bigint | undefined;
  /** Oldest first. */
  months: PastMonth[];
}

const BOUNDS = `
select c.relname as name, (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \\(''([^'']+)''\\)'))[1] as from_text,
  (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \\(''([^'']+)''\\)'))[1] as to_text
from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = $1::regclass`;

/** The partitions that lie before a limit. The session runs in UTC. */
export async function listPastPartitions(
  client: pg.ClientBase,
  table: PartitionedTable,
  limitMicros: bigint,
): Promise<PastPartitions> {
  const { rows } = await client.query<{ name: string; from_text: string | null; to_text: string }>(BOUNDS, [
    table,
  ]);
  const older = rows.find(({ name }) => name === `${table}_older`);
  const months = rows
    .flatMap(({ name, from_text, to_text }) =>
      from_text === null
        ? []
        : [{ name, fromMicros: parseTimestampMicros(from_text), toMicros: parseTimestampMicros(to_text) }],
    )
    .filter(({ toMicros }) => toMicros <= limitMicros)
    .sort((a, b) => (a.fromMicros < b.fromMicros ? -1 : 1));
  return {
    olderEndMicros: older === undefined ? undefined : parseTimestampMicros(older.to_text),
    months,
  };
}

/** A connection of the tables' owner, who alone may change partitions. */
export async function withOwner<T>(directUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: directUrl,
    application_name: 'trueup-retention',
    options: '-c timezone=UTC -c datestyle=ISO,YMD',
  });
  // A connection that is cut is told by the statement that meets it.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * Gives back the pages of the partition of everything older, whose rows were deleted: to let it reach further, Postgres
 * looks through them all while nobody can read or write, dead rows too.
 */
export async function emptyPages(client: pg.ClientBase, table: PartitionedTable): Promise<void> {
  const older = `${table}_older`;
  for (let attempt = 1; attempt <= VACUUM_ATTEMPTS; attempt += 1) {
    await client.query(`vacuum ${older}`);
    const { rows } = await client.query<{ is_clean: boolean }>(
      `select pg_relation_size('${older}') = 0 or exists (select from ${older}) as is_clean`,
    );
    if (rows[0]?.is_clean) return;
    // Somebody's snapshot, an analysis of another table perhaps, still sees what was deleted, or holds the last page.
    await sleep(VACUUM_PAUSE_MS);
  }
}

/**
 * Takes the oldest month out of its table, and lets the partition of everything older reach to where it ended, so that
 * no time is ever without a partition. One transaction that locks the table for as long as a change of the catalogue
 * takes; while somebody reads or writes it is asked again later, so that nobody waits behind it. `isReady` is asked
 * under the lock. Returns false when it said no, or the lock was not to be had in ten seconds: the next run tries again.
 * What was taken out is a table of its own then.
 */
export async function takeOutMonth(
  client: pg.ClientBase,
  table: PartitionedTable,
  month: PastMonth,
  isReady: (client: pg.ClientBase) => Promise<boolean>,
): Promise<boolean> {
  for (let attempt = 1; attempt <= LOCK_ATTEMPTS; attempt += 1) {
    try {
      await client.query(
        `begin; set local lock_timeout = ${LOCK_WAIT_MS}; lock table only ${table} in access exclusive mode`,
      );
      const ready = await isReady(client);
      if (ready) {
        await client.query(
          `alter table ${table} detach partition ${table}_older; alter table ${table} detach partition ${month.name};
           alter table ${table} attach partition ${table}_older for values from (minvalue) to ('${isoDay(month.toMicros)}')`,
        );
      }
      await client.query(ready ? 'commit' : 'rollback');
      return ready;
    } catch (error) {
      await client.query('rollback').catch(() => undefined);
      if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error;
      await sleep(LOCK_PAUSE_MS);
    }
  }
  return false;
}

/** Months begin at midnight. */
function isoDay(micros: bigint): string {
  return new Date(Number(micros / 1_000n)).toISOString().slice(0, 10);
}

/** SQLSTATE of a table that is not there. */
const UNDEFINED_TABLE = '42P01';

/** As a month's table is named; one that is no partition any more was taken out and is on its way to be dropped. */
export const MONTH_TABLE_PATTERN = '^(events|event_payloads)_\\d{4}_\\d{2}$';

/** An event that stands in the log of usage for itself, and not by its copies. */
export const COUNTED = `revised_xid is null and status <> 'blocked'`;

/** Ends an insert into removed_usage. */
export const ADD_UP = `on conflict (org_id) do update set calls = removed_usage.calls + excluded.calls,
  cost_usd = removed_usage.cost_usd + excluded.cost_usd, removed_at = now()`;

/** Tables that were once months of this table and were not removed yet: what a process that was killed has left. */
export async function listTakenOut(client: pg.ClientBase, table: PartitionedTable): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind = 'r' and not relispartition
       and relname ~ $1 and relname ~ $2 order by 1`,
    [MONTH_TABLE_PATTERN, `^${table}_\\d`],
  );
  return rows.map(({ name }) => name);
}

/**
 * Adds up a month of events that was taken out of its table, by organization, and drops it, in one transaction of the
 * tables' owner. Returns how many rows each organization had that is there still; undefined when somebody else has
 * dropped it meanwhile.
 */
export async function dropEventMonth(
  client: pg.ClientBase,
  name: string,
): Promise<{ orgId: string; rows: number }[] | undefined> {
  await client.query('begin');
  try {
    // It is nobody's way to any row any more, and its owner has to read all of it.
    await client.query(`alter table ${name} no force row level security`);
    const { rows } = await client.query<{ org_id: string; calls: string; cost: string; all_rows: string }>(
      `select org_id, count(*) filter (where ${COUNTED})::text as calls, coalesce(sum(cost_usd) filter (where ${COUNTED}), 0)::text as cost,
         count(*)::text as all_rows from ${name} group by org_id`,
    );
    await client.query('set local role app_system');
    const noted = await client.query<{ org_id: string }>(
      // A demo may be gone by now.
      `insert into removed_usage (org_id, calls, cost_usd)
       select g.* from unnest($1::uuid[], $2::int8[], $3::numeric[]) g (org_id, calls, cost) join organizations o on o.id = g.org_id
       ${ADD_UP} returning org_id`,
      [
        plainArray(rows.map((row) => row.org_id)),
        plainArray(rows.map((row) => row.calls)),
        plainArray(rows.map((row) => row.cost)),
      ],
    );
    await client.query(`reset role; drop table ${name}`);
    await client.query('commit');
    const there = new Set(noted.rows.map(({ org_id }) => org_id));
    return rows
      .filter(({ org_id }) => there.has(org_id))
      .map(({ org_id, all_rows }) => ({ orgId: org_id, rows: Number(all_rows) }));
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    if ((error as { code?: string }).code === UNDEFINED_TABLE) return undefined;
    throw error;
  }
}

/**
 * Brings to its end what a run of the retention that was killed, or is under way, has begun: so that whoever reads the
 * schema or adds up events next finds months in their tables or in what was noted of them, and no third place.
 */
export async function finishTakenOut(client: pg.ClientBase): Promise<void> {
  for (const name of await listTakenOut(client, 'events')) await dropEventMonth(client, name);
  for (const name of await listTakenOut(client, 'event_payloads'))
    await client.query(`drop table if exists ${name}`);
}
