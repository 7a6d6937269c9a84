import { recordAudit } from '../db/access/auditLog.js';
import type { OrgDb } from '../db/orgDb.js';
import { recordNotice } from '../db/policies/notices.js';
import type { GivenUp } from '../db/webhooks/webhookDeliveries.js';
import {
  disableGoneEndpoint,
  findWebhookEndpoint,
  type WebhookEndpoint,
} from '../db/webhooks/webhookEndpoints.js';
import { publicId } from '../domain/ids.js';
import { dayOf } from '../domain/period.js';

const subjectOf = (endpointId: string) => ({ type: 'webhook_endpoint', id: publicId('whk', endpointId) });

/** Of its address only the host: the rest may be what its receiver trusts, and more people read alerts than endpoints. */
function hostOf({ url }: WebhookEndpoint): string {
  return new URL(url).host;
}

/** Switches off an endpoint whose receiver says that it is gone, and tells the organization; once. In the caller's transaction. */
export async function tellEndpointGone(inside: OrgDb, endpointId: string): Promise<void> {
  if (!(await disableGoneEndpoint(inside, endpointId))) return;
  const endpoint = await findWebhookEndpoint(inside, endpointId);
  if (!endpoint) return;
  const subject = subjectOf(endpointId);
  await recordNotice(inside, {
    code: 'webhook_disabled',
    key: `webhook_disabled:${subject.id}:${endpoint.disabledAtMicros}`,
    subject,
    severity: 'high',
    message: `The webhook endpoint at ${hostOf(endpoint)} answered 410 Gone, so it was switched off: it is told of nothing until it is switched on again.`,
    details: { reason: 'gone' },
    provider: null,
  });
  await recordAudit(inside, {
    action: 'webhook.disabled',
    actor: { kind: 'system', id: 'webhook_delivery' },
    subject,
    details: { reason: 'gone' },
    requestId: null,
  });
}

/**
 * Tells the organization that messages to an endpoint are given up: once for as long as it takes none, and for one that
 * takes some and not others once a day. In the caller's transaction.
 */
export async function tellEndpointFailing(
  inside: OrgDb,
  endpointId: string,
  { deliveryId, attempts, lastError }: GivenUp,
): Promise<void> {
  const endpoint = await findWebhookEndpoint(inside, endpointId);
  if (endpoint?.status !== 'active') return;
  const subject = subjectOf(endpointId);
  const since = endpoint.lastDeliveredAtMicros === null ? 'never' : dayOf(endpoint.lastDeliveredAtMicros);
  await recordNotice(inside, {
    code: 'webhook_failing',
    key: `webhook_failing:${subject.id}:${since}`,
    subject,
    severity: 'medium',
    message: `A message to the webhook endpoint at ${hostOf(endpoint)} was given up after ${attempts} attempts: ${lastError ?? 'no answer'}. Others may follow; what was given up can be sent again.`,
    details: { delivery_id: publicId('dlv', deliveryId), attempts },
    provider: null,
  });
}
