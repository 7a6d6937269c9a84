import { recordAudit } from '../../db/access/auditLog.js';
import { insertKey, type NewKey } from '../../db/access/keys.js';
import type { Database } from '../../db/client.js';
import { MONTH_TABLE_PATTERN } from '../../db/installation/monthPartitions.js';
import { OrgDb, type SystemDb, unscoped } from '../../db/orgDb.js';
import { keyMadeBy } from '../../domain/access/auditLog/actions.js';
import { DomainError } from '../../domain/errors.js';

/** The demo's organization. */
export interface DemoOrganization {
  id: string;
  name: string;
  /** Last day of its data, `YYYY-MM-DD`. */
  endDay: string;
}

interface DemoRow {
  id: string;
  name: string;
  end_day: string;
}

const fromDemoRow = (row: DemoRow): DemoOrganization => ({ id: row.id, name: row.name, endDay: row.end_day });

/** The demo's organization; undefined when there is none. */
export async function findDemoOrganization(database: Database): Promise<DemoOrganization | undefined> {
  const rows = await unscoped(database, 'the demo is looked for among all organizations', (system) =>
    system.rows<DemoRow>(
      `select id, name, to_char(demo_end_day, 'YYYY-MM-DD') as end_day from organizations where demo_end_day is not null`,
    ),
  );
  return rows[0] && fromDemoRow(rows[0]);
}

/** Makes the demo's organization with its admin key, in one transaction; false when there is a demo already. */
export async function insertDemoOrganization(
  database: Database,
  organization: DemoOrganization,
  key: NewKey,
): Promise<boolean> {
  const { id, name, endDay } = organization;
  return new OrgDb(database, id).transaction(async (inside) => {
    const inserted = await inside.unscoped('an organization that does not exist yet has no scope', (system) =>
      system.run(
        `insert into organizations (id, name, demo_end_day) values ($1, $2, $3)
         on conflict ((true)) where demo_end_day is not null do nothing`,
        [id, name, endDay],
      ),
    );
    if (inserted === 0) return false;
    await insertDemoKey(inside, key);
    return true;
  });
}

/** Gives the demo an admin key, and tells so in its audit log. */
export async function insertDemoKey(orgDb: OrgDb, key: NewKey): Promise<void> {
  await orgDb.transaction(async (inside) => {
    await insertKey(inside, key);
    await recordAudit(inside, keyMadeBy('demo', key));
  });
}

/**
 * Removes an organization that is marked as the demo with every row that it has, in one transaction; says how many rows
 * there were. Which tables are its own is read from the catalogue, so that a new table is not forgotten.
 * Error not_found for any organization that is not the demo: nothing of it is touched.
 */
export async function removeDemoOrganization(database: Database, orgId: string): Promise<number> {
  return unscoped(database, 'a demo is removed with all that it has', async (system) => {
    // Whoever writes a row that refers to the organization waits for this lock, and then finds no organization.
    const marked = await system.rows<{ id: string }>(
      'select id from organizations where id = $1 and demo_end_day is not null for update',
      [orgId],
    );
    if (marked.length === 0)
      throw new DomainError(
        'not_found',
        `organization ${orgId} is not marked as a demo: nothing was removed`,
      );
    let removed = 0;
    for (const table of await listTenantTables(system))
      removed += await system.run(`delete from ${table} where org_id = $1`, [orgId]);
    await system.run('delete from organizations where id = $1 and demo_end_day is not null', [orgId]);
    return removed;
  });
}

interface TableRow {
  name: string;
  /** Tables that refer to this one. */
  referrers: string[];
}

/** Every table with a column org_id, those that refer to others first, as quoted names. */
async function listTenantTables(system: SystemDb): Promise<string[]> {
  const tables = await system.rows<TableRow>(
    `select c.oid::regclass::text as name, coalesce((
       select array_agg(distinct k.conrelid::regclass::text) from pg_constraint k
       where k.contype = 'f' and k.confrelid = c.oid and k.conrelid <> c.oid), '{}') as referrers
     from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relname !~ $1
       and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'org_id' and not a.attisdropped)
     order by 1`,
    // A month that was taken out of its table is nobody's any more.
    [MONTH_TABLE_PATTERN],
  );
  return inOrder(tables);
}

/** A table comes after all that refer to it. */
function inOrder(tables: readonly TableRow[]): string[] {
  const names = new Set(tables.map((table) => table.name));
  const done = new Set<string>();
  while (done.size < tables.length) {
    const next = tables.filter(
      ({ name, referrers }) => !done.has(name) && referrers.every((one) => done.has(one) || !names.has(one)),
    );
    if (next.length === 0)
      throw new Error(
        `tables refer to each other in a ring: ${[...names].filter((name) => !done.has(name))}`,
      );
    for (const { name } of next) done.add(name);
  }
  return [...done];
}
