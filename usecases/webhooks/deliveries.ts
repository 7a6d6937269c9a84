import type { OrgDb } from '../../db/orgDb.js';
import {
  findWebhookDelivery,
  type LoggedDelivery,
  recordSentTest,
  restartDelivery,
  type SentTest,
} from '../../db/webhooks/webhookDeliveries.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid, newUuid, publicId } from '../../domain/ids.js';
import { isoFromMicros } from '../../domain/period.js';
import { messageBody, TEST_MESSAGE_TYPE } from '../../domain/webhooks/messages.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { getWebhook, webhookSubject } from './endpoints.js';
import { type AttemptDeps, type MessageToSend, secretsForSending, sendAttempt } from './sendAttempt.js';

/**
 * Sends a test message immediately, once; `recordTest` stores its outcome. Errors: not_found, credentials_missing,
 * secret_key_missing, mail_not_configured.
 */
export async function sendTest(
  orgDb: OrgDb,
  endpointId: string,
  signal: AbortSignal,
  deps: AttemptDeps,
): Promise<SentTest> {
  const endpoint = await getWebhook(orgDb, endpointId);
  const startedAtMicros = deps.nowMicros();
  const secrets = secretsForSending(orgDb.orgId, endpoint, deps);
  const messageId = newUuid(startedAtMicros);
  const deliveryId = newUuid(startedAtMicros);
  const body = messageBody(TEST_MESSAGE_TYPE, isoFromMicros(startedAtMicros), {
    webhook_endpoint_id: publicId('whk', endpointId),
  });
  const message: MessageToSend = { deliveryId, messageId, type: TEST_MESSAGE_TYPE, body };
  const outcome = await sendAttempt(orgDb, { endpoint, secrets }, message, signal, deps);
  return { deliveryId, messageId, endpointId, body, startedAtMicros, outcome };
}

/** Stores a test message with its attempt. */
export async function recordTest(orgDb: OrgDb, test: SentTest, author: RequestAuthor): Promise<void> {
  await orgDb.transaction(async (inside) => {
    await recordSentTest(inside, test);
    const details = { ok: test.outcome.result === 'delivered' };
    await recordAction(inside, author, 'webhook.tested', webhookSubject(test.endpointId), details);
  });
}

function deliveryNotFound(): DomainError {
  return new DomainError('not_found', 'there is no delivery with this id, or its endpoint was removed');
}

/** The uuid in a delivery's public id. Error: not_found. */
export function uuidOfDelivery(id: string): string {
  const uuid = findUuid('dlv', id);
  if (uuid === undefined) throw deliveryNotFound();
  return uuid;
}

/** Starts a new series of attempts; a pending delivery does not change. Errors: not_found, webhook_disabled. */
export async function redeliverMessage(
  orgDb: OrgDb,
  id: string,
  author: RequestAuthor,
): Promise<LoggedDelivery> {
  return orgDb.transaction(async (inside) => {
    const outcome = await restartDelivery(inside, id);
    if (outcome === 'missing') throw deliveryNotFound();
    if (outcome === 'disabled')
      throw new DomainError(
        'webhook_disabled',
        'the webhook endpoint is switched off; switch it on with PATCH, enabled: true, first',
      );
    const delivery = await findWebhookDelivery(inside, id);
    if (!delivery) throw deliveryNotFound();
    const details = {
      webhook_endpoint: publicId('whk', delivery.endpointId),
      message_type: delivery.type,
      begun: outcome === 'begun',
    };
    const subject = { type: 'webhook_delivery', id: publicId('dlv', id) };
    await recordAction(inside, author, 'webhook.redelivered', subject, details);
    return delivery;
  });
}
