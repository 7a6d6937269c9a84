import { randomBytes, randomUUID } from 'node:crypto';
import { type DeliverWebhook, deliverWebhookBy } from '../../adapters/outbound/deliverWebhook.js';
import { SafeFetch, type SafeFetchOptions } from '../../adapters/outbound/safeFetch.js';
import { publishMessages } from '../../db/webhooks/webhookDeliveries.js';
import { insertWebhookEndpoint } from '../../db/webhooks/webhookEndpoints.js';
import { microsFromDate } from '../../domain/period.js';
import { messageBody, type WebhookEventType } from '../../domain/webhooks/messages.js';
import { formatSecret, sealSecrets } from '../../domain/webhooks/secret.js';
import type { TestOrganization } from './api.js';
import { testSecretKeys } from './connectors.js';
import type { TestDatabase } from './database.js';

/** The product's outbound client, with hosts that a test permits while it runs. */
export function openOutbound(options: SafeFetchOptions = {}): { outbound: SafeFetch; allowed: Set<string> } {
  const allowed = new Set<string>();
  return { outbound: new SafeFetch({ allowedHosts: allowed, ...options }), allowed };
}

/** Attempts at webhook endpoints by this way out, on this machine's clock. */
export function testWebhookDelivery(outbound: SafeFetch): DeliverWebhook {
  return deliverWebhookBy(outbound, {
    nowMicros: () => microsFromDate(new Date()),
    nowMs: () => performance.now(),
  });
}

export interface TestEndpoint {
  id: string;
  secret: string;
}

/** A webhook endpoint of the organization, stored as the API stores one; it wants no alerts unless they are named. */
export async function anEndpoint(
  { orgId, orgDb }: TestOrganization,
  url: string,
  eventTypes: readonly WebhookEventType[] = ['gap_run.completed'],
): Promise<TestEndpoint> {
  const id = randomUUID();
  const secret = formatSecret(randomBytes(32));
  await orgDb.transaction((inside) =>
    insertWebhookEndpoint(
      inside,
      {
        ...{ id, description: '', eventTypes, enabled: true, createdBy: 'test' },
        target: { format: 'standard', url, digest: 'none' },
      },
      100,
      () => sealSecrets(testSecretKeys(), orgId, id, { current: secret, previous: null }),
    ),
  );
  return { id, secret };
}

/** Publishes messages in one transaction; returns their uuids. */
export async function sendMessages({ orgDb }: TestOrganization, count = 1): Promise<string[]> {
  const messages = Array.from({ length: count }, () => {
    const id = randomUUID();
    const body = messageBody('gap_run.completed', '2026-01-01T00:00:00.000000Z', { run_id: `run_${id}` });
    return { id, type: 'gap_run.completed' as const, body };
  });
  await orgDb.transaction((inside) => publishMessages(inside, messages));
  return messages.map(({ id }) => id);
}

export interface StoredDelivery {
  status: string;
  attempts: number;
  last_status: number | null;
  last_error: string | null;
  tries: { number: number; http_status: number | null; error: string | null; answer: string | null }[];
}

/** The stored deliveries of an endpoint, oldest first. */
export async function deliveriesOf(
  { superuser }: TestDatabase,
  { id }: TestEndpoint,
): Promise<StoredDelivery[]> {
  const { rows } = await superuser.query(
    `select d.status, d.attempts, d.last_status, d.last_error,
       (select coalesce(jsonb_agg(jsonb_build_object('number', a.number, 'http_status', a.http_status, 'error', a.error, 'answer', a.answer) order by a.number), '[]')
        from webhook_attempts a where a.org_id = d.org_id and a.delivery_id = d.id) as tries
     from webhook_deliveries d where d.endpoint_id = $1 order by d.created_at, d.id`,
    [id],
  );
  return rows as StoredDelivery[];
}

/** Number of an endpoint's deliveries by status. */
export async function statusesOf(
  database: TestDatabase,
  endpoint: TestEndpoint,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { status } of await deliveriesOf(database, endpoint)) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
