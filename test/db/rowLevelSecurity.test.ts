import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import {
  drawTenant,
  insertOf,
  insertTenantRows,
  listTables,
  listTenantTables,
} from './support/tenantRows.js';

/** Tables without data of any organization. */
const SHARED_TABLES = [
  'imported_prices',
  'price_feeds',
  'price_imports',
  'price_models',
  'price_state',
  'price_versions',
  'retention_runs',
  'schema_migrations',
  'sweep_state',
];
/** Tables whose key does not begin with org_id: the organization itself, and the keys that identify it. */
const KEYED_OTHERWISE = ['organizations', 'api_keys'];
const ROLES = ['app_rw', 'app_system'] as const;

let test: TestDatabase;
let tenantTables: string[];

beforeAll(async () => {
  test = await createTestDatabase();
  tenantTables = await listTenantTables(test.superuser);
});
afterAll(() => test.close());

async function rows<T extends pg.QueryResultRow>(sql: string, values: unknown[] = []): Promise<T[]> {
  return (await test.superuser.query<T>(sql, values)).rows;
}

/** Runs statements on a separate connection under a role; rolled back at the end. */
async function as<T>(
  role: (typeof ROLES)[number],
  orgId: string | undefined,
  work: (query: (sql: string | { text: string; values: unknown[] }) => Promise<pg.QueryResult>) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: test.url });
  await client.connect();
  try {
    await client.query('begin');
    await client.query(`set local role ${role}`);
    if (orgId !== undefined) await client.query(`set local app.org_id = '${orgId}'`);
    return await work((sql) => client.query(sql));
  } finally {
    await client.query('rollback');
    await client.end();
  }
}

/** SQLSTATE of a statement's failure; undefined when it succeeds. */
async function failureOf(work: Promise<unknown>): Promise<string | undefined> {
  return work.then(
    () => undefined,
    (error: unknown) => (error as { code?: string }).code ?? 'no code',
  );
}

const UNDEFINED_SETTING = '42704';
const INVALID_TEXT = '22P02';
const NO_PRIVILEGE = '42501';

describe('the schema', () => {
  it('every table is a tenant’s, with org_id, or is named as shared', async () => {
    const tables = await listTables(test.superuser);
    const others = tables
      .filter((table) => !table.hasOrgId && table.name !== 'organizations')
      .map((t) => t.name);
    expect(others).toEqual(SHARED_TABLES);
    expect(tenantTables.length).toBeGreaterThan(15);
  });

  it('every tenant table and every partition enables and forces row-level security', async () => {
    const open = await rows<{ relname: string }>(
      `select relname from pg_class
       where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not (relrowsecurity and relforcerowsecurity)`,
    );
    expect(open.map((row) => row.relname).sort()).toEqual(SHARED_TABLES);
  });

  it('every tenant table has the one policy for requests, reading and writing by the organization', async () => {
    const policies = await rows<{ tablename: string; qual: string; with_check: string | null }>(
      `select tablename, qual, with_check from pg_policies where schemaname = 'public' and 'app_rw' = any(roles)`,
    );
    expect(policies.map((policy) => policy.tablename).sort()).toEqual([...tenantTables].sort());
    for (const { tablename, qual, with_check } of policies) {
      const column = tablename === 'organizations' ? 'id' : 'org_id';
      const rule = `(${column} = (current_setting('app.org_id'::text))::uuid)`;
      expect(qual, tablename).toBe(rule);
      if (tablename !== 'organizations') expect(with_check, tablename).toBe(rule);
    }
  });

  it('org_id comes first in every primary key and unique index of a tenant table', async () => {
    const keys = await rows<{ table: string; index: string; first: string | null }>(
      `select c.relname as table, i.indexrelid::regclass::text as index,
         (select attname from pg_attribute a where a.attrelid = i.indrelid and a.attnum = i.indkey[0]) as first
       from pg_index i join pg_class c on c.oid = i.indrelid
       where c.relnamespace = 'public'::regnamespace and i.indisunique`,
    );
    const wrong = keys.filter(
      (key) => key.first !== 'org_id' && ![...SHARED_TABLES, ...KEYED_OTHERWISE].includes(key.table),
    );
    expect(wrong).toEqual([]);
    expect(keys.filter((key) => key.first === 'org_id').length).toBeGreaterThan(15);
  });

  it('org_id comes first on both sides of every foreign key between tenant tables', async () => {
    const keys = await rows<{ name: string; own: string; other: string; other_table: string }>(
      `select k.conname as name, k.confrelid::regclass::text as other_table,
         (select attname from pg_attribute a where a.attrelid = k.conrelid and a.attnum = k.conkey[1]) as own,
         (select attname from pg_attribute a where a.attrelid = k.confrelid and a.attnum = k.confkey[1]) as other
       from pg_constraint k join pg_class c on c.oid = k.conrelid
       where k.contype = 'f' and c.relname = any($1)`,
      [tenantTables],
    );
    expect(keys.length).toBeGreaterThan(3);
    for (const key of keys) {
      expect(key.own, key.name).toBe('org_id');
      expect(key.other, key.name).toBe(key.other_table === 'organizations' ? 'id' : 'org_id');
    }
  });

  it('no view and no function looks past row-level security', async () => {
    const views = await rows(
      `select relname from pg_class where relnamespace = 'public'::regnamespace
       and (relkind = 'm' or (relkind = 'v' and not coalesce(reloptions @> array['security_invoker=true'], false)))`,
    );
    const functions = await rows(
      `select proname from pg_proc where pronamespace = 'public'::regnamespace and prosecdef`,
    );
    // analyze_table gathers statistics of a named table and returns no row (docs/decisions/0042).
    expect({ views, functions }).toEqual({ views: [], functions: [{ proname: 'analyze_table' }] });
  });
});

describe('the roles', () => {
  it('can neither log in, nor bypass row-level security, nor own anything', async () => {
    const roles = await rows<{ rolname: string; powers: boolean; owned: string }>(
      `select rolname, rolcanlogin or rolsuper or rolbypassrls or rolcreatedb or rolcreaterole or rolreplication as powers,
         (select count(*) from pg_class c where c.relowner = r.oid) as owned
       from pg_roles r where rolname = any($1) order by 1`,
      [ROLES],
    );
    expect(roles).toEqual(ROLES.map((rolname) => ({ rolname, powers: false, owned: '0' })));
  });

  it('have no TRUNCATE, REFERENCES or TRIGGER on any table', async () => {
    const granted = await rows(
      `select role, c.relname, privilege
       from pg_class c, unnest($1::text[]) role, unnest(array['TRUNCATE', 'REFERENCES', 'TRIGGER']) privilege
       where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and has_table_privilege(role, c.oid, privilege)`,
      [ROLES],
    );
    expect(granted).toEqual([]);
  });

  it('have no privilege at all on a partition', async () => {
    const partitions = await rows<{ relname: string; open: boolean }>(
      `select c.relname, bool_or(has_table_privilege(role, c.oid, privilege)) as open
       from pg_class c, unnest($1::text[]) role, unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE']) privilege
       where c.relispartition and c.relkind = 'r' group by 1`,
      [ROLES],
    );
    expect(partitions.length).toBeGreaterThan(20);
    expect(partitions.filter((partition) => partition.open)).toEqual([]);
    const read = as('app_rw', drawTenant().orgId, (query) =>
      query(`select * from ${partitions[0]?.relname}`),
    );
    expect(await failureOf(read)).toBe(NO_PRIVILEGE);
  });

  it('app_rw cannot change a shared table', async () => {
    const granted = await rows(
      `select t, privilege from unnest($1::text[]) t, unnest(array['INSERT', 'UPDATE', 'DELETE']) privilege
       where has_table_privilege('app_rw', t, privilege)`,
      [SHARED_TABLES],
    );
    expect(granted).toEqual([]);
  });
});

describe('a statement of app_rw', () => {
  it('without an organization fails on every tenant table, on a new connection', async () => {
    for (const table of tenantTables) {
      const read = as('app_rw', undefined, (query) => query(`select * from ${table}`));
      expect(await failureOf(read), table).toBe(UNDEFINED_SETTING);
    }
  });

  it('without an organization fails on every tenant table, on a connection that served another before', async () => {
    const client = new pg.Client({ connectionString: test.url });
    await client.connect();
    await client.query(`begin; set local app.org_id = '${drawTenant().orgId}'; commit`);
    for (const table of tenantTables) {
      await client.query('begin; set local role app_rw');
      expect(await failureOf(client.query(`select * from ${table}`)), table).toBe(INVALID_TEXT);
      await client.query('rollback');
    }
    await client.end();
  });

  it('sees its own rows and no row of another organization, in every tenant table', async () => {
    const a = await insertTenantRows(test.superuser);
    const b = drawTenant();
    const count = (orgId: string, table: string) =>
      as('app_rw', orgId, async (query) => (await query(`select * from ${table}`)).rowCount);
    for (const table of tenantTables) {
      expect(await count(a.orgId, table), table).toBe(1);
      expect(await count(b.orgId, table), table).toBe(0);
    }
  });

  it('changes and deletes no row of another organization', async () => {
    const a = await insertTenantRows(test.superuser);
    const b = drawTenant();
    for (const table of tenantTables) {
      const key = table === 'organizations' ? 'id' : 'org_id';
      for (const change of [`update ${table} set ${key} = ${key}`, `delete from ${table}`]) {
        const changed = await as('app_rw', b.orgId, async (query) => (await query(change)).rowCount).catch(
          (error: { code?: string }) => error.code,
        );
        expect([0, NO_PRIVILEGE], `${change}: ${changed}`).toContain(changed);
      }
      const left = await rows(`select from ${table} where ${key} = $1`, [a.orgId]);
      expect(left.length, table).toBe(1);
    }
  });

  it('cannot write a row for another organization, nor move one of its own there', async () => {
    const a = drawTenant();
    const b = await insertTenantRows(test.superuser);
    const refused: string[] = [];
    for (const table of tenantTables) {
      const foreign = await insertOf(test.superuser, table, a);
      expect(await failureOf(as('app_rw', b.orgId, (query) => query(foreign))), table).toBe(NO_PRIVILEGE);
      const key = table === 'organizations' ? 'id' : 'org_id';
      const move = as('app_rw', b.orgId, (query) => query(`update ${table} set ${key} = '${a.orgId}'`));
      expect(await failureOf(move), table).toBe(NO_PRIVILEGE);
      refused.push(table);
    }
    expect(refused).toEqual(tenantTables);
  });

  it('can write its own row wherever it may write at all', async () => {
    const mayInsert = await rows<{ t: string }>(
      `select t from unnest($1::text[]) t where has_table_privilege('app_rw', t, 'INSERT')`,
      [tenantTables],
    );
    expect(mayInsert.length).toBeGreaterThan(5);
    for (const { t: table } of mayInsert) {
      const b = drawTenant();
      await test.superuser.query(await insertOf(test.superuser, 'organizations', b));
      const own = await insertOf(test.superuser, table, b);
      const inserted = await as('app_rw', b.orgId, async (query) => {
        await query('set constraints all deferred');
        return (await query(own)).rowCount;
      }).catch((error: { code?: string }) => error.code);
      // A row that refers to one that is not there is stopped by that, not by row-level security.
      expect([1, '23503'], `${table}: ${inserted}`).toContain(inserted);
    }
  });

  it('cannot use COPY to write past the policies', async () => {
    const copy = as('app_rw', drawTenant().orgId, (query) => query('copy events from stdin'));
    expect(await failureOf(copy)).toBe('0A000');
  });

  it('learns nothing of another organization’s row from a foreign key', async () => {
    const a = await insertTenantRows(test.superuser);
    const b = drawTenant();
    const probe = async (sourceId: string) => {
      const row = await insertOf(test.superuser, 'billing_rows', { ...b, sourceId });
      return failureOf(
        as('app_rw', b.orgId, async (query) => {
          await query('set constraints all immediate');
          await query(row);
        }),
      );
    };
    expect(await probe(a.sourceId)).toBe('23503');
    expect(await probe(drawTenant().sourceId)).toBe('23503');
  });
});
