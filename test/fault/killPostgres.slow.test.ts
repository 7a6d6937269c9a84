import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SINGLE_STATEMENTS_MIN } from '../../usecases/events/sharingOrganizations.js';
import { anEvent, send } from '../api/support/requests.js';
import { compareStored, foldAll } from '../db/support/compareTotals.js';
import { SeededRandom, testSeed } from '../fakes/seededRandom.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { PATIENT } from '../support/database.js';
import { type KillablePostgres, startKillablePostgres } from './support/killablePostgres.js';
import { auditBook, LoadClient, pause } from './support/loadClient.js';
import { auditReports, ReportClient } from './support/reportClient.js';

const SEED = testSeed();
const KILLS = 3;
const CLIENTS = 4;

/** The API runs in this process and is never restarted. */
let postgres: KillablePostgres;
let api: TestApi;

beforeAll(async () => {
  postgres = await startKillablePostgres('killed-postgres', { poolMax: 8, ...PATIENT });
  api = await startTestApi({ database: postgres.database });
});
afterAll(async () => {
  await api?.close();
  await postgres?.close();
});

describe(`Postgres under load (TEST_SEED=${SEED})`, () => {
  it(`killed ${KILLS} times costs only 503s with Retry-After; the API comes back by itself, nothing acknowledged is lost`, async () => {
    const org = await api.addOrganization();
    const random = new SeededRandom(SEED);
    const client = new LoadClient({ baseUrl: api.baseUrl, key: org.ingestKey, random });
    client.start(CLIENTS);
    for (let kill = 0; kill < KILLS; kill += 1) {
      const before = client.acknowledged;
      while (client.acknowledged < before + 20) await pause(5);
      await pause(random.integer(0, 100));
      await postgres.kill();
      const down = await Promise.all([
        send(api, { path: '/api/v1/events', key: org.adminKey }),
        send(api, { path: '/api/v1/usage/summary', key: org.adminKey }),
        send(api, { path: '/api/v1/events/export?start=2026-01-01&end=2026-02-01', key: org.adminKey }),
        send(api, {
          path: '/api/v1/ingest/events',
          key: org.ingestKey,
          body: JSON.stringify([anEvent()]),
          headers: { 'content-type': 'application/json' },
        }),
      ]);
      for (const answer of down) {
        expect([answer.status, answer.body.code]).toEqual([503, 'service_unavailable']);
        expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
        expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(5);
        expect(JSON.stringify(answer.body)).not.toMatch(/ECONN|postgres|5432|select |insert /i);
      }
      expect((await send(api, { path: '/healthz', key: null })).status).toBe(200);
      const ready = await send(api, { path: '/readyz', key: null });
      expect([ready.status, ready.body.postgres]).toEqual([503, 'down']);
      expect((await send(api, { path: '/api/v1/pricing/table', key: null })).status).toBe(200);
      await postgres.restart();
      await expect
        .poll(async () => (await send(api, { path: '/api/v1/events', key: org.adminKey })).status)
        .toBe(200);
    }
    const before = client.acknowledged;
    while (client.acknowledged < before + 20) await pause(5);
    await client.stop();
    expect(await auditBook(client, api.database.superuser, org.orgId)).toEqual([]);
    expect(new Set(client.answers.map((answer) => answer.status))).toEqual(new Set([202, 503]));
    for (const answer of client.answers)
      if (answer.status === 503) expect(Number(answer.retryAfter)).toBeGreaterThanOrEqual(1);
    // No connection of the pool is broken: as many requests at once as it has connections, twice.
    const after = await Promise.all(
      Array.from({ length: 16 }, () => send(api, { path: '/api/v1/events', key: org.adminKey })),
    );
    expect(after.map((answer) => answer.status)).toEqual(Array(16).fill(200));
  }, 300_000);

  it.each(['twice', 'in a storm'] as const)(
    'killed while calls are reported %s counts each once',
    async (reporting) => {
      const org = await api.addOrganization();
      const random = new SeededRandom(SEED);
      const client = new ReportClient({ baseUrl: api.baseUrl, key: org.ingestKey, reporting });
      client.start(CLIENTS * 2);
      for (let kill = 0; kill < KILLS; kill += 1) {
        const before = client.requests;
        while (client.requests < before + 20) await pause(5);
        await pause(random.integer(0, 100));
        await postgres.kill();
        await postgres.restart();
      }
      const before = client.requests;
      while (client.requests < before + 20) await pause(5);
      await client.stop();
      expect(await auditReports(client, api.database.superuser, org.orgId)).toEqual([]);
      expect(client.statuses).toEqual(new Set([202, 503]));
      await foldAll(api.database.superuser, org.orgDb);
      await compareStored(api.database.superuser, org.orgId);
    },
    300_000,
  );

  it('killed while several organizations share transactions loses and doubles nothing of any', async () => {
    const random = new SeededRandom(SEED);
    const orgs = await Promise.all(Array.from({ length: 3 }, () => api.addOrganization()));
    const clients = orgs.map(({ orgId, ingestKey: key }) => ({
      orgId,
      client: new LoadClient({ baseUrl: api.baseUrl, key, random }),
    }));
    const acknowledged = () => Math.min(...clients.map(({ client }) => client.acknowledged));
    const untilMore = async (more: number) => {
      const before = acknowledged();
      while (acknowledged() < before + more) await pause(5);
    };
    for (const { client } of clients) client.start(2);
    for (let kill = 0; kill < KILLS; kill += 1) {
      await untilMore(2 * SINGLE_STATEMENTS_MIN);
      await pause(random.integer(0, 100));
      await postgres.kill();
      await postgres.restart();
    }
    await untilMore(20);
    for (const { client } of clients) await client.stop();
    for (const { client, orgId } of clients) {
      expect(await auditBook(client, api.database.superuser, orgId)).toEqual([]);
      expect(new Set(client.answers.map((answer) => answer.status))).toEqual(new Set([202, 503]));
    }
    for (const { orgDb, orgId } of orgs) {
      await foldAll(api.database.superuser, orgDb);
      await compareStored(api.database.superuser, orgId);
    }
  }, 300_000);

  it('that lost the answer to a commit makes a 503; the repeat finds its events and doubles none', async () => {
    const org = await api.addOrganization();
    const random = new SeededRandom(SEED);
    const client = new LoadClient({ baseUrl: api.baseUrl, key: org.ingestKey, random });
    const before = postgres.proxy.lost();
    client.start(CLIENTS);
    for (let loss = 0; loss < 10; loss += 1) {
      await pause(random.integer(5, 40));
      postgres.proxy.loseNextCommit();
    }
    while (postgres.proxy.lost() < before + 10) await pause(5);
    await client.stop();
    expect(await auditBook(client, api.database.superuser, org.orgId)).toEqual([]);
    expect(new Set(client.answers.map((answer) => answer.status))).toEqual(new Set([202, 503]));
    const ingest = (event: unknown) =>
      send(api, {
        path: '/api/v1/ingest/events',
        key: org.ingestKey,
        body: JSON.stringify([event]),
        headers: { 'content-type': 'application/json' },
      });
    // A request has further commits besides that of its events, and so do background tasks.
    const event = anEvent();
    postgres.proxy.loseNextCommit({ writing: 'insert into events' });
    const lost = await ingest(event);
    expect([lost.status, lost.body.code]).toEqual([503, 'service_unavailable']);
    const again = await ingest(event);
    expect([again.status, again.body.accepted, again.body.duplicates]).toEqual([202, 1, 1]);
  }, 300_000);
});
