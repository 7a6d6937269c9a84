import type pg from 'pg';

/** Tables that are partitioned by month over their column `timestamp`. */
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

/**
 * Gives an empty table the partitions of another cluster, so that its old events find theirs. The caller has opened a
 * transaction. Throws for names and bounds that are not of the kind that we make.
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
