import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { restartDelivery } from '../../db/webhooks/webhookDeliveries.js';
import {
  removeWebhookEndpoint,
  replaceWebhookSecrets,
  updateWebhookEndpoint,
} from '../../db/webhooks/webhookEndpoints.js';
import { formatSecret, sealSecrets } from '../../domain/webhooks/secret.js';
import { SecretKeys } from '../../platform/secretKeys.js';
import { webhookDeliveryWorkflowId } from '../../workflows/contract.js';
import type { TestOrganization } from '../support/api.js';
import { testSecretKeys } from '../support/connectors.js';
import { until } from '../support/engine.js';
import { ENDLESS_PACE, startWebhookPlace, type WebhookPlace } from '../support/webhookPlace.js';
import { answering, type ReceivedMessage } from '../support/webhookReceiver.js';
import {
  anEndpoint,
  deliveriesOf,
  sendMessages,
  statusesOf,
  type TestEndpoint,
} from '../support/webhooks.js';

let place: WebhookPlace;

beforeAll(async () => {
  place = await startWebhookPlace();
  await place.engine.startWorker();
});
afterAll(() => place?.close());

const shown = (uuid: string | undefined) => `msg_${uuid?.replaceAll('-', '')}`;
const NEXT_SECRET = formatSecret(new Uint8Array(32).fill(3));

/** Whether the Standard Webhooks library accepts a message with this secret. */
function isVerified({ headers, body }: ReceivedMessage, secret: string): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}

const rotate = (org: TestOrganization, { id, secret }: TestEndpoint, graceMs: number) =>
  org.orgDb.transaction((inside) =>
    replaceWebhookSecrets(inside, id, () =>
      sealSecrets(testSecretKeys(), org.orgId, id, {
        current: NEXT_SECRET,
        previous: { secret, untilMicros: BigInt(Date.now() + graceMs) * 1_000n },
      }),
    ),
  );

describe('a message', () => {
  it('is sent once, signed, to every endpoint of its organization and to no other’s', async () => {
    const { org, receiver, endpoint } = await place.anOrganization();
    const other = await place.aReceiver();
    const second = await anEndpoint(org, other.url);
    const stranger = await place.anOrganization();
    const [id] = await sendMessages(org);
    const [delivery] = await place.settled(endpoint);
    await place.settled(second);
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 1, last_status: 204, last_error: null });
    expect(delivery?.tries).toEqual([{ number: 1, http_status: 204, error: null, answer: null }]);
    expect([receiver.ids(), other.ids(), stranger.receiver.ids()]).toEqual([[shown(id)], [shown(id)], []]);
    const [got] = receiver.received as [ReceivedMessage];
    expect([isVerified(got, endpoint.secret), isVerified(got, second.secret)]).toEqual([true, false]);
    expect(got.headers).toMatchObject({ 'content-type': 'application/json', 'user-agent': 'Trueup/1' });
    expect(Object.keys(JSON.parse(got.body))).toEqual(['type', 'timestamp', 'data']);
    // Nothing is pending, so nothing waits.
    const workflowId = webhookDeliveryWorkflowId({ orgId: org.orgId, endpointId: endpoint.id });
    await until(
      'the end of the workflow',
      () => place.engine.orchestrator.describe(workflowId),
      (state) => state === 'closed',
    );
  });

  it('that is queued while the workflow ends is still delivered', async () => {
    const { org, receiver, endpoint } = await place.anOrganization();
    const told: string[] = [];
    for (let round = 0; round < 25; round += 1) {
      told.push(...(await sendMessages(org)));
      place.engine.dispatcher.kick();
      // Each pause meets another moment of its end.
      await sleep(round * 8);
    }
    await place.settled(endpoint);
    expect(receiver.ids().sort()).toEqual(told.map(shown).sort());
  });

  it('of many is sent once, several at a time and never more than there are lanes', async () => {
    let underWay = 0;
    let most = 0;
    let meet: () => void = () => undefined;
    const second = new Promise<void>((resolve) => {
      meet = resolve;
    });
    const { org, receiver, endpoint } = await place.anOrganization(async (_request, response) => {
      underWay += 1;
      most = Math.max(most, underWay);
      // The first waits for another one.
      if (underWay > 1) meet();
      await second;
      await sleep(5);
      underWay -= 1;
      response.writeHead(200).end();
    });
    const told = await sendMessages(org, 120);
    await place.settled(endpoint);
    expect(new Set(receiver.ids())).toEqual(new Set(told.map(shown)));
    expect(receiver.received).toHaveLength(120);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(4);
    expect(await statusesOf(place.database, endpoint)).toEqual({ delivered: 120 });
  });

  it('whose transaction is rolled back is never sent', async () => {
    const { org, receiver, endpoint } = await place.anOrganization();
    const undone = org.orgDb.transaction(async (inside) => {
      await sendMessages({ ...org, orgDb: inside });
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    const [id] = await sendMessages(org);
    await place.settled(endpoint);
    expect(receiver.ids()).toEqual([shown(id)]);
  });
});

describe('a secret', () => {
  it('that was replaced signs too until its grace period is over, and then no more', async () => {
    const { org, receiver, endpoint } = await place.anOrganization();
    await rotate(org, endpoint, 60_000);
    await sendMessages(org);
    await place.settled(endpoint);
    await rotate(org, endpoint, -1);
    await sendMessages(org);
    await until(
      'a second message',
      async () => receiver.received.length,
      (count) => count === 2,
    );
    const [during, after] = receiver.received as [ReceivedMessage, ReceivedMessage];
    expect(String(during.headers['webhook-signature']).split(' ')).toHaveLength(2);
    const seen = [during, after].map((got) => [
      isVerified(got, NEXT_SECRET),
      isVerified(got, endpoint.secret),
    ]);
    expect(seen).toEqual([
      [true, true],
      [true, false],
    ]);
  });

  it('that no key opens makes its messages wait, uncounted and with the reason, until one can be opened', async () => {
    const { org, receiver, endpoint } = await place.anOrganization();
    const lostKey = SecretKeys.of(Buffer.alloc(32, 9).toString('base64'));
    const secrets = { current: endpoint.secret, previous: null };
    const sealWith = (keys: SecretKeys) =>
      org.orgDb.transaction((inside) =>
        replaceWebhookSecrets(inside, endpoint.id, () => sealSecrets(keys, org.orgId, endpoint.id, secrets)),
      );
    await sealWith(lostKey);
    await sendMessages(org);
    const [waiting] = await until(
      'a reason to wait',
      () => deliveriesOf(place.database, endpoint),
      ([delivery]) => delivery?.last_error !== null,
    );
    expect(waiting).toMatchObject({ status: 'pending', attempts: 0, tries: [] });
    expect(waiting?.last_error).toContain('secret');
    await sealWith(testSecretKeys());
    await place.settled(endpoint);
    expect(receiver.received.map((got) => isVerified(got, endpoint.secret))).toEqual([true]);
  });
});

describe('an endpoint', () => {
  /** A place whose attempts do not end before the test ends them. */
  let patient: WebhookPlace;
  beforeAll(async () => {
    patient = await startWebhookPlace({ engine: { webhookPace: ENDLESS_PACE } });
    await patient.engine.startWorker();
  });
  afterAll(() => patient?.close());

  it.each([
    [
      'switched off',
      (org: TestOrganization, id: string) =>
        org.orgDb.transaction((inside) => updateWebhookEndpoint(inside, id, { enabled: false })),
    ],
    [
      'removed',
      (org: TestOrganization, id: string) =>
        org.orgDb.transaction((inside) => removeWebhookEndpoint(inside, id)),
    ],
  ])('that is %s while messages are pending gets no more of them', async (_name, end) => {
    const { org, receiver, endpoint } = await patient.anOrganization(answering(500));
    await sendMessages(org, 3);
    await until(
      'a first attempt at each',
      async () => new Set(receiver.ids()).size,
      (count) => count === 3,
    );
    await end(org, endpoint.id);
    await patient.settled(endpoint);
    // Messages in progress at the end have arrived by then.
    const workflowId = webhookDeliveryWorkflowId({ orgId: org.orgId, endpointId: endpoint.id });
    await until(
      'the end of the workflow',
      () => patient.engine.orchestrator.describe(workflowId),
      (state) => state === 'closed',
    );
    const sent = receiver.received.length;
    await sleep(600);
    expect(await statusesOf(patient.database, endpoint)).toEqual({ cancelled: 3 });
    expect(receiver.received.length).toBe(sent);
  });

  it('with a new address gets there what is pending', async () => {
    const { org, endpoint } = await patient.anOrganization(answering(500));
    const next = await patient.aReceiver();
    const [id] = await sendMessages(org);
    await until(
      'a first attempt',
      () => deliveriesOf(patient.database, endpoint),
      ([delivery]) => delivery?.last_status === 500,
    );
    await org.orgDb.transaction((inside) => updateWebhookEndpoint(inside, endpoint.id, { url: next.url }));
    expect(await patient.settled(endpoint)).toMatchObject([{ status: 'delivered' }]);
    expect(next.ids()).toEqual([shown(id)]);
  });

  it('is sent a message that was given up once more when a person requests it: the same message, a new series', async () => {
    let isWell = false;
    const { org, receiver, endpoint } = await place.anOrganization((_request, response) => {
      response.writeHead(isWell ? 200 : 500).end();
    });
    const [id] = await sendMessages(org);
    expect(await place.settled(endpoint)).toMatchObject([
      { status: 'failed', attempts: 4, last_status: 500 },
    ]);
    isWell = true;
    const { rows } = await place.database.superuser.query(
      'select id from webhook_deliveries where endpoint_id = $1',
      [endpoint.id],
    );
    expect(await org.orgDb.transaction((inside) => restartDelivery(inside, rows[0].id))).toBe('begun');
    const [delivery] = await until(
      'its delivery',
      () => deliveriesOf(place.database, endpoint),
      ([found]) => found?.status === 'delivered',
    );
    expect(delivery).toMatchObject({ attempts: 1, last_status: 200, last_error: null });
    expect(delivery?.tries.map(({ number, http_status }) => [number, http_status])).toEqual([
      [1, 500],
      [2, 500],
      [3, 500],
      [4, 500],
      [5, 200],
    ]);
    expect(receiver.ids()).toEqual(Array(5).fill(shown(id)));
  });
});
