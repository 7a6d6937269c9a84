import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../../platform/embedded/serverProcess.js';
import { sumUsage } from '../../usecases/usage/usage.js';
import { compareStored, foldAll } from '../db/support/compareTotals.js';
import { SeededRandom, testSeed } from '../fakes/seededRandom.js';
import { createTestOrganization, type TestOrganization } from '../support/api.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { ApiProcesses } from './support/apiProcess.js';
import { auditBook, LoadClient, pause } from './support/loadClient.js';
import { auditReports, ReportClient } from './support/reportClient.js';

const SEED = testSeed();
const KILLS = 3;
const CLIENTS = 6;

let database: TestDatabase;
let processes: ApiProcesses;

beforeAll(async () => {
  database = await createTestDatabase();
  processes = new ApiProcesses(database);
});
afterAll(async () => {
  await processes?.close();
  await database.close();
});

/** Errors of a connection that the server closed while a request was in transit. */
const CROSSED = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** Request ids of the calls that are stored now. */
async function storedIds(org: TestOrganization): Promise<Set<string>> {
  const { rows } = await database.superuser.query<{ request_id: string }>(
    'select request_id from events where org_id = $1',
    [org.orgId],
  );
  return new Set(rows.map((row) => row.request_id));
}

async function totalsOf(org: TestOrganization) {
  const question = {
    dimension: 'model',
    filter: {},
    fromMicros: undefined,
    toMicros: undefined,
    limit: 10,
    offset: 0,
  } as const;
  return (await sumUsage(org.orgDb, question)).totals;
}

describe(`the API under load (TEST_SEED=${SEED})`, () => {
  it(`killed ${KILLS} times loses no acknowledged event, doubles none, and its totals are those of its rows`, async () => {
    const org = await createTestOrganization(database.database);
    const random = new SeededRandom(SEED);
    const port = await findFreePort(undefined);
    let api = await processes.start(port);
    const client = new LoadClient({ baseUrl: api.baseUrl, key: org.ingestKey, random });
    client.start(CLIENTS);
    for (let kill = 0; kill < KILLS; kill += 1) {
      const before = client.acknowledged;
      while (client.acknowledged < before + 20) await pause(5);
      await pause(random.integer(0, 150));
      api.program.child.kill('SIGKILL');
      expect(await api.program.ended()).toBe('SIGKILL');
      api = await processes.start(port);
    }
    const before = client.acknowledged;
    while (client.acknowledged < before + 20) await pause(5);
    await client.stop();
    expect(await auditBook(client, database.superuser, org.orgId)).toEqual([]);
    // A connection that breaks is all that a client saw of a kill.
    expect(new Set(client.answers.map((answer) => answer.status))).toEqual(new Set([0, 202]));
    const { rows } = await database.superuser.query(
      'select count(*)::int as calls, sum(cost_usd)::text as cost from events where org_id = $1',
      [org.orgId],
    );
    const unfolded = await totalsOf(org);
    await foldAll(database.superuser, org.orgDb);
    for (const sums of [unfolded, await totalsOf(org)]) {
      expect(sums.calls).toBe(rows[0].calls);
      expect(sums.costPico).toBe(BigInt(rows[0].cost.replace('.', '')));
    }
  }, 300_000);

  it.each(['twice', 'in a storm'] as const)(
    'killed while calls are reported %s counts each once',
    async (reporting) => {
      const org = await createTestOrganization(database.database);
      const random = new SeededRandom(SEED);
      const port = await findFreePort(undefined);
      let api = await processes.start(port);
      const client = new ReportClient({ baseUrl: api.baseUrl, key: org.ingestKey, reporting });
      client.start(CLIENTS * 2);
      for (let kill = 0; kill < KILLS; kill += 1) {
        const before = client.requests;
        while (client.requests < before + 20) await pause(5);
        await pause(random.integer(0, 150));
        api.program.child.kill('SIGKILL');
        expect(await api.program.ended()).toBe('SIGKILL');
        api = await processes.start(port);
      }
      const before = client.requests;
      while (client.requests < before + 20) await pause(5);
      await client.stop();
      expect(await auditReports(client, database.superuser, org.orgId)).toEqual([]);
      expect(client.statuses).toEqual(new Set([0, 202]));
      await foldAll(database.superuser, org.orgDb);
      await compareStored(database.superuser, org.orgId);
    },
    300_000,
  );

  it('asked to stop finishes every request under way, takes none after it, and ends with code 0', async () => {
    const org = await createTestOrganization(database.database);
    const api = await processes.start();
    const next = await processes.start();
    const client = new LoadClient({
      baseUrl: api.baseUrl,
      key: org.ingestKey,
      random: new SeededRandom(SEED),
    });
    client.start(CLIENTS);
    while (client.acknowledged < 30) await pause(5);
    api.program.child.kill('SIGTERM');
    expect(await api.program.ended()).toBe(0);
    const storedByThen = await storedIds(org);
    client.moveTo(next.baseUrl);
    const before = client.acknowledged;
    while (client.acknowledged < before + 20) await pause(5);
    await client.stop();
    expect(await auditBook(client, database.superuser, org.orgId)).toEqual([]);
    // Connections after the stop of listening were refused; no admitted request failed. No server can prevent a request
    // from crossing with the closing of its connection: then nothing of it was stored.
    const crossed = client.answers.filter(({ broke }) => broke !== null && CROSSED.has(broke));
    const taken = crossed.filter(
      (one) => !one.wasAcknowledged && one.batch.ids.some((id) => storedByThen.has(id)),
    );
    expect(taken).toEqual([]);
    const others = client.answers.filter((answer) => !crossed.includes(answer));
    expect(new Set(others.map(({ status, broke }) => broke ?? status))).toEqual(
      new Set([202, 'ECONNREFUSED']),
    );
  }, 300_000);
});
