import { ApplicationFailure } from '@temporalio/common';
import { expect, it } from 'vitest';
import { findUuid } from '../../domain/ids.js';
import { runWorkflowId } from '../../domain/runs/runKinds.js';
import {
  syncScheduleId,
  WORKFLOW_NAMES,
  webhookDeliveryWorkflowId,
  weightRecomputeWorkflowId,
} from '../../workflows/contract.js';
import { startTestApi, type TestOrganization } from '../support/api.js';
import { pollToEnd } from '../support/bills.js';
import { startTestEngine, until } from '../support/engine.js';
import { aConnection, CONNECTIONS, FAST } from '../support/fetchedBills.js';
import { startFetchingPlace } from '../support/fetchingPlace.js';
import { fetchFrom, litellmModel, startPriceFeed } from '../support/priceFeed.js';
import { startWebhookPlace } from '../support/webhookPlace.js';
import { sendMessages } from '../support/webhooks.js';
import { connectClient, startRecording } from './recording.js';
import { saveHistory } from './saveHistory.js';

/**
 * Records the histories of automatic work that test/workflows/replay.test.ts replays: `npm run workflows:record`. Run
 * it when a workflow is added or changed behind a patch, and commit its files; an existing history is never replaced.
 */
it('records one history of each way that a sync can go', { timeout: 300_000 }, async () => {
  const place = await startFetchingPlace({
    syncPace: { ...FAST, giveUpAfterMs: 300 },
    backfillDays: null,
  });
  const { api, engine, anthropic } = place;
  const { client, connection } = await connectClient();
  const worker = await engine.startWorker();
  const idOf = ({ id }: { id: string }) =>
    runWorkflowId('billing_sync', { orgId: api.orgId, id: findUuid('run', id) ?? '' });
  const { body: connected } = await api.post(CONNECTIONS, aConnection('anthropic'));
  expect(await pollToEnd(api, connected.sync.status_url)).toMatchObject({ status: 'succeeded' });
  await saveHistory(client, idOf(connected.sync), 'billing-sync-succeeded');
  await saveHistory(client, idOf(connected.sync), 'billing-sync-ended-last');
  anthropic.faults.inject({ kind: 'outage', status: 503, report: 'messages' });
  const { body: partial } = await api.post(`${CONNECTIONS}/${connected.id}/sync`, {});
  expect(await pollToEnd(api, partial.status_url)).toMatchObject({ status: 'partial' });
  await saveHistory(client, idOf(partial), 'billing-sync-partial');
  await saveHistory(client, idOf(partial), 'billing-sync-partial-ended-last');
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

it('records one history of each way that the retention can go', { timeout: 300_000 }, async () => {
  const recording = await startRecording();
  const { engine, client } = recording;
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
  await recording.close();
});

it('records one history of the price feeds, of which one cannot be read', { timeout: 300_000 }, async () => {
  const [good, broken] = await Promise.all([startPriceFeed(), startPriceFeed()]);
  good.file = { 'gpt-4o-mini': litellmModel(0.2, 0.8) };
  broken.answer = (response) => void response.end('no JSON');
  const api = await startTestApi();
  const engine = await startTestEngine(api.database.database, {
    priceFeeds: [
      { name: 'broken', url: broken.url },
      { name: 'good', url: good.url },
    ],
    fetchPriceFile: fetchFrom([good.host, broken.host], 1_000),
  });
  await engine.startWorker();
  const { client, connection } = await connectClient();
  const workflowId = `price-feeds-${engine.taskQueue}`;
  await client.workflow.execute(WORKFLOW_NAMES.priceFeeds, { workflowId, taskQueue: engine.taskQueue });
  await saveHistory(client, workflowId, 'price-feeds-one-failed');
  await connection.close();
  await engine.close();
  await api.close();
  await Promise.all([good.close(), broken.close()]);
});

it('records one history of each way that the delivery of webhooks can go', { timeout: 300_000 }, async () => {
  const place = await startWebhookPlace();
  const { engine } = place;
  const { client, connection } = await connectClient();
  const worker = await engine.startWorker();
  const retried = await place.anOrganization((_request, response, count) => {
    response.writeHead(count < 3 ? 500 : 204).end();
  });
  const idOf = ({ org, endpoint }: typeof retried) =>
    webhookDeliveryWorkflowId({ orgId: org.orgId, endpointId: endpoint.id });
  await sendMessages(retried.org);
  await until(
    'a first attempt',
    async () => retried.receiver.received.length,
    (count) => count > 0,
  );
  // Gets another signal while it sleeps.
  await sendMessages(retried.org);
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
  await sendMessages(broken.org);
  const handle = client.workflow.getHandle(idOf(broken));
  await until(
    'the pause after a failure',
    async () => (await handle.fetchHistory().catch(() => undefined))?.events ?? [],
    (events) => events.some(({ timerStartedEventAttributes: timer }) => Boolean(timer)),
  );
  isBroken = false;
  await sendMessages(broken.org);
  await place.settled(broken.endpoint);
  await saveHistory(client, idOf(broken), 'webhook-delivery-effect-failed');
  await failing.stop();
  await connection.close();
  await place.close();
});

it('records one history of each way that learning can go', { timeout: 300_000 }, async () => {
  const recording = await startRecording({ weightsQuietMs: 1_000 });
  const { api, engine, client } = recording;
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

  await recording.close();
});
