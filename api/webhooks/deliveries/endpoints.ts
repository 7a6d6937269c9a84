import {
  beginDeliveryAnew,
  findWebhookDelivery,
  listWebhookDeliveries,
  recordSentTest,
} from '../../../db/webhooks/webhookLog.js';
import { DomainError } from '../../../domain/errors.js';
import { findUuid, isUuidText, newUuid, publicId } from '../../../domain/ids.js';
import { isoFromMicros } from '../../../domain/period.js';
import { messageBody, TEST_MESSAGE_TYPE } from '../../../domain/webhooks/message.js';
import { openSecrets, signingSecrets } from '../../../domain/webhooks/secret.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../../paging.js';
import { getWebhook, webhookSubject } from '../endpoints/endpoints.js';
import { WEBHOOKS_PATH, webhookParams } from '../endpoints/wire.js';
import {
  deliveryParams,
  deliverySchema,
  listDeliveriesQuery,
  listDeliveriesResponse,
  presentDelivery,
  testedWebhookSchema,
} from './wire.js';

const ADMIN = { scope: 'webhooks:admin', workspace: 'refused' } as const;

function notFound(): DomainError {
  return new DomainError('not_found', 'there is no delivery with this id, or its endpoint was removed');
}

const testWebhook = defineEndpoint({
  operationId: 'testWebhookEndpoint',
  method: 'post',
  path: `${WEBHOOKS_PATH}/{id}/test`,
  tag: 'Webhooks',
  summary: 'Send a test message',
  description:
    'Sends webhook.test at once, once, also to an endpoint that is switched off, and says what the receiver answered.',
  access: ADMIN,
  params: webhookParams,
  idempotency: 'afterwards',
  responses: { 200: { description: 'What came of it', schema: testedWebhookSchema } },
  problems: ['not_found', 'credentials_missing', 'secret_key_missing'],
  async handle({ params, orgDb, signal, settle, caller, requestId }, deps) {
    const { id, url, ciphertext } = await getWebhook(orgDb, params.id);
    const startedAtMicros = deps.nowMicros();
    const secrets = signingSecrets(
      openSecrets(deps.secretKeys, orgDb.orgId, { id, ciphertext }),
      startedAtMicros,
    );
    const subject = webhookSubject(id);
    const messageId = newUuid(startedAtMicros);
    const deliveryId = newUuid(startedAtMicros);
    const body = messageBody(TEST_MESSAGE_TYPE, isoFromMicros(startedAtMicros), {
      webhook_endpoint_id: subject.id,
    });
    const message = { url, messageId: publicId('msg', messageId), body, secrets, signal };
    const outcome = await deps.deliverWebhook(message);
    const { httpStatus, durationMs, error, answer } = outcome;
    const ok = outcome.result === 'delivered';
    return settle(async (inside) => {
      const test = { deliveryId, messageId, endpointId: id, body, startedAtMicros, outcome };
      await recordSentTest(inside, test);
      await recordAction(inside, { caller, requestId }, 'webhook.tested', subject, { ok });
      const ids = { delivery_id: publicId('dlv', deliveryId), message_id: message.messageId };
      return {
        status: 200,
        body: { ok, http_status: httpStatus, duration_ms: durationMs, error, answer, ...ids },
      };
    });
  },
});

const listDeliveries = defineEndpoint({
  operationId: 'listWebhookDeliveries',
  method: 'get',
  path: `${WEBHOOKS_PATH}/{id}/deliveries`,
  tag: 'Webhooks',
  summary: 'What was sent to a webhook endpoint, newest first',
  description: 'Each message with every attempt to deliver it and what the receiver answered.',
  access: ADMIN,
  params: webhookParams,
  query: listDeliveriesQuery,
  responses: { 200: { description: 'A page of deliveries', schema: listDeliveriesResponse } },
  problems: ['not_found'],
  async handle({ params, query, orgDb }) {
    const { id } = await getWebhook(orgDb, params.id);
    const after = decodeTimeCursor(query.cursor, isUuidText);
    const found = await listWebhookDeliveries(
      orgDb,
      id,
      { status: query.status, type: query.type },
      { limit: query.limit + 1, offset: after ? 0 : query.offset, after },
    );
    const { shown, page } = cursoredPage(found, query, (one) => [one.createdAtMicros, one.id]);
    return { status: 200, body: { deliveries: shown.map(presentDelivery), ...page } };
  },
});

const redeliver = defineEndpoint({
  operationId: 'redeliverWebhook',
  method: 'post',
  path: `${WEBHOOKS_PATH}/deliveries/{id}/redeliver`,
  tag: 'Webhooks',
  summary: 'Send a message again',
  description:
    'Begins a new series of attempts with the same message id, whatever came of the last one. A delivery that is pending is answered as it is.',
  access: ADMIN,
  params: deliveryParams,
  responses: { 202: { description: 'The delivery, pending', schema: deliverySchema } },
  problems: ['not_found', 'webhook_disabled'],
  async handle({ params, orgDb, afterCommit, caller, requestId }, deps) {
    const id = findUuid('dlv', params.id);
    if (id === undefined) throw notFound();
    return orgDb.transaction(async (inside) => {
      const outcome = await beginDeliveryAnew(inside, id);
      if (outcome === 'missing') throw notFound();
      if (outcome === 'disabled')
        throw new DomainError(
          'webhook_disabled',
          'the webhook endpoint is switched off; switch it on with PATCH, enabled: true, first',
        );
      const delivery = await findWebhookDelivery(inside, id);
      if (!delivery) throw notFound();
      const { type, endpointId } = delivery;
      const details = {
        webhook_endpoint: publicId('whk', endpointId),
        message_type: type,
        begun: outcome === 'begun',
      };
      const subject = { type: 'webhook_delivery', id: publicId('dlv', id) };
      await recordAction(inside, { caller, requestId }, 'webhook.redelivered', subject, details);
      afterCommit(() => deps.kickDispatcher());
      return { status: 202, body: presentDelivery(delivery) };
    });
  },
});

export const webhookDeliveryEndpoints: readonly Endpoint[] = [testWebhook, listDeliveries, redeliver];
