import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import type { BlobStore } from '../../../../adapters/blobs/blobStore.js';
import type { SafeFetch } from '../../../../adapters/outbound/safeFetch.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import * as delivery from '../../../../db/webhooks/webhookDeliveries.js';
import * as log from '../../../../db/webhooks/webhookDeliveries.js';
import { publishMessages } from '../../../../db/webhooks/webhookDeliveries.js';
import * as digests from '../../../../db/webhooks/webhookDigests.js';
import * as endpoints from '../../../../db/webhooks/webhookEndpoints.js';
import { publicId } from '../../../../domain/ids.js';
import { Places } from '../../../../domain/places.js';
import type { AttemptOutcome } from '../../../../domain/webhooks/retrySchedule.js';
import type { SecretKeys } from '../../../../platform/secretKeys.js';
import { recordTest, redeliverMessage, sendTest } from '../../../../usecases/webhooks/deliveries.js';
import { deliverReport } from '../../../../usecases/webhooks/deliverReport.js';
import * as webhooks from '../../../../usecases/webhooks/endpoints.js';
import { gatherDigest } from '../../../../usecases/webhooks/gatherDigest.js';
import { noticeOfMessage, sendAttempt } from '../../../../usecases/webhooks/sendAttempt.js';
import { sendDueWebhooks } from '../../../../usecases/webhooks/sendDueWebhooks.js';
import type { Owned } from '../ownedThings.js';
import { anAuthor, type TenancyCase } from './tenancyCase.js';

const PAGE = { limit: 100, offset: 0 };
const ENDPOINTS_MAX = 10;
const ATTEMPTS_MAX = 10;
const seal = () => ({ ciphertext: Buffer.alloc(64, 1), keyId: 'k1' });
const OUTCOME: AttemptOutcome = {
  result: 'delivered',
  durationMs: 1,
  httpStatus: 204,
  error: null,
  answer: null,
  retryAfterSeconds: null,
};
/** Keys that open every secret as one and seal as `seal`. */
const SECRETS = {
  secretKeys: {
    open: () => JSON.stringify({ current: 'whsec_AAAA', previous: null }),
    seal,
  } as unknown as SecretKeys,
  nowMicros: () => 1_780_000_000_000_000n,
};
const SENDING = {
  ...{ ...SECRETS, deliverWebhook: async () => OUTCOME },
  ...{ blobs: {} as BlobStore, baseUrl: () => 'http://localhost:3000' },
};
const REPORT = {
  ...{ id: randomUUID(), periodFrom: '2026-01-01', periodTo: '2026-01-31', sections: ['summary'] },
  ...{ cause: 'schedule', cadence: 'monthly', sizeBytes: 1, generatedAtMicros: 0n, expiresAtMicros: 0n },
};
const sentTo = (endpointId: string) => ({
  ...{ deliveryId: randomUUID(), messageId: randomUUID(), endpointId, body: '{}' },
  ...{ startedAtMicros: 0n, outcome: OUTCOME },
});
const endpointOf = (id: string, marker: string) => ({
  id,
  target: {
    format: 'standard' as const,
    url: `https://hooks.example.com/${marker}`,
    digest: 'none' as const,
  },
  description: marker,
  eventTypes: [],
  enabled: true,
  createdBy: marker,
});
const claimedOf = ({ dueDeliveryId }: Owned): delivery.ClaimedDelivery => ({
  deliveryId: dueDeliveryId,
  messageId: randomUUID(),
  type: 'alert.created',
  body: '{}',
  attempts: 1,
  number: 1,
});

/** Functions of webhook endpoints and deliveries. */
export const WEBHOOK_CASES: Record<string, TenancyCase> = {
  insertWebhookEndpoint: (db) =>
    endpoints.insertWebhookEndpoint(db, endpointOf(randomUUID(), 'new'), ENDPOINTS_MAX, seal),
  findWebhookEndpoint: (db, { webhookId }) => endpoints.findWebhookEndpoint(db, webhookId),
  listWebhookEndpoints: (db) => endpoints.listWebhookEndpoints(db, PAGE),
  updateWebhookEndpoint: (db, { webhookId }) =>
    endpoints.updateWebhookEndpoint(db, webhookId, { description: 'taken over', enabled: false }),
  disableGoneEndpoint: (db, { webhookId }) => endpoints.disableGoneEndpoint(db, webhookId),
  removeWebhookEndpoint: (db, { webhookId }) => endpoints.removeWebhookEndpoint(db, webhookId),
  cancelPendingDeliveries: (db, { offWebhookId }) => endpoints.cancelPendingDeliveries(db, offWebhookId),
  replaceWebhookSecrets: (db, { webhookId }) => endpoints.replaceWebhookSecrets(db, webhookId, seal),
  listWebhookDeliveries: (db, { webhookId }) => log.listWebhookDeliveries(db, webhookId, {}, PAGE),
  findWebhookDelivery: (db, { endedDeliveryId }) => log.findWebhookDelivery(db, endedDeliveryId),
  restartDelivery: (db, { endedDeliveryId }) => log.restartDelivery(db, endedDeliveryId),
  recordSentTest: (db, { webhookId }) => log.recordSentTest(db, sentTo(webhookId)),
  sendTest: (db, { webhookId }) => sendTest(db, webhookId, AbortSignal.abort(), SENDING),
  recordTest: (db, { webhookId, marker }) => recordTest(db, sentTo(webhookId), anAuthor(marker)),
  redeliverMessage: (db, { endedDeliveryId, marker }) =>
    redeliverMessage(db, endedDeliveryId, anAuthor(marker)),
  getWebhook: (db, { webhookId }) => webhooks.getWebhook(db, webhookId),
  createWebhook: async (db, { marker }) => {
    const wanted = endpointOf(randomUUID(), 'new');
    return (await webhooks.createWebhook(db, wanted, anAuthor(marker), SECRETS)).endpoint;
  },
  readyToChange: (db, { webhookId }) => webhooks.readyToChange(db, webhookId, {}, {} as SafeFetch),
  changeWebhook: (db, { webhookId, marker }) =>
    webhooks.changeWebhook(db, webhookId, { description: 'taken over' }, ['description'], anAuthor(marker)),
  deleteWebhook: (db, { webhookId, marker }) => webhooks.deleteWebhook(db, webhookId, anAuthor(marker)),
  rotateWebhookSecret: async (db, { webhookId, marker }) => {
    const wanted = { id: webhookId, graceSeconds: 0 };
    const { endpoint } = await webhooks.rotateWebhookSecret(db, wanted, anAuthor(marker), SECRETS);
    return endpoint;
  },
  sendDueWebhooks: (db, { webhookId }) =>
    sendDueWebhooks(
      db,
      webhookId,
      {
        ...{ ...SENDING, places: new Places(1) },
        logger: pino({ level: 'silent' }),
      },
      new AbortController().signal,
    ),
  publishMessages: (db) => publishMessages(db, [{ id: randomUUID(), type: 'alert.created', body: '{}' }]),
  claimDueDeliveries: (db, { webhookId }) =>
    delivery.claimDueDeliveries(db, webhookId, { limit: 10, leaseSeconds: 60, attemptsMax: ATTEMPTS_MAX }),
  recordAttempts: (db, of) =>
    db.transaction((inside) =>
      delivery.recordAttempts(inside, of.webhookId, [
        { claimed: claimedOf(of), outcome: OUTCOME, next: { delaySeconds: null, counted: true } },
      ]),
    ),
  giveUpSpentDeliveries: (db, { webhookId }) => delivery.giveUpSpentDeliveries(db, webhookId, 0),
  postponeDeliveries: (db, { webhookId }) => delivery.postponeDeliveries(db, webhookId, 3_600, 'later'),
  findNextAttemptMs: (db, { webhookId }) => delivery.findNextAttemptMs(db, webhookId),
  publishToEndpoints: (db, { webhookId }) =>
    delivery.publishToEndpoints(db, { id: randomUUID(), type: 'report.generated', body: '{}' }, [webhookId]),
  disableUnsubscribedEndpoint: (db, { webhookId }) => endpoints.disableUnsubscribedEndpoint(db, webhookId),
  removeReportDelivery: (db, { webhookId }) => endpoints.removeReportDelivery(db, 'monthly', webhookId),
  gatherDeliveries: (db, { digestWebhookId }) =>
    digests.gatherDeliveries(db, digestWebhookId, randomUUID(), 4_000_000_000_000_000n),
  listGatheredMessages: (db, { digestDeliveryId }) => digests.listGatheredMessages(db, digestDeliveryId, 10),
  insertDigest: (db, { webhookId }) =>
    digests.insertDigest(db, {
      ...{ deliveryId: randomUUID(), messageId: randomUUID(), endpointId: webhookId, body: '{}' },
    }),
  lockDigests: (db, { digestWebhookId }) => digests.lockDigests(db, digestWebhookId),
  postponeToDigest: (db, { digestWebhookId }) =>
    digests.postponeToDigest(db, digestWebhookId, 4_000_000_000_000_000n),
  gatherDigest: (db, { digestWebhookId }) =>
    db.transaction((inside) => gatherDigest(inside, digestWebhookId, SENDING)),
  sendAttempt: async (db, { webhookId }) => {
    const endpoint = await endpoints.findWebhookEndpoint(db, webhookId);
    const message = {
      ...{ deliveryId: randomUUID(), messageId: randomUUID(), type: 'webhook.test' as const, body: '{}' },
    };
    return endpoint && sendAttempt(db, { endpoint, secrets: [] }, message, AbortSignal.abort(), SENDING);
  },
  // Its link has the id that it is given.
  noticeOfMessage: async (db, { alertId }) =>
    (
      await noticeOfMessage(
        db,
        {
          ...{ type: 'alert.created', timestamp: '2026-01-01T00:00:00Z' },
          data: { alert_id: publicId('alr', alertId), kind: 'policy' },
        },
        '',
      )
    ).sentence,
  deliverReport: (db, { webhookId }) =>
    db.transaction((inside) => {
      const deliveries = [{ id: webhookId, type: 'email' as const, to: 'a@example.com' }];
      return deliverReport(inside, REPORT, { cadence: 'weekly', deliveries }, SENDING);
    }),
};

/** Data of the cases above. */
export interface OwnedWebhooks {
  /** A receiver, with a delivery that has ended and one that is due. */
  webhookId: string;
  endedDeliveryId: string;
  dueDeliveryId: string;
  /** An endpoint that is disabled while a message is due. */
  offWebhookId: string;
  /** One with daily digests, a message that waits for one, and the delivery of a digest with a message. */
  digestWebhookId: string;
  digestDeliveryId: string;
}

/**
 * Created directly and without outbox rows, so that no worker sends anything; messages are due from the creation of
 * their rows.
 */
export async function makeWebhooks(db: OrgDb, marker: string): Promise<OwnedWebhooks> {
  const [webhookId, offWebhookId] = [randomUUID(), randomUUID()];
  return db.transaction(async (inside) => {
    await endpoints.insertWebhookEndpoint(inside, endpointOf(webhookId, marker), ENDPOINTS_MAX, seal);
    const off = { ...endpointOf(offWebhookId, marker), enabled: false };
    await endpoints.insertWebhookEndpoint(inside, off, ENDPOINTS_MAX, seal);
    await insertDelivery(inside, offWebhookId, 'pending', marker);
    const digestWebhookId = randomUUID();
    const digest = endpointOf(digestWebhookId, marker);
    await endpoints.insertWebhookEndpoint(
      inside,
      { ...digest, target: { ...digest.target, digest: 'daily' } },
      ENDPOINTS_MAX,
      seal,
    );
    await insertWaiting(inside, digestWebhookId, marker);
    await insertWaiting(inside, digestWebhookId, marker);
    const digestDeliveryId = randomUUID();
    await inside.run(
      `update webhook_deliveries set status = 'gathered', digest_delivery_id = $3, next_attempt_at = null, finished_at = now()
       where org_id = $1 and id = (select id from webhook_deliveries where org_id = $1 and endpoint_id = $2 limit 1)`,
      [inside.orgId, digestWebhookId, digestDeliveryId],
    );
    await inside.run(
      `insert into report_schedules (org_id, cadence, sections, time_zone, deliveries, due_from, created_by)
       values ($1, 'monthly', '{summary}', 'UTC', jsonb_build_array(jsonb_build_object('id', $2::text)), '2026-01-01', $3)
       on conflict (org_id, cadence) do update set deliveries = report_schedules.deliveries || excluded.deliveries`,
      [inside.orgId, webhookId, marker],
    );
    return {
      digestWebhookId,
      digestDeliveryId,
      webhookId,
      offWebhookId,
      endedDeliveryId: await insertDelivery(inside, webhookId, 'failed', marker),
      dueDeliveryId: await insertDelivery(inside, webhookId, 'pending', marker),
    };
  });
}

async function insertDelivery(
  inside: OrgDb,
  endpointId: string,
  status: 'failed' | 'pending',
  marker: string,
): Promise<string> {
  const [id, messageId] = [randomUUID(), randomUUID()];
  await inside.run(
    `insert into webhook_messages (org_id, id, type, body) values ($1, $2, 'alert.created', $3)`,
    [inside.orgId, messageId, JSON.stringify({ marker })],
  );
  await inside.run(
    `insert into webhook_deliveries (org_id, id, endpoint_id, message_id, status, attempts, next_attempt_at, finished_at, last_error)
     values ($1, $2, $3, $4, $5, 1, case when $5 = 'pending' then now() end, case when $5 <> 'pending' then now() end, $6)`,
    [inside.orgId, id, endpointId, messageId, status, marker],
  );
  await inside.run(
    `insert into webhook_attempts (org_id, delivery_id, number, error) values ($1, $2, 1, $3)`,
    [inside.orgId, id, marker],
  );
  return id;
}

/** A message of which nothing was sent yet. */
async function insertWaiting(inside: OrgDb, endpointId: string, marker: string): Promise<void> {
  const messageId = randomUUID();
  const body = JSON.stringify({ type: 'gap_run.completed', timestamp: '', data: { provider: marker } });
  await inside.run(
    `insert into webhook_messages (org_id, id, type, body) values ($1, $2, 'gap_run.completed', $3)`,
    [inside.orgId, messageId, body],
  );
  await inside.run(
    `insert into webhook_deliveries (org_id, id, endpoint_id, message_id, created_at)
     values ($1, gen_random_uuid(), $2, $3, '2026-01-01')`,
    [inside.orgId, endpointId, messageId],
  );
}
