import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { parseTimestampMicros } from './client.js';
import { plainArray } from './pgArray.js';

const PARTITIONED = ['events', 'event_payloads'] as const;
/** Months before the current one with separate partitions; everything older shares one. */
const MONTHS_BACK = 13;
/**
 * Months ahead: events are accepted up to 24 hours ahead, and the maintenance that creates partitions may be down for
 * weeks.
 */
const MONTHS_AHEAD = 3;

function monthStart(now: Date, offset: number): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + offset, 1));
}

function monthName(date: Date): string {
  return `${date.getUTCFullYear()}_${String(date.getUTCMonth() + 1).padStart(2, '0')}`;
}

/** The offset from the current month of a partition that `monthName` named. */
function monthsSince(now: Date, partition: string): number {
  const [, year = '', month = ''] = /_(\d{4})_(\d{2})$/.exec(partition) ?? [];
  return (Number(year) - now.getUTCFullYear()) * 12 + Number(month) - 1 - now.getUTCMonth();
}

function sqlDate(date: Date): string {
  return date.toISOString().slice(0, 10);
}

/**
 * Creates the missing monthly partitions, up to three months ahead, as the tables' owner. The first call also creates
 * the partition of everything older than 13 months; later calls also fill past months without a call of this function,
 * as after restoring an old backup. Each partition is created separately and then attached, so that ingest is never
 * blocked.
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
      // Months that were dropped for their age belong to the partition of everything older.
      if (present.has(name) || start.getTime() < olderEnd) continue;
      await attach(client, table, name, `'${sqlDate(start)}'`, `'${sqlDate(monthStart(now, offset + 1))}'`);
    }
  }
}

/** A partition with its bound as Postgres's catalogue has it: `FOR VALUES FROM (…) TO (…)`. */
export interface PartitionBound {
  name: string;
  bound: string;
}

const PARTITION_NAME = /^[a-z][a-z0-9_]{0,62}$/;
const PARTITION_BOUND = /^FOR VALUES FROM \((MINVALUE|'[0-9 :+-]+')\) TO \('[0-9 :+-]+'\)$/;

/**
 * Replaces an empty table's partitions by another cluster's, in the caller's transaction. Throws for foreign names and
 * bounds.
 */
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

/** End of the partition of everything older, milliseconds. */
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

/** Longest wait for a lock, milliseconds: others queue behind the waiting statement and must not notice. */
const LOCK_WAIT_MS = 200;
const LOCK_ATTEMPTS = 40;
const LOCK_PAUSE_MS = 250;
/** Attempts to free pages that others keep. */
const VACUUM_ATTEMPTS = 20;
const VACUUM_PAUSE_MS = 500;
const LOCK_NOT_AVAILABLE = '55P03';

export type PartitionedTable = 'events' | 'event_payloads';

/** A monthly partition that lies completely before a limit. */
export interface PastMonth {
  name: string;
  fromMicros: bigint;
  toMicros: bigint;
}

export interface PastPartitions {
  /** End of the partition of everything before the first month; undefined: it does not exist. */
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

/** A connection as the tables' owner, who alone may change partitions. */
export async function withOwner<T>(directUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: directUrl,
    application_name: 'trueup-retention',
    options: '-c timezone=UTC -c datestyle=ISO,YMD',
  });
  // The next statement reports a lost connection.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * Frees the pages of the partition of everything older, whose rows were deleted: to change its bound, Postgres scans
 * all pages, with dead rows too, while it blocks all reads and writes.
 */
export async function emptyPages(client: pg.ClientBase, table: PartitionedTable): Promise<void> {
  const older = `${table}_older`;
  for (let attempt = 1; attempt <= VACUUM_ATTEMPTS; attempt += 1) {
    await client.query(`vacuum ${older}`);
    const { rows } = await client.query<{ is_clean: boolean }>(
      `select pg_relation_size('${older}') = 0 or exists (select from ${older}) as is_clean`,
    );
    if (rows[0]?.is_clean) return;
    // Another snapshot, perhaps of an analysis of another table, still sees the deleted rows, or holds the last page.
    await sleep(VACUUM_PAUSE_MS);
  }
}

/**
 * Detaches the oldest month from its table, and extends the partition of everything older to its end, so that every
 * time has a partition. One transaction locks the table as briefly as a catalogue change takes; while others read or
 * write, it retries later, so that no request waits behind it. `isReady` is called under the lock. Returns false when it
 * returned false, or the lock was not available within ten seconds: the next run retries. A detached month is a
 * separate table.
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

/** Name pattern of a month's table; one that is not a partition was detached and is waiting to be dropped. */
export const MONTH_TABLE_PATTERN = '^(events|event_payloads)_\\d{4}_\\d{2}$';

/** An event that is itself in the log of usage, rather than by its copies. */
export const COUNTED = `revised_xid is null and status <> 'blocked'`;

/** The end of an insert into removed_usage. */
export const ADD_UP = `on conflict (org_id) do update set calls = removed_usage.calls + excluded.calls,
  cost_usd = removed_usage.cost_usd + excluded.cost_usd, removed_at = now()`;

/** Detached months of this table that were not dropped yet, left by a killed process. */
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
 * Sums a detached month by organization and drops it. Returns each organization's rows; undefined: it no longer exists.
 */
export async function dropEventMonth(
  client: pg.ClientBase,
  name: string,
): Promise<{ orgId: string; rows: number }[] | undefined> {
  await client.query('begin');
  try {
    // The detached table is no longer reachable through its parent, and its owner has to read all of it.
    await client.query(`alter table ${name} no force row level security`);
    const { rows } = await client.query<{ org_id: string; calls: string; cost: string; all_rows: string }>(
      `select org_id, count(*) filter (where ${COUNTED})::text as calls, coalesce(sum(cost_usd) filter (where ${COUNTED}), 0)::text as cost,
         count(*)::text as all_rows from ${name} group by org_id`,
    );
    await client.query('set local role app_system');
    const noted = await client.query<{ org_id: string }>(
      // A demo may have been removed meanwhile.
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

/** Finishes the work of a killed retention run, so that events are either in their tables or recorded as removed. */
export async function finishTakenOut(client: pg.ClientBase): Promise<void> {
  for (const name of await listTakenOut(client, 'events')) await dropEventMonth(client, name);
  for (const name of await listTakenOut(client, 'event_payloads'))
    await client.query(`drop table if exists ${name}`);
}
