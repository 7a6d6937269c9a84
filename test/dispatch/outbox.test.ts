import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { TemporalOrchestrator } from '../../adapters/orchestrator.js';
import { claimOutboxMessages, insertOutboxMessage, markOutboxDispatched } from '../../db/runs/outbox.js';
import { OutboxDispatcher } from '../../dispatch/outboxDispatcher.js';
import { SyncSchedules } from '../../dispatch/syncSchedules.js';
import { findUuid } from '../../domain/ids.js';
import { microsFromDate } from '../../domain/period.js';
import { runWorkflowId } from '../../domain/runs/runKinds.js';
import { chooseTemporalPort } from '../../platform/embedded/temporal.js';
import { createLogger } from '../../platform/logger.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { pollToEnd } from '../support/bills.js';
import { startTestEngine, until } from '../support/engine.js';
import { startOwnTemporal } from '../support/ownTemporal.js';
import { TEST_NAMESPACE } from '../support/temporal.js';
import { makeTestFolder } from '../support/testFolder.js';

const RUN = '/api/v1/reconciliation/gap-explorer/run';
const logger = createLogger({ name: 'worker', level: 'silent' });
let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});

afterAll(async () => {
  await api?.close();
});

const messages = async (orgId: string) => {
  const { rows } = await api.database.superuser.query(
    'select kind, attempts, dispatched_at is not null as dispatched, dead_at is not null as dead, last_error from outbox where org_id = $1 order by id',
    [orgId],
  );
  return rows;
};

const orchestratorAt = (address: string, namespace = TEST_NAMESPACE) =>
  new TemporalOrchestrator({ address, namespace, taskQueue: 'nobody', nowMs: () => performance.now() });

const schedulesOf = (orchestrator: TemporalOrchestrator) =>
  new SyncSchedules({
    database: api.database.database,
    orchestrator,
    logger,
    pollSeconds: () => 3_600,
    nowMicros: () => microsFromDate(new Date()),
  });

describe('a message', () => {
  it('is delivered once by two dispatchers that look at the same time', async () => {
    const organizations = await Promise.all(Array.from({ length: 20 }, () => api.addOrganization()));
    for (const { adminKey } of organizations) await api.post(RUN, {}, adminKey);
    const engines = await Promise.all([1, 2].map(() => startTestEngine(api.database.database)));
    await until(
      'delivery of all',
      async () => (await Promise.all(organizations.map(({ orgId }) => messages(orgId)))).flat(),
      (rows) => rows.every(({ dispatched }) => dispatched),
    );
    const all = (await Promise.all(organizations.map(({ orgId }) => messages(orgId)))).flat();
    expect(all.map(({ attempts }) => attempts)).toEqual(Array(20).fill(1));
    for (const engine of engines) await engine.close();
  });

  it('of a dispatcher that was killed comes back when its lease ends', async () => {
    const { orgDb, orgId } = await api.addOrganization();
    await insertOutboxMessage(orgDb, 'gap_run.cancel', orgId);
    const [held] = await claimOutboxMessages(api.database.database, 10, 600);
    expect(held).toMatchObject({ orgId, attempts: 1 });
    expect(await claimOutboxMessages(api.database.database, 10, 600)).toEqual([]);
    // Ten minutes later.
    await api.database.superuser.query(
      `update outbox set next_attempt_at = next_attempt_at - interval '10 minutes' where org_id = $1`,
      [orgId],
    );
    const [again] = await claimOutboxMessages(api.database.database, 10, 600);
    expect(again).toMatchObject({ orgId, id: held?.id, attempts: 2 });
    if (again) await markOutboxDispatched(api.database.database, [again]);
  });

  it('that Temporal refuses permanently is given up, and its run fails visibly', async () => {
    const { orgId, adminKey } = await api.addOrganization();
    const orchestrator = orchestratorAt(inject('temporalAddress'), 'no-such-namespace');
    const dispatcher = new OutboxDispatcher({
      database: api.database.database,
      orchestrator,
      schedules: schedulesOf(orchestrator),
      logger,
      attemptsMax: 2,
    });
    const { body } = await api.post(RUN, {}, adminKey);
    dispatcher.start();
    expect(await pollToEnd(api, body.status_url, undefined, adminKey)).toMatchObject({
      status: 'failed',
      error: { code: 'dispatch_failed' },
    });
    expect(await messages(orgId)).toMatchObject([{ attempts: 2, dispatched: false, dead: true }]);
    await dispatcher.stop();
    await orchestrator.close();
  });
});

describe('a burst of messages that wake the same endpoint', () => {
  /** Two endpoints of one organization and one of another, with a message about each. */
  async function aBurst() {
    const [one, other] = [await api.addOrganization(), await api.addOrganization()];
    const subjects = [
      [one, randomUUID()],
      [one, randomUUID()],
      [other, randomUUID()],
    ] as const;
    for (let round = 0; round < 10; round += 1)
      for (const [{ orgDb }, subjectId] of subjects)
        await insertOutboxMessage(orgDb, 'webhook.deliver', subjectId);
    const all = async () => [...(await messages(one.orgId)), ...(await messages(other.orgId))];
    return { subjects, all };
  }

  /** A dispatcher that records its starts in Temporal in `woken`. */
  function dispatch(wake: (endpointId: string) => Promise<void>) {
    const orchestrator = orchestratorAt(inject('temporalAddress'));
    const woken: string[] = [];
    orchestrator.wakeWebhookDelivery = async ({ endpointId }) => {
      woken.push(endpointId);
      await wake(endpointId);
    };
    const dispatcher = new OutboxDispatcher({
      database: api.database.database,
      orchestrator,
      schedules: schedulesOf(orchestrator),
      logger,
    });
    dispatcher.start();
    const stop = async () => {
      await dispatcher.stop();
      await orchestrator.close();
    };
    return { woken, stop };
  }

  it('is one signal to each: it delivers all of them', async () => {
    const { subjects, all } = await aBurst();
    const { woken, stop } = dispatch(async () => undefined);
    await until('delivery of all', all, (rows) => rows.every(({ dispatched }) => dispatched));
    await stop();
    expect(woken.sort()).toEqual(subjects.map(([, id]) => id).sort());
    expect((await all()).map(({ attempts }) => attempts)).toEqual(Array(30).fill(1));
  });

  it('is put back whole where the signal fails, and the other endpoints are woken', async () => {
    const { subjects, all } = await aBurst();
    let isBroken = true;
    const { woken, stop } = dispatch(async (endpointId) => {
      if (isBroken && endpointId === subjects[0][1]) throw new Error('refused');
    });
    await until(
      'delivery of the others',
      all,
      (rows) => rows.filter(({ dispatched }) => dispatched).length === 20,
    );
    expect((await all()).filter(({ dispatched }) => !dispatched)).toHaveLength(10);
    isBroken = false;
    await until('delivery of all', all, (rows) => rows.every(({ dispatched }) => dispatched));
    await stop();
    expect(new Set(woken).size).toBe(3);
  });
});

describe('while Temporal is away', () => {
  it('runs are accepted and wait, reads continue, and the runs work when it is back', {
    timeout: 300_000,
  }, async () => {
    const own = await startTestApi();
    const dataDir = makeTestFolder('engine-away');
    const port = await chooseTemporalPort(dataDir);
    const orchestrator = orchestratorAt(`127.0.0.1:${port}`);
    const dispatcher = new OutboxDispatcher({
      database: own.database.database,
      orchestrator,
      schedules: schedulesOf(orchestrator),
      logger,
    });
    dispatcher.start();
    const { status, body } = await own.post(RUN, {});
    expect([status, body.status]).toEqual([202, 'queued']);
    expect(await orchestrator.status()).toBe('degraded');
    await until(
      'a first failed delivery',
      () => own.get(body.status_url),
      (answer) => answer.body.progress.stage === 'waiting_for_engine',
    );
    expect((await own.get('/api/v1/reconciliation/gap-explorer')).status).toBe(200);
    const server = await startOwnTemporal(dataDir);
    await until(
      'delivery',
      async () => (await own.database.superuser.query('select dispatched_at from outbox')).rows,
      (rows) => rows.every((row) => row.dispatched_at !== null),
    );
    await until(
      'a connection',
      () => orchestrator.status(),
      (state) => state === 'up',
    );
    await dispatcher.stop();
    await orchestrator.close();
    await server.stop();
    await own.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
});

describe('the sweeper', () => {
  const age = (orgId: string, sql: string) =>
    api.database.superuser.query(`update gap_runs set ${sql} where org_id = $1`, [orgId]);

  it('starts what was queued and forgotten, and what Temporal has lost', async () => {
    const [queued, lost] = [await api.addOrganization(), await api.addOrganization()];
    const engine = await startTestEngine(api.database.database, {
      sweep: { queuedSeconds: 60, silentSeconds: 60 },
    });
    await engine.dispatcher.stop();
    const runs = [];
    for (const { adminKey, orgId } of [queued, lost]) {
      runs.push((await api.post(RUN, {}, adminKey)).body);
      await api.database.superuser.query('update outbox set dispatched_at = now() where org_id = $1', [
        orgId,
      ]);
    }
    await age(queued.orgId, `created_at = now() - interval '5 minutes'`);
    await age(lost.orgId, `status = 'running', heartbeat_at = now() - interval '5 minutes'`);
    await engine.sweeper.sweep();
    await engine.close();
    const next = await startTestEngine(api.database.database);
    // The lost run's workflow is started on the new engine's queue, under the same id.
    await next.startWorker();
    expect((await pollToEnd(api, runs[0].status_url, undefined, queued.adminKey)).status).toBe('succeeded');
    expect((await pollToEnd(api, runs[1].status_url, undefined, lost.adminKey)).status).toBe('succeeded');
    await next.close();
  });

  it('fails a run whose workflow is over without a result, and leaves one that is at work alone', async () => {
    const [over, atWork] = [await api.addOrganization(), await api.addOrganization()];
    const engine = await startTestEngine(api.database.database, {
      sweep: { queuedSeconds: 60, silentSeconds: 60 },
    });
    const worker = await engine.startWorker();
    const ended = (await api.post(RUN, {}, over.adminKey)).body;
    await pollToEnd(api, ended.status_url, undefined, over.adminKey);
    // The row changes a moment before Temporal does; a worker that stops in between leaves the workflow open.
    const workflowId = runWorkflowId('gap_run', {
      orgId: over.orgId,
      id: findUuid('run', ended.run_id) ?? '',
    });
    await until(
      'the end of its workflow',
      () => engine.orchestrator.describe(workflowId),
      (state) => state === 'closed',
    );
    await worker.stop();
    const working = (await api.post(RUN, {}, atWork.adminKey)).body;
    await until(
      'delivery',
      () => messages(atWork.orgId),
      (rows) => rows.every(({ dispatched }) => dispatched),
    );
    await age(
      over.orgId,
      `status = 'running', finished_at = null, published_at = null, published_status = null, error_code = null, error_message = null, heartbeat_at = now() - interval '5 minutes'`,
    );
    await age(atWork.orgId, `created_at = now() - interval '5 minutes'`);
    await engine.sweeper.sweep();
    expect((await api.get(ended.status_url, over.adminKey)).body).toMatchObject({
      status: 'failed',
      error: { code: 'run_lost' },
    });
    expect((await api.get(working.status_url, atWork.adminKey)).body.status).toBe('queued');
    await engine.close();
  });

  it('removes chunks of uploads that died with their process, and no others', async () => {
    const { orgId } = await api.addOrganization();
    const page = (id: string, age: string) =>
      api.database.superuser.query(
        `insert into billing_pages (org_id, source_id, page_no, sha256, body, received_at) values ($1, $2, 0, repeat('0', 64), 'x', now() - $3::interval)`,
        [orgId, id, age],
      );
    const [dead, young] = ['00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000002'];
    await page(dead, '3 hours');
    await page(young, '1 hour');
    const engine = await startTestEngine(api.database.database);
    await engine.sweeper.sweep();
    await engine.close();
    const { rows } = await api.database.superuser.query(
      'select source_id from billing_pages where org_id = $1',
      [orgId],
    );
    expect(rows).toEqual([{ source_id: young }]);
  });
});
