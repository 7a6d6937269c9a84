import { createHash, createHmac } from 'node:crypto';
import { recordAudit } from '../../db/access/auditLog.js';
import type { Database } from '../../db/client.js';
import {
  disableUnsubscribedEndpoint,
  findMailSubscription,
  findWebhookEndpoint,
  removeReportDelivery,
} from '../../db/webhooks/webhookEndpoints.js';
import { publicId } from '../../domain/ids.js';
import { secretBytes } from '../../domain/webhooks/secret.js';
import { orgDbOf } from '../useCaseDeps.js';

/** Path of the page that ends mails and of its POST, below the address of the installation. */
export const UNSUBSCRIBE_PATH = '/unsubscribe';

const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** The token that ends the mails of an endpoint and does nothing else, from the endpoint's sealed secret. */
export function unsubscribeToken(secret: string): string {
  return createHmac('sha256', secretBytes(secret)).update('end these mails').digest('base64url');
}

/** The stored form of a token. */
export function unsubscribeHash(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** Ends the mails that contain this token. The answer does not reveal whether there are any. */
export async function endMails(deps: { database: Database }, token: string): Promise<void> {
  if (!TOKEN.test(token)) return;
  const found = await findMailSubscription(deps.database, unsubscribeHash(token));
  if (!found) return;
  await orgDbOf(deps, found.orgId).transaction(async (inside) => {
    if (!(await disableUnsubscribedEndpoint(inside, found.endpointId))) return;
    const endpoint = await findWebhookEndpoint(inside, found.endpointId);
    if (endpoint?.reportCadence) await removeReportDelivery(inside, endpoint.reportCadence, endpoint.id);
    await recordAudit(inside, {
      action: 'webhook.disabled',
      actor: { kind: 'system', id: 'webhook_delivery' },
      subject: { type: 'webhook_endpoint', id: publicId('whk', found.endpointId) },
      details: { reason: 'unsubscribed' },
      requestId: null,
    });
  });
}
