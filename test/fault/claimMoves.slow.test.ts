import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listClaimEvents } from '../../db/claims/claims.js';
import { publicId } from '../../domain/ids.js';
import type { EmbeddedTemporal } from '../../platform/embedded/temporal.js';
import { TASK_QUEUE_CORE } from '../../workflows/contract.js';
import { createTestOrganization, type TestOrganization } from '../support/api.js';
import { storeClaim } from '../support/claims.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { until, writeWorkflowBundle } from '../support/engine.js';
import { killTemporal, startOwnTemporal } from '../support/ownTemporal.js';
import { TEST_NAMESPACE } from '../support/temporal.js';
import { makeTestFolder } from '../support/testFolder.js';
import { killHard, spawnWorker } from '../support/workerSpawn.js';
import { type ApiProcess, ApiProcesses } from './support/apiProcess.js';
import { pause } from './support/loadClient.js';

const folder = makeTestFolder('claim-moves');
const engineDir = join(folder, 'engine');

/** The programs that production runs, and an engine of this file's own, since it is killed. */
let database: TestDatabase;
let engine: EmbeddedTemporal;
let processes: ApiProcesses;
let worker: Awaited<ReturnType<typeof spawnWorker>>;
let org: TestOrganization;
beforeAll(async () => {
  database = await createTestDatabase();
  org = await createTestOrganization(database.database);
  engine = await startOwnTemporal(engineDir);
  processes = new ApiProcesses(database, engine.address);
  worker = await spawnWorker({
    databaseUrl: database.url,
    address: engine.address,
    namespace: TEST_NAMESPACE,
    taskQueue: TASK_QUEUE_CORE,
    bundlePath: await writeWorkflowBundle(folder),
  });
}, 300_000);
afterAll(async () => {
  await processes?.close();
  if (worker) await killHard(worker);
  await engine?.stop();
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Status 0: the connection broke. */
async function submit({ baseUrl }: ApiProcess, id: string, once: string) {
  try {
    const response = await fetch(`${baseUrl}/api/v1/claims/${publicId('clm', id)}/submit`, {
      method: 'POST',
      headers: { authorization: `Bearer ${org.adminKey}`, 'idempotency-key': once },
    });
    return { status: response.status, body: (await response.json()) as { code?: string; status?: unknown } };
  } catch {
    return { status: 0, body: {} };
  }
}

/** Repeats as a client does, until the answer is the request's own. */
const submitUntilAnswered = (api: ApiProcess, id: string, once: string) =>
  until(
    'the answer',
    async () => {
      const answer = await submit(api, id, once);
      // No faster than a key may ask.
      if (answer.status !== 200) await pause(250);
      return answer;
    },
    ({ status, body }) => ![0, 503].includes(status) && body.code !== 'idempotency_in_progress',
    180_000,
  );

/** Locks a claim's row, so that a move stops in the middle; returns the release. */
async function hold(id: string): Promise<() => Promise<void>> {
  const holder: pg.PoolClient = await database.superuser.connect();
  await holder.query('begin');
  await holder.query('select from claims where id = $1 for update', [id]);
  return async () => {
    await holder.query('commit');
    holder.release();
  };
}

const atTheRow = () =>
  until(
    'the move at the row',
    async () =>
      (
        await database.superuser.query(
          `select from pg_stat_activity where datname = current_database() and application_name = 'killed' and wait_event_type = 'Lock'`,
        )
      ).rowCount ?? 0,
    (count) => count > 0,
  );

const movesOf = async (id: string) => (await listClaimEvents(org.orgDb, id)).map(({ to }) => to);

describe('kill -9 in the middle of a move', () => {
  it('of the API: the move is made once, and the repeat elsewhere is answered as the first would have been', {
    timeout: 300_000,
  }, async () => {
    const [victim, other] = await Promise.all([processes.start(), processes.start()]);
    const { id } = await storeClaim(org.orgDb);
    const once = randomUUID();
    const release = await hold(id);
    const moving = submit(victim, id, once);
    await atTheRow();
    victim.program.child.kill('SIGKILL');
    expect((await moving).status).toBe(0);
    await release();
    const answer = await submitUntilAnswered(other, id, once);
    expect([answer.status, answer.body.status]).toEqual([200, 'submitted_to_provider']);
    expect(await movesOf(id)).toEqual(['draft', 'submitted_to_provider']);
    expect((await submit(other, id, once)).body).toEqual(answer.body);
  });

  it('of the workflow engine: nothing is lost and nothing is made twice', { timeout: 300_000 }, async () => {
    const api = await processes.start();
    const { id } = await storeClaim(org.orgDb);
    const once = randomUUID();
    const release = await hold(id);
    const moving = submit(api, id, once);
    await atTheRow();
    await killTemporal(engine);
    await release();
    const first = await moving;
    expect([200, 503]).toContain(first.status);
    const known = await movesOf(id);
    expect(known).toEqual(first.status === 200 ? ['draft', 'submitted_to_provider'] : ['draft']);
    const address = engine.address;
    engine = await startOwnTemporal(engineDir);
    expect(engine.address).toBe(address);
    const answer = await submitUntilAnswered(api, id, once);
    expect([answer.status, answer.body.status]).toEqual([200, 'submitted_to_provider']);
    if (first.status === 200) expect(answer.body).toEqual(first.body);
    expect(await movesOf(id)).toEqual(['draft', 'submitted_to_provider']);
  });
});
