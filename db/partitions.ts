import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { parseTimestampMicros } from './client.js';
import { plainArray } from './pgArray.js';

const PARTITIONED = ['events', 'event_payloads'] as const;
/** Months before the current one that get a partition of their own; everything older shares one. */
const MONTHS_BACK = 13;
/** Months ahead: events are taken up to 24 hours ahead, and the maintenance that makes partitions may rest for weeks. */
const MONTHS_AHEAD = 3;

function monthStart(now: Date, offset: number): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + offset, 1));
}

function monthName(date: Date): string {
  return `${date.getUTCFullYear()}_${String(date.getUTCMonth() + 1).padStart(2, '0')}`;
}

/** The offset from the current month of a partition that was named by `monthName`. */
function monthsSince(now: Date, partition: string): number {
  const [, year = '', month = ''] = /_(\d{4})_(\d{2})$/.exec(partition) ?? [];
  return (Number(year) - now.getUTCFullYear()) * 12 + Number(month) - 1 - now.getUTCMonth();
}

function sqlDate(date: Date): string {
  return date.toISOString().slice(0, 10);
}

/**
 * Makes the monthly partitions that are missing, up to three months ahead, as the tables' owner. The first call
 * also makes the one that holds everything older than 13 months; a later one fills the months in which nobody called,
 * as after the restore of an old backup. Each is made aside and then attached, so that ingest is never locked out.
 */
export async function ensurePartitions(client: pg.ClientBase): Promise<void> {
  const now = (await client.query<{ now: Date }>('select now() as now')).rows[0]?.now;
  if (!(now instanceof Date)) throw new Error('the database gave no time');
  for (const table of PARTITIONED) {
    const present = await listPartitions(client, table);
    if (present.size === 0) {
      await attach(
        client,
        table,
        `${table}_older`,
        `minvalue`,
        `'${sqlDate(monthStart(now, -MONTHS_BACK))}'`,
      );
    }
    const newest =
      [...present]
        .filter((name) => name !== `${table}_older`)
        .sort()
        .at(-1) ?? '';
    const first = newest === '' ? -MONTHS_BACK : Math.min(0, monthsSince(now, newest) + 1);
    const olderEnd = await readOlderEnd(client, table);
    for (let offset = first; offset <= MONTHS_AHEAD; offset += 1) {
      const start = monthStart(now, offset);
      const name = `${table}_${monthName(start)}`;
      // Months that were dropped for their age are the older one's.
      if (present.has(name) || start.getTime() < olderEnd) continue;
      await attach(client, table, name, `'${sqlDate(start)}'`, `'${sqlDate(monthStart(now, offset + 1))}'`);
    }
  }
}

/** A partition with its bound as Postgres's catalogue writes it: `FOR VALUES FROM (…) TO (…)`. */
export interface PartitionBound {
  name: string;
  bound: string;
}

const PARTITION_NAME = /^[a-z][a-z0-9_]{0,62}$/;
const PARTITION_BOUND = /^FOR VALUES FROM \((MINVALUE|'[0-9 :+-]+')\) TO \('[0-9 :+-]+'\)$/;

/** Gives an empty table another cluster's partitions, in the caller's transaction. Throws for foreign names and bounds. */
export async function replacePartitions(
  client: pg.ClientBase,
  table: string,
  partitions: readonly PartitionBound[],
): Promise<void> {
  for (const name of await listPartitions(client, table)) await client.query(`drop table ${name}`);
  for (const { name, bound } of partitions) {
    if (!PARTITION_NAME.test(name) || !PARTITION_BOUND.test(bound))
      throw new TypeError(`${name} ${bound} is no partition of ours`);
    await client.query(attachSql(table, name, bound));
  }
}

/** Where the partition of everything older ends, milliseconds. */
async function readOlderEnd(client: pg.ClientBase, table: string): Promise<number> {
  const { rows } = await client.query<{ end: string }>(
    `select (regexp_match(pg_get_expr(relpartbound, oid), 'TO \\(''(\\d{4}-\\d{2}-\\d{2})'))[1] as end from pg_class where oid = $1::regclass`,
    [`${table}_older`],
  );
  return Date.parse(`${rows[0]?.end}T00:00:00Z`);
}

async function listPartitions(client: pg.ClientBase, table: string): Promise<Set<string>> {
  const result = await client.query<{ name: string }>(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = $1::regclass`,
    [table],
  );
  return new Set(result.rows.map((row) => row.name));
}

async function attach(
  client: pg.ClientBase,
  table: string,
  name: string,
  from: string,
  to: string,
): Promise<void> {
  await client.query(`begin; ${attachSql(table, name, `for values from (${from}) to (${to})`)}; commit;`);
}

function attachSql(table: string, name: string, bound: string): string {
  return (
    `create table ${name} (like ${table} including all); alter table ${name} enable row level security;` +
    ` alter table ${name} force row level security;` +
    ` alter table ${table} attach partition ${name} ${bound}`
  );
}

/** Waits for a lock so long: whoever comes behind waits with us, and must not notice. */
const LOCK_WAIT_MS = 200;
const LOCK_ATTEMPTS = 40;
const LOCK_PAUSE_MS = 250;
/** Times that pages are asked back for while somebody else keeps them. */
const VACUUM_ATTEMPTS = 20;
const VACUUM_PAUSE_MS = 500;
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

/** Adds up a detached month by organization and drops it. Returns each organization's rows; undefined when it is gone. */
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

/** Finishes what a killed retention run began, so that events are either in their tables or noted as removed. */
export async function finishTakenOut(client: pg.ClientBase): Promise<void> {
  for (const name of await listTakenOut(client, 'events')) await dropEventMonth(client, name);
  for (const name of await listTakenOut(client, 'event_payloads'))
    await client.query(`drop table if exists ${name}`);
}
