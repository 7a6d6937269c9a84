import { listWebhookEndpoints } from '../../../db/webhooks/webhookEndpoints.js';
import { isUuidText } from '../../../domain/ids.js';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  getWebhook,
  readyToChange,
  readyToCreate,
  rotateWebhookSecret,
  uuidOfWebhook,
} from '../../../usecases/webhooks/endpoints.js';
import { endpointGroup } from '../../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../../paging.js';
import {
  createWebhookBody,
  listWebhooksQuery,
  listWebhooksResponse,
  presentRotatedWebhook,
  presentWebhook,
  rotatedWebhookSchema,
  rotateSecretBody,
  targetOf,
  updateWebhookBody,
  WEBHOOKS_PATH,
  webhookParams,
  webhookSchema,
  webhookWithSecretSchema,
} from './wire.js';

const routes = endpointGroup({ tag: 'Webhooks', access: { scope: 'webhooks:admin', workspace: 'refused' } });

routes.post(WEBHOOKS_PATH, {
  operationId: 'createWebhookEndpoint',
  summary: 'Make a webhook endpoint',
  description:
    'From now on it is sent what happens. The answer holds the secret that signs its messages, this once; formats for people have none (docs/webhooks.md).',
  body: createWebhookBody,
  idempotency: 'afterwards',
  responses: {
    201: {
      description: 'The endpoint, with its secret',
      schema: webhookWithSecretSchema,
      headers: { Location: 'The endpoint' },
    },
  },
  problems: ['invalid_body', 'too_many_items', 'mail_not_configured'],
  async handle(request, deps) {
    const { body, settle } = request;
    const { description, event_types: eventTypes, enabled } = body;
    const target = await readyToCreate(targetOf(body), deps);
    return settle(async (inside) => {
      const wanted = { target, description, eventTypes, enabled };
      const { endpoint, secret } = await createWebhook(inside, wanted, request, deps);
      const shown = { ...presentWebhook(endpoint), secret };
      return { status: 201, headers: { Location: `${WEBHOOKS_PATH}/${shown.id}` }, body: shown };
    });
  },
});

routes.get(WEBHOOKS_PATH, {
  operationId: 'listWebhookEndpoints',
  csv: 'webhook-endpoints',
  summary: 'Webhook endpoints, newest first',
  query: listWebhooksQuery,
  responses: { 200: { description: 'A page of endpoints', schema: listWebhooksResponse } },
  async handle({ query, orgDb }) {
    const after = decodeTimeCursor(query.cursor, isUuidText);
    const found = await listWebhookEndpoints(orgDb, {
      limit: query.limit + 1,
      offset: after ? 0 : query.offset,
      after,
    });
    const { shown, page } = cursoredPage(found, query, (one) => [one.createdAtMicros, one.id]);
    return { status: 200, body: { webhook_endpoints: shown.map(presentWebhook), ...page } };
  },
});

routes.get(`${WEBHOOKS_PATH}/{id}`, {
  operationId: 'getWebhookEndpoint',
  summary: 'One webhook endpoint',
  params: webhookParams,
  responses: { 200: { description: 'The endpoint, without its secret', schema: webhookSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    return { status: 200, body: presentWebhook(await getWebhook(orgDb, uuidOfWebhook(params.id))) };
  },
});

routes.patch(`${WEBHOOKS_PATH}/{id}`, {
  operationId: 'updateWebhookEndpoint',
  summary: 'Give a webhook endpoint another address or other events, switch it off or on',
  description:
    'Absent fields keep their values. Pending messages go to the new address; switching the endpoint off cancels them.',
  params: webhookParams,
  body: updateWebhookBody,
  idempotency: 'afterwards',
  responses: { 200: { description: 'The endpoint as it is now', schema: webhookSchema } },
  problems: ['not_found', 'invalid_body'],
  async handle(request, deps) {
    const { params, body, orgDb, settle } = request;
    const id = uuidOfWebhook(params.id);
    const { event_types: eventTypes, ...rest } = body;
    const wanted = { ...rest, eventTypes };
    const change = await readyToChange(orgDb, id, wanted, deps.outbound);
    return settle(async (inside) => {
      const changed = await changeWebhook(inside, id, change, Object.keys(body), request);
      return { status: 200, body: presentWebhook(changed) };
    });
  },
});

routes.delete(`${WEBHOOKS_PATH}/{id}`, {
  operationId: 'deleteWebhookEndpoint',
  summary: 'Remove a webhook endpoint',
  description: 'Its secret is erased at once, and what waits to be sent is cancelled.',
  params: webhookParams,
  responses: { 204: { description: 'Removed' } },
  problems: ['not_found'],
  async handle(request) {
    await deleteWebhook(request.orgDb, uuidOfWebhook(request.params.id), request);
    return { status: 204 };
  },
});

routes.post(`${WEBHOOKS_PATH}/{id}/rotate-secret`, {
  operationId: 'rotateWebhookSecret',
  summary: 'Give a webhook endpoint another secret',
  description:
    'Messages are signed with both for grace_seconds more, so that the receiver can be changed meanwhile; a rotation during the grace ends the oldest secret at once.',
  params: webhookParams,
  body: rotateSecretBody,
  isBodyOptional: true,
  responses: { 200: { description: 'The endpoint, with its new secret', schema: rotatedWebhookSchema } },
  problems: ['not_found', 'invalid_body', 'credentials_missing'],
  async handle(request, deps) {
    const { params, body, orgDb } = request;
    const wanted = { id: uuidOfWebhook(params.id), graceSeconds: body.grace_seconds };
    const rotated = await rotateWebhookSecret(orgDb, wanted, request, deps);
    return { status: 200, body: presentRotatedWebhook(rotated) };
  },
});

export const webhookEndpoints = routes.endpoints;
