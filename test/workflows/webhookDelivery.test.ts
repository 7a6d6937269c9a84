import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { WebhookPace } from '../../activities/webhookPace.js';
import { createTestOrganization } from '../support/api.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { startTestEngine, type TestEngine, until } from '../support/engine.js';
import {
  type Answer,
  anEndpoint,
  answering,
  deliveriesOf,
  openOutbound,
  type Receiver,
  startReceiver,
  statusesOf,
  type TestEndpoint,
  tellOf,
} from '../support/webhooks.js';

/** Four attempts in about a second. */
const PACE: WebhookPace = {
  delaysSeconds: [0.2, 0.3, 0.4],
  lanes: 4,
  passMs: 500,
  leaseSeconds: 2,
  unsignedWaitSeconds: 0.3,
};

let database: TestDatabase;
let engine: TestEngine;
const { outbound, allowed } = openOutbound({ totalMs: 700, connectMs: 500 });
const receivers: Receiver[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  engine = await startTestEngine(database.database, { outbound, webhookPace: PACE });
  await engine.startWorker();
});
afterEach(async () => {
  for (const receiver of receivers.splice(0)) await receiver.close();
});
afterAll(async () => {
  await engine?.close();
  await database?.close();
});

async function aReceiver(answer: Answer = answering(204)): Promise<Receiver> {
  const receiver = await startReceiver(answer);
  receivers.push(receiver);
  allowed.add(receiver.host);
  return receiver;
}

async function anOrganization(answer?: Answer) {
  const org = await createTestOrganization(database.database);
  const receiver = await aReceiver(answer);
  const endpoint = await anEndpoint(org, receiver.url);
  return { org, receiver, endpoint };
}

const settled = (endpoint: TestEndpoint) =>
  until(
    'the end of all deliveries',
    () => deliveriesOf(database, endpoint),
    (deliveries) => deliveries.length > 0 && deliveries.every(({ status }) => status !== 'pending'),
  );

describe('a message', () => {
  it('goes out soon after what it tells of is stored, once', async () => {
    const { org, receiver, endpoint } = await anOrganization();
    const [id] = await tellOf(org);
    const [delivery] = await settled(endpoint);
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 1, last_status: 204, last_error: null });
    expect(receiver.ids()).toEqual([`msg_${id?.replaceAll('-', '')}`]);
  });
});
