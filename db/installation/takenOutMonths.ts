import type pg from 'pg';
import { plainArray } from '../pgArray.js';
import type { PartitionedTable } from './monthPartitions.js';

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
