import type { WebhookPace } from '../../activities/webhookPace.js';
import type { SafeFetch, SafeFetchOptions } from '../../adapters/outbound/safeFetch.js';
import { createTestOrganization, type TestOrganization } from './api.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { startTestEngine, type TestEngine, type TestEngineOptions, until } from './engine.js';
import {
  type Answer,
  anEndpoint,
  deliveriesOf,
  openOutbound,
  type Receiver,
  type StoredDelivery,
  startReceiver,
  type TestEndpoint,
} from './webhooks.js';

/** Four attempts in about a second, and little patience. */
export const SHORT_PACE: WebhookPace = {
  delaysSeconds: [0.2, 0.3, 0.4],
  lanes: 4,
  passMs: 500,
  leaseSeconds: 20,
  unsignedWaitSeconds: 0.3,
};
export const SHORT_WAITS = { totalMs: 700, connectMs: 500 };

export interface WebhookPlace {
  database: TestDatabase;
  engine: TestEngine;
  outbound: SafeFetch;
  /** Hosts that the operator allows. */
  allowed: Set<string>;
  aReceiver(answer?: Answer): Promise<Receiver>;
  /** An organization with one endpoint, whose receiver is on loopback. */
  anOrganization(
    answer?: Answer,
  ): Promise<{ org: TestOrganization; receiver: Receiver; endpoint: TestEndpoint }>;
  /** Its deliveries, once all have ended. */
  settled(endpoint: TestEndpoint, timeoutMs?: number): Promise<StoredDelivery[]>;
  close(): Promise<void>;
}

/** A database, an engine that sends webhooks, and receivers on loopback. No worker is started. */
export async function startWebhookPlace(
  options: { fetch?: SafeFetchOptions; engine?: Omit<TestEngineOptions, 'outbound'> } = {},
): Promise<WebhookPlace> {
  const { outbound, allowed } = openOutbound({ ...SHORT_WAITS, ...options.fetch });
  const database = await createTestDatabase();
  const engine = await startTestEngine(database.database, {
    outbound,
    webhookPace: SHORT_PACE,
    ...options.engine,
  });
  const receivers: Receiver[] = [];
  const aReceiver = async (answer?: Answer) => {
    const receiver = await startReceiver(answer);
    receivers.push(receiver);
    allowed.add(receiver.host);
    return receiver;
  };
  return {
    database,
    engine,
    outbound,
    allowed,
    aReceiver,
    async anOrganization(answer) {
      const org = await createTestOrganization(database.database);
      const receiver = await aReceiver(answer);
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
