import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../db/client.js';
import { SeededRandom, testSeed } from '../fakes/seededRandom.js';
import { createTestOrganization, startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { ApiProcesses } from './support/apiProcess.js';
import { pause } from './support/loadClient.js';
import { startTcpProxy, type TcpProxy } from './support/tcpProxy.js';

const SEED = testSeed();
const KILLS = 4;
/** Lock that delays every commit which stores an answer, until it is released. */
const HELD = 20_261_122;
/** More than a request has. */
const COMMITS = 6;
const OVERRIDES = '/api/v1/pricing/overrides';
const GAP_RUN = '/api/v1/reconciliation/gap-explorer/run';

let database: TestDatabase;
let proxy: TcpProxy;
let processes: ApiProcesses;

beforeAll(async () => {
  database = await createTestDatabase();
  processes = new ApiProcesses(database);
  proxy = await startTcpProxy(Number(new URL(database.url).port));
});
afterAll(async () => {
  await processes?.close();
  await proxy.close();
  await database.close();
});

function openThroughProxy(): Database {
  const url = new URL(database.url);
  url.port = String(proxy.port);
  return openDatabase({
    url: url.href,
    poolMax: 4,
    applicationName: 'through-proxy',
    statementTimeoutMs: 20_000,
  });
}

interface Asked {
  baseUrl: string;
  path: string;
  body?: object;
  org: TestOrganization;
  key: string;
}

/** Status 0: the connection broke. */
async function ask({ baseUrl, path, body, org, key }: Asked) {
  try {
    const response = await fetch(baseUrl + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${org.adminKey}`,
        'idempotency-key': key,
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    return {
      status: response.status,
      isReplayed: response.headers.get('idempotency-replayed') === 'true',
      text,
    };
  } catch {
    return { status: 0, isReplayed: false, text: '' };
  }
}

/** Repeats until there is an answer that is kept, as a client does. */
async function askUntilAnswered(asked: Asked) {
  for (;;) {
    const answer = await ask(asked);
    if (![0, 409, 503].includes(answer.status)) return answer;
    await pause(50);
  }
}

const overrideOf = (model: string) => ({
  provider: 'openai',
  model,
  rates: { input: 1, output: 2 },
  effective_from: '2026-01-01',
});

async function countRows(table: string, org: TestOrganization): Promise<number> {
  const { rows } = await database.superuser.query(
    `select count(*)::int as count from ${table} where org_id = $1`,
    [org.orgId],
  );
  return rows[0].count;
}

describe('a request whose answer is lost', () => {
  it.each([
    ['a run', GAP_RUN, 'gap_runs', () => undefined],
    ['a price', OVERRIDES, 'own_prices', (key: string) => overrideOf(`model-${key}`)],
  ] as const)(
    '%s: whichever of its commits gets no answer, the repeat gets what was done, once',
    async (_, path, table, bodyOf) => {
      const throughProxy = openThroughProxy();
      const api: TestApi = await startTestApi({ database: { ...database, database: throughProxy } });
      const before = proxy.lost();
      for (let after = 0; after < COMMITS; after += 1) {
        const org = await createTestOrganization(database.database);
        const key = randomUUID();
        const body = bodyOf(key);
        const asked = { baseUrl: api.baseUrl, path, org, key, ...(body ? { body } : {}) };
        proxy.loseNextCommit({ after });
        const first = await ask(asked);
        proxy.spare();
        expect([201, 202, 503]).toContain(first.status);
        const repeated = await askUntilAnswered(asked);
        expect([201, 202]).toContain(repeated.status);
        if (first.status !== 503) expect(repeated.text).toBe(first.text);
        expect(await countRows(table, org)).toBe(1);
        expect((await ask(asked)).text).toBe(repeated.text);
      }
      expect(proxy.lost() - before).toBeGreaterThan(1);
      await api.close();
      await throughProxy.close();
    },
    180_000,
  );

  it('when the process is killed while the commit runs, the repeat at another one gets what was done', async () => {
    const org = await createTestOrganization(database.database);
    const [first, second] = [await processes.start(), await processes.start()];
    // Every commit that keeps an answer waits: the process dies before it hears of it.
    const holder = await database.superuser.connect();
    await holder.query('select pg_advisory_lock($1)', [HELD]);
    await database.superuser.query(`
      create function hold_commit() returns trigger language plpgsql as $$ begin
        while not pg_try_advisory_xact_lock_shared(${HELD}) loop perform pg_sleep(0.01); end loop; return null; end $$;
      create constraint trigger hold_commit after insert or update on idempotency_keys
        deferrable initially deferred for each row when (new.status is not null) execute function hold_commit();
      grant execute on function hold_commit() to app_rw`);
    try {
      const asked = { path: GAP_RUN, org, key: randomUUID() };
      const lost = ask({ ...asked, baseUrl: first.baseUrl });
      for (;;) {
        const { rows } = await database.superuser.query(
          `select from pg_stat_activity where datname = current_database() and query = 'commit' and state = 'active' and wait_event = 'PgSleep'`,
        );
        if (rows.length > 0) break;
        await pause(10);
      }
      first.program.child.kill('SIGKILL');
      expect((await lost).status).toBe(0);
      const early = await ask({ ...asked, baseUrl: second.baseUrl });
      expect([early.status, JSON.parse(early.text).code]).toEqual([409, 'idempotency_in_progress']);
      await holder.query('select pg_advisory_unlock($1)', [HELD]);
      const answer = await askUntilAnswered({ ...asked, baseUrl: second.baseUrl });
      expect([answer.status, answer.isReplayed]).toEqual([202, true]);
      expect(await countRows('gap_runs', org)).toBe(1);
      expect(await countRows('outbox', org)).toBe(1);
    } finally {
      await holder.query('select pg_advisory_unlock_all()');
      holder.release();
      await database.superuser.query(
        'drop trigger hold_commit on idempotency_keys; drop function hold_commit()',
      );
    }
  }, 300_000);

  it(`killed ${KILLS} times at any moment, what it was asked is done exactly once (TEST_SEED=${SEED})`, async () => {
    const org = await createTestOrganization(database.database);
    const random = new SeededRandom(SEED);
    let api = await processes.start();
    const answers = new Map<string, string>();
    for (let kill = 0; kill < KILLS; kill += 1) {
      const keys = Array.from({ length: 4 }, () => randomUUID());
      const askedOf = (key: string): Asked => ({
        baseUrl: api.baseUrl,
        path: OVERRIDES,
        body: overrideOf(`model-${key}`),
        org,
        key,
      });
      const firsts = keys.map((key) => ask(askedOf(key)));
      await pause(random.integer(0, 40));
      api.program.child.kill('SIGKILL');
      await api.program.ended();
      const seen = await Promise.all(firsts);
      api = await processes.start();
      // Shortens the lease of a dead attempt, for which the test would wait half a minute.
      await database.superuser.query('update idempotency_keys set lease_until = now() where status is null');
      for (const [index, key] of keys.entries()) {
        const answer = await askUntilAnswered(askedOf(key));
        expect(answer.status).toBe(201);
        const first = seen[index];
        if (first?.status === 201) expect(answer.text).toBe(first.text);
        answers.set(key, answer.text);
      }
    }
    expect(await countRows('own_prices', org)).toBe(answers.size);
    for (const [key, text] of answers) expect(JSON.parse(text).model).toBe(`model-${key}`);
  }, 300_000);
});
