import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Database, openDatabase } from '../../db/client.js';
import { OrgDb, unscoped } from '../../db/orgDb.js';
import { findFreePort } from '../../platform/embedded/serverProcess.js';
import { anEvent, aTime, ingest, send } from '../api/support/requests.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { type ChildProgram, startTypeScript } from '../support/childProgram.js';
import { TEST_SECRET_KEY } from '../support/connectors.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { startPooler, type TestPooler } from '../support/pooler.js';

let pooler: TestPooler;
let test: TestDatabase;
/** Many connections to the pooler, which has two sessions of Postgres for them. */
let database: Database;
let api: TestApi;

beforeAll(async () => {
  pooler = await startPooler(inject('postgresUrl'), 2);
  test = await createTestDatabase();
  // Defaults of another operator's database, on which nothing may rely.
  await test.superuser.query(
    `do $$ begin execute format('alter database %I set timezone = ''Asia/Kolkata''', current_database());
       execute format('alter database %I set datestyle = ''German, DMY''', current_database()); end $$`,
  );
  database = openDatabase({
    url: pooler.urlOf(test.url),
    poolMax: 8,
    applicationName: 'through a pooler',
    statementTimeoutMs: 20_000,
  });
  api = await startTestApi({ database: { ...test, database } });
});

afterAll(async () => {
  await api?.close();
  await database?.close();
  await test?.close();
  await pooler?.stop();
});

const handle = () => new OrgDb(database, randomUUID());

describe('through PgBouncer in transaction mode', () => {
  it('each transaction has the settings that times are read by, and leaves nothing to the next', async () => {
    const settings = `select current_setting('timezone') as zone, current_setting('datestyle') as style,
      current_setting('max_parallel_workers_per_gather') as workers, current_user as role,
      current_setting('app.org_id', true) as org, '2026-01-02T03:04:05.678901Z'::timestamptz as time`;
    const own = handle();
    const expected = {
      zone: 'UTC',
      style: 'ISO, YMD',
      workers: '0',
      role: 'app_rw',
      org: own.orgId,
      time: 1_767_323_045_678_901n,
    };
    expect(await own.rows(settings)).toEqual([expected]);
    expect(await own.transaction((inside) => inside.rows(settings))).toEqual([expected]);
    const system = await unscoped(database, 'what is left to the next transaction', (one) =>
      one.rows(settings),
    );
    expect(system).toEqual([{ ...expected, role: 'app_system', org: '' }]);
    // Another client on the same sessions.
    const other = new pg.Client({ connectionString: pooler.urlOf(test.url) });
    await other.connect();
    const { rows } = await other.query(
      `select current_setting('timezone') as zone, session_user = current_user as itself`,
    );
    await other.end();
    expect(rows).toEqual([{ zone: 'Asia/Kolkata', itself: true }]);
  });

  it('a statement that has a name runs in whichever session it meets', async () => {
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        handle().rows<{ n: number }>('select $1::int as n, pg_sleep(0.005)', [n], 'named'),
      ),
    );
    expect(answers.map(([row]) => row?.n)).toEqual(answers.map((_, n) => n));
    const sessions = new Set<number>();
    for (let n = 0; n < 30; n += 1) {
      const found = await Promise.all(
        [handle(), handle()].map((db) =>
          db.rows<{ pid: number }>('select pg_backend_pid() as pid, pg_sleep(0.002)', [], 'who'),
        ),
      );
      for (const [row] of found) sessions.add(row?.pid ?? 0);
    }
    // Or the name would have been tried in one session only.
    expect(sessions.size).toBe(2);
  });

  it('a statement that fails inside a transaction, and behind its opening, is reported, and the connection goes on', async () => {
    const db = handle();
    await expect(db.rows('select 1 / 0')).rejects.toThrow('division by zero');
    await expect(db.transaction((inside) => inside.rows('select nothing'))).rejects.toThrow('nothing');
    expect(await db.rows('select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('calls come in, are read, summed and exported, also many at once', async () => {
    const org = await api.addOrganization();
    const session = randomUUID();
    const times = Array.from({ length: 24 }, (_, n) => aTime(n));
    await Promise.all(
      times.map((timestamp) =>
        ingest(api, [anEvent({ session_id: session, timestamp, cost_usd: 0.5 })], org.ingestKey),
      ),
    );
    const listed = await api.get(`/api/v1/events?session_id=${session}`, org.adminKey);
    const told = listed.body.events.map((event: { timestamp: string }) => Date.parse(event.timestamp));
    expect(told).toEqual(times.map((time) => Date.parse(time)));
    const summary = await api.get('/api/v1/usage/summary', org.adminKey);
    expect([summary.body.call_count, summary.body.total_cost_usd]).toEqual([24, 12]);
    const window = `start=${aTime(86_400)}&end=${aTime(-60)}`;
    const exports = await Promise.all(
      Array.from({ length: 4 }, () =>
        send(api, { path: `/api/v1/events/export?${window}`, key: org.adminKey }),
      ),
    );
    for (const { status, bytes, isComplete } of exports) {
      expect([status, isComplete]).toEqual([200, true]);
      expect(bytes.toString().trim().split('\n')).toHaveLength(24);
    }
  });
});

describe('a process', () => {
  const started: ChildProgram[] = [];
  const environment = (urls: Record<string, string>) => ({
    TRUEUP_SECRET_KEY: TEST_SECRET_KEY,
    TEMPORAL_ADDRESS: '127.0.0.1:1',
    LOG_LEVEL: 'warn',
    ...urls,
  });
  afterAll(async () => {
    for (const program of started) if (program.child.exitCode === null) program.child.kill('SIGKILL');
    await Promise.all(started.map((program) => program.ended()));
  });

  it('serves through the pooler and receives revocations over its direct connection', async () => {
    const port = await findFreePort();
    const listening = async () => {
      const { rowCount } = await test.superuser.query(
        `select from pg_stat_activity where datname = current_database() and application_name = 'trueup-changes'`,
      );
      return rowCount ?? 0;
    };
    const before = await listening();
    const program = startTypeScript(
      'bin/api.ts',
      [],
      environment({
        PORT: String(port),
        DATABASE_URL: pooler.urlOf(test.url),
        DATABASE_DIRECT_URL: test.url,
      }),
    );
    started.push(program);
    const org = await api.addOrganization();
    const key = await api.addKey(org.orgId, 'member');
    const ask = () =>
      fetch(`http://127.0.0.1:${port}/api/v1/events`, { headers: { authorization: `Bearer ${key}` } }).then(
        ({ status }) => status,
        () => program.child.exitCode,
      );
    await expect.poll(ask).toBe(200);
    // A separate session, which a pooler would assign to the next client.
    await expect.poll(listening).toBe(before + 1);
    await test.superuser.query('update api_keys set revoked_at = now() where name = $1 and org_id = $2', [
      'member',
      org.orgId,
    ]);
    await expect.poll(ask).toBe(401);
  });

  it('does not start where a pooler answers at the direct address, and prints what to set', async () => {
    for (const program of ['bin/api.ts', 'bin/worker.ts']) {
      const refused = startTypeScript(program, [], environment({ DATABASE_URL: pooler.urlOf(test.url) }));
      started.push(refused);
      expect(await refused.ended()).toBe(1);
      expect(refused.output()).toMatch(
        /A connection pooler answers at .*: set DATABASE_DIRECT_URL to the address of Postgres itself/,
      );
    }
  });
});
