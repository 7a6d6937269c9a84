import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { admitLogin, listExcessiveRights, loginOf, makeLogin, withLoginOf } from '../../db/login.js';
import { listPendingMigrations } from '../../db/migrate.js';
import { createTestOrganization, type TestOrganization } from '../support/api.js';
import { asTestLogin, createTestDatabase, TEST_LOGIN, type TestDatabase } from '../support/database.js';

let database: TestDatabase;
let org: TestOrganization;
let client: pg.Client;
const madeRoles: string[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  org = await createTestOrganization(database.database);
  client = new pg.Client({ connectionString: asTestLogin(database.url) });
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  for (const name of madeRoles) await database.superuser.query(`drop role if exists ${name}`);
  await database?.close();
});

/** The address of the test database with another login. */
function urlWith(name: string, password: string): string {
  return withLoginOf(database.url, `postgres://${name}:${password}@login`);
}

function newName(): string {
  const name = `login_${randomBytes(4).toString('hex')}`;
  madeRoles.push(name);
  return name;
}

async function refusal(sql: string): Promise<string | undefined> {
  await client.query('begin');
  try {
    for (const statement of sql.split(';')) await client.query(statement);
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code;
  } finally {
    await client.query('rollback');
  }
}

const DENIED = '42501';

describe('the login of the API and the worker', () => {
  it('has no attribute but to log in, inherits nothing and owns nothing', async () => {
    const { rows } = await database.superuser.query(
      `select rolcanlogin, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls,
         (select count(*)::int from pg_class where relowner = pg_roles.oid) as owned
       from pg_roles where rolname = $1`,
      [TEST_LOGIN.name],
    );
    expect(rows).toEqual([
      {
        rolcanlogin: true,
        ...{ rolsuper: false, rolinherit: false, rolcreaterole: false, rolcreatedb: false },
        ...{ rolreplication: false, rolbypassrls: false, owned: 0 },
      },
    ]);
    expect(await listExcessiveRights(asTestLogin(database.url))).toEqual([]);
  });

  it.each([
    'select * from events',
    'select * from api_keys',
    'select * from schema_migrations',
    'set role app',
    'set session authorization app',
    'create table mine (a int)',
    'create role another',
    'drop table events',
    'alter table events no force row level security',
    'alter table audit_log disable trigger all',
    'set session_replication_role = replica',
    'set local role app_rw; truncate events',
    "set local role app_rw; set local app.org_id = '00000000-0000-7000-8000-000000000000'; delete from audit_log",
    'set local role app_system; alter table events disable row level security',
    "copy (select 1) to program 'true'",
    "select pg_read_file('/etc/passwd')",
  ])('is refused: %s', async (sql) => {
    expect(await refusal(sql)).toBe(DENIED);
  });

  it('sees the rows of one organization under app_rw, and none without one', async () => {
    const other = await createTestOrganization(database.database);
    await client.query(`begin; set local role app_rw; set local app.org_id = '${org.orgId}'`);
    const { rows } = await client.query<{ org_id: string }>('select distinct org_id from api_keys');
    await client.query('rollback');
    expect(rows).toEqual([{ org_id: org.orgId }]);
    expect(other.orgId).not.toBe(org.orgId);
    expect(await refusal('set local role app_rw; select * from api_keys')).toMatch(/^(42704|22P02)$/);
  });

  it('reads which migrations are missing', async () => {
    expect(await listPendingMigrations(asTestLogin(database.url))).toEqual([]);
  });

  it('may not make a database', async () => {
    await expect(client.query('create database another')).rejects.toMatchObject({ code: DENIED });
  });
});

describe('a login that the settings name beside the owner', () => {
  it('is made with the roles that it needs, and unchanged from then on', async () => {
    const name = newName();
    const url = urlWith(name, 'first');
    await admitLogin(database.url, url);
    expect(await listExcessiveRights(url)).toEqual([]);
    expect(await listPendingMigrations(url)).toEqual([]);
    await database.superuser.query(`alter role ${name} connection limit 7`);
    await admitLogin(database.url, url);
    const { rows } = await database.superuser.query('select rolconnlimit from pg_roles where rolname = $1', [
      name,
    ]);
    expect(rows).toEqual([{ rolconnlimit: 7 }]);
  });

  it('keeps its password where the settings name another one, and is refused', async () => {
    const name = newName();
    await admitLogin(database.url, urlWith(name, 'first'));
    await expect(admitLogin(database.url, urlWith(name, 'second'))).rejects.toMatchObject({ code: '28P01' });
    await admitLogin(database.url, urlWith(name, 'first'));
  });

  it('is granted the roles that it lacks', async () => {
    const name = newName();
    await database.superuser.query(`create role ${name} login noinherit password 'own'`);
    await admitLogin(database.url, urlWith(name, 'own'));
    const session = new pg.Client({ connectionString: urlWith(name, 'own') });
    await session.connect();
    for (const role of ['app_rw', 'app_system', 'app_workspace']) await session.query(`set role ${role}`);
    await session.end();
  });

  it('may be the owner itself: nothing changes', async () => {
    await admitLogin(database.url, database.url);
    expect(await listExcessiveRights(database.url)).toEqual(['is a superuser']);
    await expect(makeLogin(database.url, loginOf(database.url))).rejects.toThrow(/is the owner/);
  });

  it.each([
    ['bypassrls', ['bypasses row-level security']],
    ['createdb createrole', ['may make databases', 'may make roles']],
  ])('is detected where it has %s', async (attributes, rights) => {
    const name = newName();
    await database.superuser.query(`create role ${name} login ${attributes} password 'own'`);
    expect(await listExcessiveRights(urlWith(name, 'own'))).toEqual(rights);
  });

  it('is detected where it owns a table, or is a member of a role that does', async () => {
    const owner = newName();
    const member = newName();
    await database.superuser.query(`create role ${owner} login password 'own'; create role ${member} login password 'own';
      create table theirs (a int); alter table theirs owner to ${owner}; grant ${owner} to ${member}`);
    for (const name of [owner, member])
      expect(await listExcessiveRights(urlWith(name, 'own'))).toEqual(['owns tables']);
    await database.superuser.query('drop table theirs');
  });
});

it('of the suite is the one that the databases of all tests are reached by', async () => {
  const { rows } = await database.superuser.query<{ usename: string }>(
    `select distinct usename from pg_stat_activity where datname = current_database() and application_name = 'test'`,
  );
  expect(rows.map(({ usename }) => usename)).toEqual([
    inject('poolerUrl') === null ? TEST_LOGIN.name : 'app',
  ]);
});
