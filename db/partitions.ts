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

function sqlDate(date: Date): string {
  return date.toISOString().slice(0, 10);
}

/**
 * Makes the monthly partitions that are missing, up to three months ahead, as the tables' owner. The first call
 * also makes the one that holds everything older than 13 months. Each is made aside and then attached, so that
 * ingest is never locked out.
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
    for (let offset = -MONTHS_BACK; offset <= MONTHS_AHEAD; offset += 1) {
      const start = monthStart(now, offset);
      const name = `${table}_${monthName(start)}`;
      if (present.has(name) || (present.size > 0 && offset < 0)) continue;
      await attach(client, table, name, `'${sqlDate(start)}'`, `'${sqlDate(monthStart(now, offset + 1))}'`);
    }
  }
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
  await client.query(
    `begin; create table ${name} (like ${table} including all); alter table ${name} enable row level security;` +
      ` alter table ${name} force row level security;` +
      ` alter table ${table} attach partition ${name} for values from (${from}) to (${to}); commit;`,
  );
}
