import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { claimDueDeliveries } from '../../db/webhooks/webhookDeliveries.js';
import { OutboxDispatcher } from '../../dispatch/outboxDispatcher.js';
import { createLogger } from '../../platform/logger.js';
import { webhookDeliveryWorkflowId } from '../../workflows/contract.js';
import { until, writeWorkflowBundle } from '../support/engine.js';
import { forgetAll, killTemporal, startOwnTemporal } from '../support/ownTemporal.js';
import { TEST_NAMESPACE } from '../support/temporal.js';
import { makeTestFolder } from '../support/testFolder.js';
import { SHORT_PACE, startWebhookPlace, type WebhookPlace } from '../support/webhookPlace.js';
import { answering } from '../support/webhookReceiver.js';
import { deliveriesOf, sendMessages, statusesOf } from '../support/webhooks.js';
import { killHard, spawnWorker } from '../support/workerSpawn.js';

const SWEEP = { queuedSeconds: 0, silentSeconds: 0 };
/** A lease long enough that a slow attempt is never taken over; due messages are soon overdue. */
const LONG = { ...SHORT_PACE, leaseSeconds: 300 };
const OPTIONS = { engine: { webhookPace: LONG, sweep: SWEEP } };
/** An attempt without a word is soon repeated. */
const PACE = { ...SHORT_PACE, leaseSeconds: 8 };
const CUT_OFF = { engine: { webhookPace: PACE, sweep: SWEEP } };

const folder = makeTestFolder('webhook-recovery');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a process that ends', () => {
  let place: WebhookPlace;
  beforeAll(async () => {
    place = await startWebhookPlace(CUT_OFF);
  });
  afterAll(() => place?.close());

  it('by force in the middle of an attempt leaves it counted; another one repeats it as the same message', {
    timeout: 300_000,
  }, async () => {
    let isHanging = true;
    const { org, receiver, endpoint } = await place.anOrganization((_request, response) => {
      if (!isHanging) response.writeHead(200).end();
    });
    const victim = await spawnWorker({
      databaseUrl: place.database.url,
      address: inject('temporalAddress'),
      namespace: TEST_NAMESPACE,
      taskQueue: place.engine.taskQueue,
      bundlePath: await writeWorkflowBundle(folder),
      webhooks: { allowedHosts: [receiver.host], pace: PACE },
    });
    await sendMessages(org);
    await until(
      'an attempt',
      async () => receiver.received.length,
      (count) => count > 0,
    );
    await killHard(victim);
    isHanging = false;
    const worker = await place.engine.startWorker();
    const [delivery] = await place.settled(endpoint, 180_000);
    await worker.stop();
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 2 });
    expect(delivery?.tries).toMatchObject([
      { number: 1, http_status: null, error: null },
      { number: 2, http_status: 200 },
    ]);
    expect(new Set(receiver.ids()).size).toBe(1);
  });

  it('in order does not count its attempt; another process makes it again', {
    timeout: 300_000,
  }, async () => {
    let isHanging = true;
    const { org, receiver, endpoint } = await place.anOrganization((_request, response) => {
      if (!isHanging) response.writeHead(200).end();
    });
    const first = await place.engine.startWorker();
    await sendMessages(org);
    await until(
      'an attempt',
      async () => receiver.received.length,
      (count) => count > 0,
    );
    await first.stop();
    isHanging = false;
    const second = await place.engine.startWorker();
    const [delivery] = await place.settled(endpoint, 180_000);
    await second.stop();
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 1 });
    expect(delivery?.tries).toMatchObject([
      { number: 1, error: 'the request was cancelled' },
      { number: 2, http_status: 200 },
    ]);
  });

  it('at every attempt does not repeat it without end: the message is given up, with a notice', async () => {
    const { org, receiver, endpoint } = await place.anOrganization();
    await sendMessages(org);
    const lease = { limit: 1, leaseSeconds: 0, attemptsMax: 4 };
    for (let attempt = 1; attempt <= 4; attempt += 1)
      expect(
        await org.orgDb.transaction((inside) => claimDueDeliveries(inside, endpoint.id, lease)),
      ).toMatchObject([{ attempts: attempt, number: attempt }]);
    const worker = await place.engine.startWorker();
    const [delivery] = await place.settled(endpoint);
    await worker.stop();
    expect(delivery).toMatchObject({ status: 'failed', attempts: 4 });
    expect(delivery?.last_error).toBe('the service ended during the last attempt');
    expect(receiver.received).toEqual([]);
    const { rows } = await place.database.superuser.query('select notice from alerts where org_id = $1', [
      org.orgId,
    ]);
    expect(rows).toEqual([{ notice: 'webhook_failing' }]);
  });
});

describe('a database', () => {
  let place: WebhookPlace;
  beforeAll(async () => {
    place = await startWebhookPlace(OPTIONS);
  });
  afterAll(() => place?.close());

  it('that loses its connections for a moment makes nothing be sent twice', async () => {
    const { superuser } = place.database;
    const cutOff = () =>
      superuser.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
         and application_name <> ''`,
      );
    const { org, receiver, endpoint } = await place.anOrganization(async (_request, response) => {
      await cutOff();
      response.writeHead(200).end();
    });
    const worker = await place.engine.startWorker();
    await sendMessages(org, 6);
    await place.settled(endpoint);
    await worker.stop();
    expect(receiver.received).toHaveLength(6);
    expect(await statusesOf(place.database, endpoint)).toEqual({ delivered: 6 });
  });
});

describe('two workers and two dispatchers', () => {
  it('send each message once between them', { timeout: 300_000 }, async () => {
    const place = await startWebhookPlace(OPTIONS);
    const { engine, database } = place;
    const places = await Promise.all(Array.from({ length: 4 }, () => place.anOrganization()));
    const second = new OutboxDispatcher({
      database: database.database,
      orchestrator: engine.orchestrator,
      schedules: engine.schedules,
      logger: createLogger({ name: 'worker', level: 'silent' }),
    });
    second.start();
    const here = await engine.startWorker();
    const there = await spawnWorker({
      databaseUrl: database.url,
      address: inject('temporalAddress'),
      namespace: TEST_NAMESPACE,
      taskQueue: engine.taskQueue,
      bundlePath: await writeWorkflowBundle(folder),
      webhooks: { allowedHosts: places.map(({ receiver }) => receiver.host), pace: LONG },
    });
    for (let round = 0; round < 5; round += 1)
      await Promise.all(places.map(({ org }) => sendMessages(org, 10)));
    for (const { endpoint } of places) await place.settled(endpoint);
    for (const { receiver } of places) {
      expect(receiver.received).toHaveLength(50);
      expect(new Set(receiver.ids()).size).toBe(50);
    }
    await killHard(there);
    await second.stop();
    await here.stop();
    await place.close();
  });
});

describe('the workflow engine', () => {
  it('may be away, and may come back without its data: every message is sent', {
    timeout: 300_000,
  }, async () => {
    const dataDir = join(folder, 'engine');
    const first = await startOwnTemporal(dataDir);
    const place = await startWebhookPlace({ engine: { ...CUT_OFF.engine, address: first.address } });
    let isWell = false;
    const { org, receiver, endpoint } = await place.anOrganization((_request, response) => {
      response.writeHead(isWell ? 200 : 500).end();
    });
    const worker = await place.engine.startWorker();
    const before = await sendMessages(org, 2);
    await until(
      'a first attempt at each',
      () => deliveriesOf(place.database, endpoint),
      (deliveries) => deliveries.every(({ attempts }) => attempts > 0),
    );
    await killTemporal(first);
    isWell = true;
    // Publishers of messages do not notice.
    const meanwhile = await sendMessages(org, 2);
    const [state] = forgetAll(dataDir);
    const second = await startOwnTemporal(dataDir);
    expect(existsSync(state as string)).toBe(true);
    const sweeping = setInterval(() => void place.engine.sweeper.sweep().catch(() => undefined), 500);
    await place.settled(endpoint, 180_000);
    clearInterval(sweeping);
    expect(await statusesOf(place.database, endpoint)).toEqual({ delivered: 4 });
    const told = [...before, ...meanwhile].map((id) => `msg_${id.replaceAll('-', '')}`);
    expect(new Set(receiver.ids())).toEqual(new Set(told));
    await worker.stop();
    await place.close();
    await second.stop();
  });
});

describe('an overdue delivery', () => {
  it('wakes its endpoint once, and not while another wake-up is on its way', async () => {
    const place = await startWebhookPlace(OPTIONS);
    const { org, endpoint } = await place.anOrganization(answering(200));
    // No worker takes anything up.
    await sendMessages(org, 3);
    const waiting = async () => {
      const { rows } = await place.database.superuser.query(
        `select count(*)::int as count from outbox where org_id = $1 and kind = 'webhook.deliver' and dispatched_at is null`,
        [org.orgId],
      );
      return rows[0].count as number;
    };
    await until('the first word', waiting, (count) => count === 0);
    const input = { orgId: org.orgId, endpointId: endpoint.id };
    expect(await place.engine.orchestrator.describe(webhookDeliveryWorkflowId(input))).toBe('running');
    await place.engine.dispatcher.stop();
    await place.engine.sweeper.sweep();
    await place.engine.sweeper.sweep();
    expect(await waiting()).toBe(1);
    await place.close();
  });
});
