import { listWebhookDeliveries } from '../../../db/webhooks/webhookDeliveries.js';
import { isUuidText } from '../../../domain/ids.js';
import {
  recordTest,
  redeliverMessage,
  sendTest,
  uuidOfDelivery,
} from '../../../usecases/webhooks/deliveries.js';
import { getWebhook, uuidOfWebhook } from '../../../usecases/webhooks/endpoints.js';
import { endpointGroup } from '../../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../../paging.js';
import { WEBHOOKS_PATH, webhookParams } from '../endpoints/wire.js';
import {
  deliveryParams,
  deliverySchema,
  listDeliveriesQuery,
  listDeliveriesResponse,
  presentDelivery,
  presentTest,
  testedWebhookSchema,
} from './wire.js';

const routes = endpointGroup({ tag: 'Webhooks', access: { scope: 'webhooks:admin', workspace: 'refused' } });

routes.post(`${WEBHOOKS_PATH}/{id}/test`, {
  operationId: 'testWebhookEndpoint',
  summary: 'Send a test message',
  description:
    'Sends webhook.test at once, once, also to an endpoint that is switched off, and returns the receiver’s answer.',
  params: webhookParams,
  idempotency: 'afterwards',
  responses: { 200: { description: 'What came of it', schema: testedWebhookSchema } },
  problems: ['not_found', 'credentials_missing', 'secret_key_missing', 'mail_not_configured'],
  async handle(request, deps) {
    const { params, orgDb, signal, settle } = request;
    const sending = { ...deps, baseUrl: deps.settings.baseUrl };
    const test = await sendTest(orgDb, uuidOfWebhook(params.id), signal, sending);
    return settle(async (inside) => {
      await recordTest(inside, test, request);
      return { status: 200, body: presentTest(test) };
    });
  },
});

routes.get(`${WEBHOOKS_PATH}/{id}/deliveries`, {
  operationId: 'listWebhookDeliveries',
  csv: 'webhook-deliveries',
  summary: 'Messages to a webhook endpoint, newest first',
  description: 'Each message with every attempt to deliver it and what the receiver answered.',
  params: webhookParams,
  query: listDeliveriesQuery,
  responses: { 200: { description: 'A page of deliveries', schema: listDeliveriesResponse } },
  problems: ['not_found'],
  async handle({ params, query, orgDb }) {
    const { id } = await getWebhook(orgDb, uuidOfWebhook(params.id));
    const after = decodeTimeCursor(query.cursor, isUuidText);
    const filter = { status: query.status, type: query.type };
    const asked = { limit: query.limit + 1, offset: after ? 0 : query.offset, after };
    const found = await listWebhookDeliveries(orgDb, id, filter, asked);
    const { shown, page } = cursoredPage(found, query, (one) => [one.createdAtMicros, one.id]);
    return { status: 200, body: { deliveries: shown.map(presentDelivery), ...page } };
  },
});

routes.post(`${WEBHOOKS_PATH}/deliveries/{id}/redeliver`, {
  operationId: 'redeliverWebhook',
  summary: 'Send a message again',
  description:
    'Begins a new series of attempts with the same message id, whatever the result of the last one. A pending delivery is returned unchanged.',
  params: deliveryParams,
  responses: { 202: { description: 'The delivery, pending', schema: deliverySchema } },
  problems: ['not_found', 'webhook_disabled'],
  async handle(request, deps) {
    const { params, orgDb, afterCommit } = request;
    const delivery = await redeliverMessage(orgDb, uuidOfDelivery(params.id), request);
    afterCommit(() => deps.kickDispatcher());
    return { status: 202, body: presentDelivery(delivery) };
  },
});

export const webhookDeliveryEndpoints = routes.endpoints;
