import type { SafeFetch, SafeFetchOptions } from '../../adapters/outbound/safeFetch.js';
import type { WebhookPace } from '../../usecases/webhooks/sendDueWebhooks.js';
import { createTestOrganization, type TestOrganization } from './api.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { startTestEngine, type TestEngine, type TestEngineOptions, until } from './engine.js';
import { type ReceiverAnswer, startWebhookReceiver, type WebhookReceiver } from './webhookReceiver.js';
import {
  anEndpoint,
  deliveriesOf,
  openOutbound,
  type StoredDelivery,
  type TestEndpoint,
  testWebhookDelivery,
} from './webhooks.js';

/** Four attempts in about a second. */
export const SHORT_PACE: WebhookPace = {
  delaysSeconds: [0.2, 0.3, 0.4],
  lanes: 4,
  passMs: 500,
  leaseSeconds: 20,
  unsignedWaitSeconds: 0.3,
};
/** The same pace with retries that no test reaches the end of. */
export const ENDLESS_PACE: WebhookPace = { ...SHORT_PACE, delaysSeconds: Array(3_000).fill(0.2) };
/** Short limits for receivers that never answer; any other has the product's limits. */
const IMPATIENT = { totalMs: 700, connectMs: 700 };

export interface WebhookPlace {
  database: TestDatabase;
  engine: TestEngine;
  outbound: SafeFetch;
  /** Hosts that the operator allows. */
  allowed: Set<string>;
  aReceiver(answer?: ReceiverAnswer, isSlow?: boolean): Promise<WebhookReceiver>;
  /** An organization with one endpoint, whose receiver is on loopback; a slow one has 0.7 seconds. */
  anOrganization(
    answer?: ReceiverAnswer,
    isSlow?: boolean,
  ): Promise<{ org: TestOrganization; receiver: WebhookReceiver; endpoint: TestEndpoint }>;
  /** Its deliveries, once all have ended. */
  settled(endpoint: TestEndpoint, timeoutMs?: number): Promise<StoredDelivery[]>;
  close(): Promise<void>;
}

/** A database, an engine that sends webhooks, and receivers on loopback. No worker is started. */
export async function startWebhookPlace(
  options: { fetch?: SafeFetchOptions; engine?: TestEngineOptions } = {},
): Promise<WebhookPlace> {
  const { outbound, allowed } = openOutbound(options.fetch);
  const slow = openOutbound({ ...options.fetch, ...IMPATIENT });
  const patiently = testWebhookDelivery(outbound);
  const impatiently = testWebhookDelivery(slow.outbound);
  const database = await createTestDatabase();
  const engine = await startTestEngine(database.database, {
    deliverWebhook: (message) =>
      slow.allowed.has(new URL(message.url).host) ? impatiently(message) : patiently(message),
    webhookPace: SHORT_PACE,
    ...options.engine,
  });
  const receivers: WebhookReceiver[] = [];
  const aReceiver = async (answer?: ReceiverAnswer, isSlow = false) => {
    const receiver = await startWebhookReceiver(answer);
    receivers.push(receiver);
    (isSlow ? slow.allowed : allowed).add(receiver.host);
    return receiver;
  };
  return {
    database,
    engine,
    outbound,
    allowed,
    aReceiver,
    async anOrganization(answer, isSlow) {
      const org = await createTestOrganization(database.database);
      const receiver = await aReceiver(answer, isSlow);
      return { org, receiver, endpoint: await anEndpoint(org, receiver.url) };
    },
    settled: (endpoint, timeoutMs) =>
      until(
        'the end of all deliveries',
        () => deliveriesOf(database, endpoint),
        (deliveries) => deliveries.length > 0 && deliveries.every(({ status }) => status !== 'pending'),
        timeoutMs,
      ),
    async close() {
      await engine.close();
      for (const receiver of receivers) await receiver.close();
      await database.close();
    },
  };
}
