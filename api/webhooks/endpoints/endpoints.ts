import { listWebhookEndpoints } from '../../../db/webhooks/webhookEndpoints.js';
import { isUuidText } from '../../../domain/ids.js';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  getWebhook,
  readyToChange,
  rotateWebhookSecret,
  uuidOfWebhook,
} from '../../../usecases/webhooks/endpoints.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../../paging.js';
import {
  createWebhookBody,
  listWebhooksQuery,
  listWebhooksResponse,
  presentRotatedWebhook,
  presentWebhook,
  rotatedWebhookSchema,
  rotateSecretBody,
  updateWebhookBody,
  WEBHOOKS_PATH,
  webhookParams,
  webhookSchema,
  webhookWithSecretSchema,
} from './wire.js';

const ADMIN = { scope: 'webhooks:admin', workspace: 'refused' } as const;

const createWebhookEndpoint = defineEndpoint({
  operationId: 'createWebhookEndpoint',
  method: 'post',
  path: WEBHOOKS_PATH,
  tag: 'Webhooks',
  summary: 'Make a webhook endpoint',
  description:
    'From now on it is sent what happens. The answer holds the secret that signs its messages, this once (docs/webhooks.md).',
  access: ADMIN,
  body: createWebhookBody,
  idempotency: 'afterwards',
  responses: {
    201: {
      description: 'The endpoint, with its secret',
      schema: webhookWithSecretSchema,
      headers: { Location: 'The endpoint' },
    },
  },
  problems: ['invalid_body', 'too_many_items'],
  async handle(request, deps) {
    const { body, settle } = request;
    const { description, event_types: eventTypes, enabled } = body;
    // Looks its name up, which no transaction may wait for.
    const url = await deps.outbound.assertPublicAddress(body.url, 'url');
    return settle(async (inside) => {
      const wanted = { url, description, eventTypes, enabled };
      const { endpoint, secret } = await createWebhook(inside, wanted, request, deps);
      const shown = { ...presentWebhook(endpoint), secret };
      return { status: 201, headers: { Location: `${WEBHOOKS_PATH}/${shown.id}` }, body: shown };
    });
  },
});

const listWebhooks = defineEndpoint({
  operationId: 'listWebhookEndpoints',
  method: 'get',
  path: WEBHOOKS_PATH,
  tag: 'Webhooks',
  summary: 'Webhook endpoints, newest first',
  access: ADMIN,
  query: listWebhooksQuery,
  responses: { 200: { description: 'A page of endpoints', schema: listWebhooksResponse } },
  problems: [],
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

const readWebhook = defineEndpoint({
  operationId: 'getWebhookEndpoint',
  method: 'get',
  path: `${WEBHOOKS_PATH}/{id}`,
  tag: 'Webhooks',
  summary: 'One webhook endpoint',
  access: ADMIN,
  params: webhookParams,
  responses: { 200: { description: 'The endpoint, without its secret', schema: webhookSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    return { status: 200, body: presentWebhook(await getWebhook(orgDb, uuidOfWebhook(params.id))) };
  },
});

const updateWebhookEndpoint = defineEndpoint({
  operationId: 'updateWebhookEndpoint',
  method: 'patch',
  path: `${WEBHOOKS_PATH}/{id}`,
  tag: 'Webhooks',
  summary: 'Give a webhook endpoint another address or other events, switch it off or on',
  description:
    'What is not named stays. What waits to be sent goes to the new address; switched off, it is cancelled.',
  access: ADMIN,
  params: webhookParams,
  body: updateWebhookBody,
  idempotency: 'afterwards',
  responses: { 200: { description: 'The endpoint as it is now', schema: webhookSchema } },
  problems: ['not_found', 'invalid_body'],
  async handle(request, deps) {
    const { params, body, orgDb, settle } = request;
    const id = uuidOfWebhook(params.id);
    const { url, description, event_types: eventTypes, enabled } = body;
    const wanted = { url, description, eventTypes, enabled };
    const change = await readyToChange(orgDb, id, wanted, deps.outbound);
    return settle(async (inside) => {
      const changed = await changeWebhook(inside, id, change, Object.keys(body), request);
      return { status: 200, body: presentWebhook(changed) };
    });
  },
});

const deleteWebhookEndpoint = defineEndpoint({
  operationId: 'deleteWebhookEndpoint',
  method: 'delete',
  path: `${WEBHOOKS_PATH}/{id}`,
  tag: 'Webhooks',
  summary: 'Remove a webhook endpoint',
  description: 'Its secret is erased at once, and what waits to be sent is cancelled.',
  access: ADMIN,
  params: webhookParams,
  responses: { 204: { description: 'Removed' } },
  problems: ['not_found'],
  async handle(request) {
    await deleteWebhook(request.orgDb, uuidOfWebhook(request.params.id), request);
    return { status: 204 };
  },
});

const rotateSecret = defineEndpoint({
  operationId: 'rotateWebhookSecret',
  method: 'post',
  path: `${WEBHOOKS_PATH}/{id}/rotate-secret`,
  tag: 'Webhooks',
  summary: 'Give a webhook endpoint another secret',
  description:
    'Messages are signed with both for grace_seconds more, so that the receiver can be changed meanwhile; a rotation during the grace ends the oldest secret at once.',
  access: ADMIN,
  params: webhookParams,
  body: rotateSecretBody,
  isBodyOptional: true,
  responses: { 200: { description: 'The endpoint, with its new secret', schema: rotatedWebhookSchema } },
  problems: ['not_found', 'invalid_body'],
  async handle(request, deps) {
    const { params, body, orgDb } = request;
    const wanted = { id: uuidOfWebhook(params.id), graceSeconds: body.grace_seconds };
    const rotated = await rotateWebhookSecret(orgDb, wanted, request, deps);
    return { status: 200, body: presentRotatedWebhook(rotated) };
  },
});

export const webhookEndpoints: readonly Endpoint[] = [
  createWebhookEndpoint,
  listWebhooks,
  readWebhook,
  updateWebhookEndpoint,
  deleteWebhookEndpoint,
  rotateSecret,
];
