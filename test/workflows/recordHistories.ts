import { Client, Connection } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { expect, inject, it } from 'vitest';
import { findUuid } from '../../domain/ids.js';
import {
  billingImportWorkflowId,
  billingSyncWorkflowId,
  gapRunWorkflowId,
  repricingWorkflowId,
  savingsRunWorkflowId,
  syncScheduleId,
  WORKFLOW_NAMES,
  webhookDeliveryWorkflowId,
  weightRecomputeWorkflowId,
} from '../../workflows/contract.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { generateBills } from '../support/billGenerator.js';
import { importBill, pollToEnd } from '../support/bills.js';
import { startTestEngine, type TestEngine, until } from '../support/engine.js';
import { aConnection, CONNECTIONS, FAST, startFetchingPlace } from '../support/fetchedBills.js';
import { TEST_NAMESPACE } from '../support/temporal.js';
import { startWebhookPlace } from '../support/webhookPlace.js';
import { tellOf } from '../support/webhooks.js';
import { saveHistory } from './saveHistory.js';

/**
 * Records the histories that test/workflows/replay.test.ts replays: `npm run workflows:record`. Run it when a workflow
 * is added or changed behind a patch, and commit what it writes; a history that is there already is never replaced.
 */
const RUN = '/api/v1/reconciliation/gap-explorer/run';

/** As a change of all prices would: the next run compares every day. */
async function everythingChanges({ database, orgId }: TestApi): Promise<void> {
  await database.superuser.query(`update gap_run_units set input_mark = '' where org_id = $1`, [orgId]);
}

it('records one history of each way that a workflow can go', { timeout: 120_000 }, async () => {
  const api: TestApi = await startTestApi();
  const engine: TestEngine = await startTestEngine(api.database.database);
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const client = new Client({ connection, namespace: TEST_NAMESPACE });
  const lastDay = new Date(Date.now() - 4 * 86_400_000).toISOString().slice(0, 10);
  const bills = generateBills({ seed: 3, lastDay, days: 5, callsPerHour: 1 });
  const runId = (body: { run_id: string }, { orgId }: TestOrganization) =>
    gapRunWorkflowId({ orgId, runId: findUuid('run', body.run_id) ?? '' });
  const importId = (body: { import_id: string }) =>
    billingImportWorkflowId({ orgId: api.orgId, importId: findUuid('imp', body.import_id) ?? '' });

  const plain = await engine.startWorker();
  await saveHistory(
    client,
    importId(await importBill(api, bills.files.openaiCosts, { provider: 'openai' })),
    'billing-import-succeeded',
  );
  await saveHistory(
    client,
    importId(await importBill(api, '{"data":[oops]}', { provider: 'openai' })),
    'billing-import-unreadable',
  );
  await importBill(api, bills.files.anthropicCosts, { provider: 'anthropic' });
  const succeeded = (await api.post(RUN, {})).body;
  expect((await pollToEnd(api, succeeded.status_url)).status).toBe('succeeded');
  await saveHistory(client, runId(succeeded, api), 'gap-run-succeeded');
  await saveHistory(client, runId(succeeded, api), 'gap-run-explained');
  await saveHistory(client, runId(succeeded, api), 'gap-run-drafted');
  await saveHistory(client, runId(succeeded, api), 'gap-run-credits');
  const empty = await api.addOrganization();
  const nothing = (await api.post(RUN, {}, empty.adminKey)).body;
  await pollToEnd(api, nothing.status_url, undefined, empty.adminKey);
  await saveHistory(client, runId(nothing, empty), 'gap-run-no-billing-data');
  await saveHistory(client, runId(nothing, empty), 'gap-run-nothing-to-explain');
  await plain.stop();

  const failing = await engine.startWorker((activities) => ({
    matchProviderDay: async (unit) => {
      if (unit.ordinal === 1) throw ApplicationFailure.nonRetryable('this day is broken', 'not_found');
      await activities.matchProviderDay(unit);
    },
    explainRunAccount: async () => {
      throw ApplicationFailure.nonRetryable('this account is broken', 'not_found');
    },
    draftRunClaims: async () => {
      throw ApplicationFailure.nonRetryable('no claim can be made', 'not_found');
    },
    findRunCredits: async () => {
      throw ApplicationFailure.nonRetryable('no credit can be looked for', 'not_found');
    },
  }));
  await everythingChanges(api);
  const partial = (await api.post(RUN, {})).body;
  expect((await pollToEnd(api, partial.status_url)).status).toBe('partial');
  await saveHistory(client, runId(partial, api), 'gap-run-partial');
  await saveHistory(client, runId(partial, api), 'gap-run-account-failed');
  await saveHistory(client, runId(partial, api), 'gap-run-drafting-failed');
  await saveHistory(client, runId(partial, api), 'gap-run-credits-failed');
  await failing.stop();

  let release: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const held = await engine.startWorker((activities) => ({
    matchProviderDay: async (unit) => {
      if (unit.ordinal > 3) await gate;
      await activities.matchProviderDay(unit);
    },
  }));
  await everythingChanges(api);
  const cancelled = (await api.post(RUN, {})).body;
  await until(
    'units',
    () => api.get(cancelled.status_url),
    ({ body }) => body.progress.done > 0,
  );
  await api.post(`${cancelled.status_url}/cancel`, {});
  expect((await pollToEnd(api, cancelled.status_url)).status).toBe('cancelled');
  await saveHistory(client, runId(cancelled, api), 'gap-run-cancelled');
  await saveHistory(client, runId(cancelled, api), 'gap-run-cancelled-before-explaining');
  release();
  await held.stop();

  await connection.close();
  await engine.close();
  await api.close();
});

it('records one history of each way that a re-pricing can go', { timeout: 120_000 }, async () => {
  const api: TestApi = await startTestApi();
  const engine: TestEngine = await startTestEngine(api.database.database, { repricePassMs: 0 });
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const client = new Client({ connection, namespace: TEST_NAMESPACE });
  const workflowId = ({ run_id }: { run_id: string }) =>
    repricingWorkflowId({ orgId: api.orgId, runId: findUuid('run', run_id) ?? '' });
  const window = { from: '2026-02-01', to: '2026-02-03' };

  const plain = await engine.startWorker();
  const succeeded = (await api.post('/api/v1/pricing/reprice', window)).body;
  expect((await pollToEnd(api, succeeded.status_url)).status).toBe('succeeded');
  await saveHistory(client, workflowId(succeeded), 'repricing-succeeded');
  await plain.stop();

  const failing = await engine.startWorker(() => ({
    repriceEvents: async () => {
      throw ApplicationFailure.nonRetryable('this is broken', 'not_found');
    },
  }));
  const failed = (await api.post('/api/v1/pricing/reprice', window)).body;
  expect((await pollToEnd(api, failed.status_url)).status).toBe('failed');
  await saveHistory(client, workflowId(failed), 'repricing-failed');
  await failing.stop();

  const slow = await engine.startWorker((activities) => ({
    repriceEvents: async (run) => {
      await new Promise((resolve) => setTimeout(resolve, 500));
      return activities.repriceEvents(run);
    },
  }));
  const cancelled = (await api.post('/api/v1/pricing/reprice', { ...window, to: '2026-12-01' })).body;
  await until(
    'a first day',
    () => api.get(cancelled.status_url),
    ({ body }) => body.progress.done > 0,
  );
  await api.post(`${cancelled.status_url}/cancel`, {});
  expect((await pollToEnd(api, cancelled.status_url)).status).toBe('cancelled');
  await saveHistory(client, workflowId(cancelled), 'repricing-cancelled');
  await slow.stop();

  await connection.close();
  await engine.close();
  await api.close();
});

it('records one history of each way that a savings run can go', { timeout: 120_000 }, async () => {
  const api: TestApi = await startTestApi();
  const engine: TestEngine = await startTestEngine(api.database.database);
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const client = new Client({ connection, namespace: TEST_NAMESPACE });
  const workflowId = ({ run_id }: { run_id: string }) =>
    savingsRunWorkflowId({ orgId: api.orgId, runId: findUuid('run', run_id) ?? '' });
  const start = async () => (await api.post('/api/v1/enforcement/savings/runs', {})).body;

  const plain = await engine.startWorker();
  const succeeded = await start();
  expect((await pollToEnd(api, succeeded.status_url)).status).toBe('succeeded');
  await saveHistory(client, workflowId(succeeded), 'savings-run-succeeded');
  await plain.stop();

  const failing = await engine.startWorker(() => ({
    modelSavings: async () => {
      throw ApplicationFailure.nonRetryable('this is broken', 'not_found');
    },
    removeReplacedSavings: async () => {
      throw ApplicationFailure.nonRetryable('this too', 'not_found');
    },
  }));
  const failed = await start();
  expect((await pollToEnd(api, failed.status_url)).status).toBe('failed');
  await saveHistory(client, workflowId(failed), 'savings-run-failed');
  await failing.stop();

  let isAtWork = false;
  const slow = await engine.startWorker((activities) => ({
    modelSavings: async (run) => {
      isAtWork = true;
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return activities.modelSavings(run);
    },
  }));
  const cancelled = await start();
  await until('the run at work', async () => isAtWork, Boolean);
  await client.workflow.getHandle(workflowId(cancelled)).cancel();
  expect((await pollToEnd(api, cancelled.status_url)).status).toBe('cancelled');
  await saveHistory(client, workflowId(cancelled), 'savings-run-cancelled');
  await slow.stop();

  await connection.close();
  await engine.close();
  await api.close();
});

it('records one history of each way that a sync can go', { timeout: 120_000 }, async () => {
  const place = await startFetchingPlace({
    syncPace: { ...FAST, giveUpAfterMs: 300 },
    backfillDays: null,
  });
  const { api, engine, anthropic } = place;
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const client = new Client({ connection, namespace: TEST_NAMESPACE });
  const worker = await engine.startWorker();
  const idOf = ({ id }: { id: string }) =>
    billingSyncWorkflowId({ orgId: api.orgId, runId: findUuid('run', id) ?? '' });
  const { body: connected } = await api.post(CONNECTIONS, aConnection('anthropic'));
  expect(await pollToEnd(api, connected.sync.status_url)).toMatchObject({ status: 'succeeded' });
  await saveHistory(client, idOf(connected.sync), 'billing-sync-succeeded');
  anthropic.faults.inject({ kind: 'outage', status: 503, report: 'messages' });
  const { body: partial } = await api.post(`${CONNECTIONS}/${connected.id}/sync`, {});
  expect(await pollToEnd(api, partial.status_url)).toMatchObject({ status: 'partial' });
  await saveHistory(client, idOf(partial), 'billing-sync-partial');
  const schedule = client.schedule.getHandle(
    syncScheduleId({ orgId: api.orgId, connectionId: findUuid('con', connected.id) ?? '' }),
  );
  await schedule.trigger();
  const { info } = await until(
    'the scheduled workflow',
    () => schedule.describe(),
    (found) => found.info.recentActions.length > 0,
  );
  await saveHistory(client, info.recentActions[0]?.action.workflow.workflowId ?? '', 'scheduled-sync');
  await worker.stop();
  await connection.close();
  await place.close();
});

it('records one history of each way that the retention can go', { timeout: 120_000 }, async () => {
  const api: TestApi = await startTestApi();
  const engine: TestEngine = await startTestEngine(api.database.database);
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const client = new Client({ connection, namespace: TEST_NAMESPACE });
  const run = async (name: string) => {
    const workflowId = `retention-${name}-${engine.taskQueue}`;
    await client.workflow.execute(WORKFLOW_NAMES.retention, { workflowId, taskQueue: engine.taskQueue });
    await saveHistory(client, workflowId, name);
  };
  const plain = await engine.startWorker();
  await run('retention-succeeded');
  await plain.stop();
  const failing = await engine.startWorker((activities) => ({
    runRetentionStep: async (ref) => {
      if (ref.step === 'events') throw ApplicationFailure.nonRetryable('this is broken', 'not_found');
      await activities.runRetentionStep(ref);
    },
  }));
  await run('retention-step-failed');
  await failing.stop();
  await connection.close();
  await engine.close();
  await api.close();
});

it('records one history of each way that the delivery of webhooks can go', { timeout: 120_000 }, async () => {
  const place = await startWebhookPlace();
  const { engine } = place;
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const client = new Client({ connection, namespace: TEST_NAMESPACE });
  const worker = await engine.startWorker();
  const retried = await place.anOrganization((_request, response, count) => {
    response.writeHead(count < 3 ? 500 : 204).end();
  });
  const idOf = ({ org, endpoint }: typeof retried) =>
    webhookDeliveryWorkflowId({ orgId: org.orgId, endpointId: endpoint.id });
  await tellOf(retried.org);
  await until(
    'a first attempt',
    async () => retried.receiver.received.length,
    (count) => count > 0,
  );
  // Told of something else while it sleeps.
  await tellOf(retried.org);
  await place.settled(retried.endpoint);
  await saveHistory(client, idOf(retried), 'webhook-delivery-retried');
  await worker.stop();

  let isBroken = true;
  const failing = await engine.startWorker((activities) => ({
    sendDueWebhooks: async (ref) => {
      if (isBroken) throw ApplicationFailure.nonRetryable('this is broken', 'not_found');
      return activities.sendDueWebhooks(ref);
    },
  }));
  const broken = await place.anOrganization();
  await tellOf(broken.org);
  const handle = client.workflow.getHandle(idOf(broken));
  await until(
    'the pause after a failure',
    async () => (await handle.fetchHistory().catch(() => undefined))?.events ?? [],
    (events) => events.some(({ timerStartedEventAttributes: timer }) => Boolean(timer)),
  );
  isBroken = false;
  await tellOf(broken.org);
  await place.settled(broken.endpoint);
  await saveHistory(client, idOf(broken), 'webhook-delivery-effect-failed');
  await failing.stop();
  await connection.close();
  await place.close();
});

it('records one history of each way that learning can go', { timeout: 120_000 }, async () => {
  const api: TestApi = await startTestApi();
  const engine: TestEngine = await startTestEngine(api.database.database, { weightsQuietMs: 1_000 });
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const client = new Client({ connection, namespace: TEST_NAMESPACE });
  const idOf = ({ orgId }: TestOrganization) => weightRecomputeWorkflowId({ orgId });
  const poke = ({ orgId }: TestOrganization) => engine.orchestrator.pokeWeightRecompute({ orgId });
  const hasTimer = (org: TestOrganization) =>
    until(
      'a timer',
      async () =>
        (
          await client.workflow
            .getHandle(idOf(org))
            .fetchHistory()
            .catch(() => undefined)
        )?.events ?? [],
      (events) => events.some(({ timerStartedEventAttributes: timer }) => Boolean(timer)),
    );

  const plain = await engine.startWorker();
  // Ten at once, and one more that puts it off.
  const many = await api.addOrganization();
  for (let word = 0; word < 10; word += 1) await poke(many);
  await hasTimer(many);
  await poke(many);
  await saveHistory(client, idOf(many), 'weight-recompute-put-off');
  await plain.stop();

  let isAtWork = false;
  let release: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const held = await engine.startWorker((activities) => ({
    recomputeWeights: async (ref) => {
      isAtWork = true;
      await gate;
      await activities.recomputeWeights(ref);
    },
  }));
  const twice = await api.addOrganization();
  await poke(twice);
  await until('the recompute', async () => isAtWork, Boolean);
  await poke(twice);
  release();
  await saveHistory(client, idOf(twice), 'weight-recompute-again');
  await held.stop();

  let isBroken = true;
  const failing = await engine.startWorker((activities) => ({
    recomputeWeights: async (ref) => {
      if (isBroken) throw ApplicationFailure.nonRetryable('this is broken', 'not_found');
      await activities.recomputeWeights(ref);
    },
  }));
  const broken = await api.addOrganization();
  await poke(broken);
  await until(
    'a failed recompute',
    async () =>
      (
        await client.workflow
          .getHandle(idOf(broken))
          .fetchHistory()
          .catch(() => undefined)
      )?.events ?? [],
    (events) => events.some(({ activityTaskFailedEventAttributes: failed }) => Boolean(failed)),
  );
  isBroken = false;
  await poke(broken);
  await saveHistory(client, idOf(broken), 'weight-recompute-effect-failed');
  await failing.stop();

  await connection.close();
  await engine.close();
  await api.close();
});
