import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensurePartitions } from '../../db/partitions.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { listTenantTables } from './support/tenantRows.js';

/** Rules about the schema, checked against Postgres's catalogue, so that every future migration is checked too. */
const ROLES = ['app_rw', 'app_system', 'app_workspace'];
/** Every privilege on a table; MAINTAIN came with Postgres 17. */
const PRIVILEGES = ['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER', 'MAINTAIN'];
const NO_PRIVILEGE = '42501';
const OF_ORG = `(org_id = (current_setting('app.org_id'::text))::uuid)`;

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

/** SQLSTATE of a statement under a role, or undefined where it succeeds; rolled back. */
async function failureAs(role: string, sql: string): Promise<string | undefined> {
  const client = new pg.Client({ connectionString: test.url });
  await client.connect();
  try {
    await client.query(`begin; set local role ${role}`);
    await client.query(sql);
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code ?? 'no code';
  } finally {
    await client.end();
  }
}

describe('the policies', () => {
  it('are those of the organization, of maintenance and of a workspace, and no other', async () => {
    const found = await rows<{ table: string; policy: string }>(
      `select tablename as table, format('%s for %s to %s using %s with check %s', permissive, cmd, array_to_string(roles, ','), qual, coalesce(with_check, 'nothing')) as policy
       from pg_policies where schemaname = 'public'`,
    );
    const known = (table: string) => [
      table === 'organizations'
        ? `PERMISSIVE for ALL to app_rw using (id = (current_setting('app.org_id'::text))::uuid) with check nothing`
        : `PERMISSIVE for ALL to app_rw using ${OF_ORG} with check ${OF_ORG}`,
      'PERMISSIVE for ALL to app_system using true with check true',
    ];
    // A workspace's rows are rows of its organization: each policy requires this first.
    const ofWorkspace = `PERMISSIVE for SELECT to app_workspace using (${OF_ORG} AND `;
    const others = found.filter(
      ({ table, policy }) => !known(table).includes(policy) && !policy.startsWith(ofWorkspace),
    );
    expect(others).toEqual([]);
    for (const table of tenantTables) {
      const own = found.filter((one) => one.table === table).map(({ policy }) => policy);
      expect(own, table).toEqual(expect.arrayContaining(known(table)));
    }
  });

  it('are on no table that does not enforce them, and every table that has an organization enforces them', async () => {
    const loose = await rows(
      `select c.relname from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
         and not (c.relrowsecurity and c.relforcerowsecurity)
         and (exists (select from pg_policy p where p.polrelid = c.oid)
           or exists (select from pg_attribute a where a.attrelid = c.oid and a.attname ~ '^org(anization)?_id$' and not a.attisdropped))`,
    );
    expect(loose).toEqual([]);
  });
});

describe('org_id', () => {
  it('is a uuid that is never missing, in every tenant table and partition', async () => {
    const wrong = await rows(
      `select a.attrelid::regclass::text as table from pg_attribute a join pg_class c on c.oid = a.attrelid
       where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and a.attname = 'org_id' and not a.attisdropped
         and not (a.attnotnull and a.atttypid = 'uuid'::regtype)`,
    );
    expect(wrong).toEqual([]);
  });

  it('comes first in every key: primary, unique, foreign on both sides, and exclusion; also of partitions', async () => {
    const keys = await rows<{
      name: string;
      columns: string;
      other: string | null;
      other_columns: string | null;
    }>(
      `select k.conrelid::regclass || ' ' || k.conname as name, nullif(k.confrelid, 0)::regclass::text as other,
         (select string_agg(a.attname, ',' order by n) from unnest(k.conkey) with ordinality c(num, n)
           join pg_attribute a on a.attrelid = k.conrelid and a.attnum = c.num) as columns,
         (select string_agg(a.attname, ',' order by n) from unnest(k.confkey) with ordinality c(num, n)
           join pg_attribute a on a.attrelid = k.confrelid and a.attnum = c.num) as other_columns
       from pg_constraint k join pg_class c on c.oid = k.conrelid
       where k.contype in ('p', 'u', 'x', 'f') and (c.relname = any($1) or c.relispartition)`,
      [tenantTables],
    );
    const wrong = keys.filter(({ columns, other, other_columns: others }) => {
      if (!/^org_id(,|$)/.test(columns)) return true;
      return other === 'organizations'
        ? columns !== 'org_id' || others !== 'id'
        : other !== null && !/^org_id,/.test(others ?? '');
    });
    // The organization itself, and keys: the organization is read from the key.
    expect(wrong.map(({ name }) => name).sort()).toEqual([
      'api_keys api_keys_pkey',
      'organizations organizations_pkey',
    ]);
    expect(keys.length).toBeGreaterThan(80);
  });
});

describe('a partition', () => {
  const openPartitions = () =>
    rows(
      `select c.relname, role, coalesce(a.attname, '') as column from pg_class c cross join unnest($1::text[]) role
         left join pg_attribute a on a.attrelid = c.oid and a.attacl is not null
       where c.relispartition and c.relkind in ('r', 'p') and (a.attname is not null or exists (
         select from unnest($2::text[]) privilege where has_table_privilege(role, c.oid, privilege)
           or (privilege in ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES') and has_any_column_privilege(role, c.oid, privilege))))`,
      [[...ROLES, 'public'], PRIVILEGES],
    );
  const countPartitions = async () =>
    Number(
      (
        await rows<{ n: string }>(
          'select count(*) as n from pg_class where relispartition and relkind = $1',
          ['r'],
        )
      )[0]?.n,
    );

  it('grants the roles of requests nothing: neither one that is there nor one that upkeep makes', async () => {
    const before = await countPartitions();
    expect(before).toBeGreaterThan(20);
    expect(await openPartitions()).toEqual([]);
    const [newest] = await rows<{ name: string }>(
      `select relname as name from pg_class where relispartition and relkind = 'r' and relname ~ '^events_\\d' order by 1 desc limit 1`,
    );
    await test.superuser.query(`drop table ${newest?.name}`);
    const owner = new pg.Client({ connectionString: test.url });
    await owner.connect();
    await ensurePartitions(owner);
    await owner.end();
    expect(await countPartitions()).toBe(before);
    expect(await openPartitions()).toEqual([]);
  });

  it('forces row-level security besides, in case a role is granted something by mistake', async () => {
    const loose = await rows(
      `select relname from pg_class where relispartition and relkind in ('r', 'p') and not (relrowsecurity and relforcerowsecurity)`,
    );
    expect(loose).toEqual([]);
  });
});

describe('the roles of requests and of maintenance', () => {
  it('cannot log in, have no power over the server, own nothing, and are members of nothing', async () => {
    const found = await rows(
      `select r.rolname as role, rolcanlogin or rolsuper or rolbypassrls or rolcreatedb or rolcreaterole or rolreplication as powers,
         (select count(*)::int from pg_shdepend d where d.refobjid = r.oid and d.deptype = 'o') as owned,
         (select count(*)::int from pg_auth_members m where m.member = r.oid) as memberships
       from pg_roles r where rolname = any($1) order by 1`,
      [ROLES],
    );
    expect(found).toEqual(ROLES.map((role) => ({ role, powers: false, owned: 0, memberships: 0 })));
  });

  it('can make nothing in the schema or the database, and no role is granted anything by default', async () => {
    const able = await rows(
      `select role from unnest($1::text[]) role where has_schema_privilege(role, 'public', 'CREATE') or has_database_privilege(role, current_database(), 'CREATE')`,
      [[...ROLES, 'public']],
    );
    expect(able).toEqual([]);
    expect(await rows('select defaclobjtype from pg_default_acl')).toEqual([]);
  });

  it('have no TRUNCATE, REFERENCES, TRIGGER or MAINTAIN, and every other role has nothing', async () => {
    const open = await rows(
      `select c.relname, role, privilege from pg_class c, unnest($1::text[]) role, unnest($2::text[]) privilege
       where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f') and has_table_privilege(role, c.oid, privilege)
         and (role = 'public' or privilege in ('TRUNCATE', 'REFERENCES', 'TRIGGER', 'MAINTAIN'))`,
      [[...ROLES, 'public'], PRIVILEGES],
    );
    expect(open).toEqual([]);
  });

  it('write no sequence: numbers come from columns that are made by themselves', async () => {
    const open = await rows(
      `select c.relname, role from pg_class c, unnest($1::text[]) role
       where c.relkind = 'S' and c.relnamespace = 'public'::regnamespace
         and (has_sequence_privilege(role, c.oid, 'UPDATE') or has_sequence_privilege(role, c.oid, 'SELECT'))`,
      [[...ROLES, 'public']],
    );
    expect(open).toEqual([]);
  });
});

describe('code with other rights than the caller’s', () => {
  it('does not exist except for one function: no view of its own rights, no rule, no foreign table, no publication', async () => {
    const found = {
      definers: await rows(
        `select p.oid::regprocedure::text as name, p.proconfig as settings, array(
           select coalesce(nullif(a.grantee, 0)::regrole::text, 'public') from aclexplode(p.proacl) a where a.grantee <> p.proowner) as callers
         from pg_proc p where pronamespace = 'public'::regnamespace and prosecdef`,
      ),
      views: await rows(
        `select relname from pg_class where relnamespace = 'public'::regnamespace
         and (relkind in ('m', 'f') or (relkind = 'v' and not coalesce(reloptions @> array['security_invoker=true'], false)))`,
      ),
      rules: await rows(
        `select rulename from pg_rewrite r join pg_class c on c.oid = r.ev_class where c.relnamespace = 'public'::regnamespace and c.relkind <> 'v'`,
      ),
      publications: await rows('select pubname from pg_publication'),
      eventTriggers: await rows('select evtname from pg_event_trigger'),
      extensions: await rows(`select extname from pg_extension where extname <> 'plpgsql'`),
    };
    expect(found).toEqual({
      // Before Postgres 17 only its owner analyzes a table; requests cannot call it, and no search path leads it astray.
      definers: [
        {
          name: 'analyze_table(text)',
          settings: ['search_path=pg_catalog, pg_temp'],
          callers: ['app_system'],
        },
      ],
      views: [],
      rules: [],
      publications: [],
      eventTriggers: [],
      extensions: [],
    });
  });

  it('changes nothing for a request that calls the functions of the migrations', async () => {
    const makers = await rows<{ call: string }>(
      `select format('%I(%s)', proname, array_to_string(array(
         select case t when 'regclass'::regtype then quote_literal('events') || '::regclass' else quote_literal('true') || '::' || t::regtype end
         from unnest(proargtypes) t), ', ')) as call
       from pg_proc where pronamespace = 'public'::regnamespace and prorettype = 'void'::regtype`,
    );
    expect(makers.length).toBeGreaterThan(1);
    for (const { call } of makers)
      for (const role of ROLES)
        expect(await failureAs(role, `select ${call}`), `${role}: ${call}`).toBe(NO_PRIVILEGE);
  });
});

describe('a request', () => {
  it('reaches neither the files nor the programs of the server, nor what others have sent it', async () => {
    const attempts = [
      `copy (select 1) to '/tmp/out'`,
      `copy events from '/etc/passwd'`,
      `copy (select 1) to program 'true'`,
      `select pg_read_file('/etc/passwd')`,
      `select pg_ls_dir('.')`,
      `select * from pg_authid`,
      `select * from pg_statistic`,
      `select lo_import('/etc/passwd')`,
      `alter table events disable row level security`,
      `alter table events no force row level security`,
      `drop policy tenant on events`,
      `create policy open on events using (true)`,
      `create table taken (id int)`,
      `grant app_system to app_rw`,
      `alter role app_rw bypassrls`,
      `create extension pg_trgm`,
    ];
    // Rows cannot be copied into a table under row-level security at all: that is another refusal.
    const refusals = [NO_PRIVILEGE, '0A000'];
    for (const sql of attempts) expect(refusals, sql).toContain(await failureAs('app_rw', sql));
  });

  it('sees of the planner’s statistics nothing of any tenant’s rows', async () => {
    await test.superuser.query('analyze');
    const client = new pg.Client({ connectionString: test.url });
    await client.connect();
    await client.query('begin; set local role app_rw');
    const { rows: seen } = await client.query(
      `select tablename, attname from pg_stats where schemaname = 'public' and tablename = any($1)`,
      [tenantTables],
    );
    await client.end();
    expect(seen).toEqual([]);
  });
});
