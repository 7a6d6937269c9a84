import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAlive, parentOf, waitUntilGone } from '../../platform/embedded/processTable.js';
import { findFreePort, isPortTaken } from '../../platform/embedded/serverProcess.js';
import { anEvent } from '../api/support/requests.js';
import { SeededRandom, testSeed } from '../fakes/seededRandom.js';
import { createTestOrganization } from '../support/api.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { type ApiProcess, ApiProcesses } from './support/apiProcess.js';
import { auditBook, LoadClient, pause } from './support/loadClient.js';

const SEED = testSeed();
const PROCESSES = 3;
const CLIENTS = 12;
/** Longest wait of a request for its answer, milliseconds. */
const ANSWER_LIMIT_MS = 30_000;
/** A failed authentication costs a token of this bucket, which does not refill during a test. */
const FAILED_MAX = 20;

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

const start = (port?: number) =>
  processes.start(port, {
    API_PROCESSES: String(PROCESSES),
    RATE_LIMIT_INGEST: '60000/min',
    RATE_LIMIT_INGEST_ITEMS: '6000000/min',
    RATE_LIMIT_FAILED_AUTH: `${FAILED_MAX}/h`,
    METRICS_TOKEN: 'a-token-of-this-test',
    LOG_LEVEL: 'info',
  });

/** The processes that serve the port, by id. */
function childrenOf({ program }: ApiProcess): number[] {
  const all = existsSync('/proc/self/stat')
    ? readdirSync('/proc').map(Number).filter(Boolean)
    : spawnSync('ps', ['-A', '-o', 'pid='], { encoding: 'utf8' }).stdout.split('\n').map(Number);
  return all.filter((pid) => parentOf(pid) === program.pid).sort((one, other) => one - other);
}

/** Waits until all serve, after so many were started again; the one that started them reports it once too. */
async function untilWhole(api: ApiProcess, startedAgain = 0): Promise<number[]> {
  const reports = PROCESSES + 1 + startedAgain;
  while ((api.program.output().match(/"msg":"listening"/g) ?? []).length < reports) await pause(20);
  return childrenOf(api);
}

/** Answers and errors of clients whose process was killed. */
const BROKEN: ReadonlySet<unknown> = new Set([202, 'ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

interface Answer {
  status: number;
  text: string;
}

/** One request over a connection of its own, so that the next process gets it. */
function ask(api: ApiProcess, path: string, key: string, body?: unknown, headers = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      `${api.baseUrl}${path}`,
      {
        agent: new Agent({ keepAlive: false }),
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      },
      (response) => {
        response.setEncoding('utf8');
        let text = '';
        response.on('data', (part: string) => {
          text += part;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      },
    );
    sent.setTimeout(ANSWER_LIMIT_MS, () => sent.destroy(new Error(`no answer to ${path}`)));
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** Value of a metric's line that begins so. */
async function metric(api: ApiProcess, line: string): Promise<number> {
  const { text } = await ask(api, '/metrics', 'a-token-of-this-test');
  const found = text.split('\n').filter((one) => one.startsWith(line));
  expect(found).toHaveLength(1);
  return Number(found[0]?.slice(found[0].lastIndexOf(' ') + 1));
}

describe(`${PROCESSES} API processes on one port (TEST_SEED=${SEED})`, () => {
  it('killed one by one under load lose no acknowledged event, double none, and the port answers all the time', async () => {
    const org = await createTestOrganization(database.database);
    const random = new SeededRandom(SEED);
    const api = await start();
    const client = new LoadClient({ baseUrl: api.baseUrl, key: org.ingestKey, random });
    client.start(CLIENTS);
    const ready: number[] = [];
    const killed: number[] = [];
    for (let kill = 0; kill < PROCESSES; kill += 1) {
      const before = client.acknowledged;
      while (client.acknowledged < before + 20) await pause(5);
      const alive = await untilWhole(api, kill);
      const [one] = alive.filter((pid) => !killed.includes(pid)) as [number];
      killed.push(one);
      process.kill(one, 'SIGKILL');
      expect(await waitUntilGone(one, 5_000)).toBe(true);
      // A connection that the dead one was to take is closed; none is refused.
      const probe = () => ask(api, '/readyz', '');
      const isReset = ({ code }: NodeJS.ErrnoException) => code === 'ECONNRESET';
      ready.push((await probe().catch((error) => (isReset(error) ? probe() : Promise.reject(error)))).status);
    }
    const after = await untilWhole(api, PROCESSES);
    const before = client.acknowledged;
    while (client.acknowledged < before + 20) await pause(5);
    await client.stop();
    expect(ready).toEqual(ready.map(() => 200));
    expect(after.filter((pid) => killed.includes(pid))).toEqual([]);
    expect(await auditBook(client, database.superuser, org.orgId)).toEqual([]);
    const seen = new Set(client.answers.map(({ status, broke }) => broke ?? status));
    expect([...seen].filter((one) => !BROKEN.has(one))).toEqual([]);
    api.program.child.kill('SIGTERM');
    expect(await api.program.ended()).toBe(0);
  }, 180_000);

  it('share the free port that 0 takes', async () => {
    const api = await start(0);
    await untilWhole(api);
    const reports = api.program.output().match(/.*"msg":"listening"/g) ?? [];
    const ports = reports.map((line) => /"port":(\d+)/.exec(line)?.[1]);
    expect(ports).toEqual(Array.from({ length: PROCESSES + 1 }, () => new URL(api.baseUrl).port));
    expect((await ask(api, '/readyz', '')).status).toBe(200);
    api.program.child.kill('SIGTERM');
    expect(await api.program.ended()).toBe(0);
  }, 120_000);

  it('count together: metrics, failed authentications of an address, a repeated request, and a revoked key', async () => {
    const org = await createTestOrganization(database.database);
    const api = await start();
    await untilWhole(api);

    for (let sent = 0; sent < 30; sent += 1)
      expect((await ask(api, '/api/v1/usage/summary', org.adminKey)).status).toBe(200);
    expect(
      await metric(
        api,
        'trueup_http_request_duration_seconds_count{operation="getUsageSummary",status="200"}',
      ),
    ).toBe(30);
    expect(await metric(api, 'trueup_outbox_depth')).toBe(0);

    const key = randomUUID();
    const events = { events: [anEvent()] };
    const repeated = await Promise.all(
      Array.from({ length: 12 }, () =>
        ask(api, '/api/v1/ingest/events', org.ingestKey, events, { 'idempotency-key': key }),
      ),
    );
    expect(new Set(repeated.map(({ status }) => status))).toEqual(new Set([202]));
    const { rows } = await database.superuser.query(
      'select count(*)::int as calls from events where org_id = $1',
      [org.orgId],
    );
    expect(rows[0].calls).toBe(1);

    const statuses: number[] = [];
    for (let sent = 0; sent < FAILED_MAX + 10; sent += 1) {
      statuses.push((await ask(api, '/api/v1/usage/summary', `tu_live_${sent}`)).status);
      // The others hear of it within a message.
      await pause(5);
    }
    expect(statuses.filter((status) => status === 401)).toHaveLength(FAILED_MAX);
    expect(statuses.slice(FAILED_MAX)).toEqual(Array.from({ length: 10 }, () => 429));

    await database.superuser.query('update api_keys set revoked_at = now() where id = $1', [
      `key_${org.adminKey.split('_')[2]}`,
    ]);
    // Less than the five seconds for which a process remembers a key.
    await pause(1_000);
    for (let sent = 0; sent < PROCESSES * 2; sent += 1)
      expect((await ask(api, '/api/v1/usage/summary', org.adminKey)).status).not.toBe(200);
    api.program.child.kill('SIGTERM');
    expect(await api.program.ended()).toBe(0);
  }, 120_000);

  it('end with the process that started them, however it ends', async () => {
    const port = await findFreePort(undefined);
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const api = await start(port);
      const pids = await untilWhole(api);
      api.program.child.kill(signal);
      await api.program.ended();
      for (const pid of pids) expect(await waitUntilGone(pid, 20_000)).toBe(true);
      expect(pids.filter(isAlive)).toEqual([]);
      expect(await isPortTaken(port, '127.0.0.1')).toBe(false);
    }
  }, 120_000);
});
