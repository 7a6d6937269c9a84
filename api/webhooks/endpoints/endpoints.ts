import { randomBytes } from 'node:crypto';
import type { OrgDb } from '../../../db/orgDb.js';
import {
  findWebhookEndpoint,
  insertWebhookEndpoint,
  listWebhookEndpoints,
  removeWebhookEndpoint,
  replaceWebhookSecrets,
  updateWebhookEndpoint,
  type WebhookEndpoint,
} from '../../../db/webhooks/webhookEndpoints.js';
import { DomainError } from '../../../domain/errors.js';
import { findUuid, isUuidText, newUuid, publicId } from '../../../domain/ids.js';
import {
  type EndpointSecrets,
  findSecrets,
  formatSecret,
  rotateSecrets,
  SECRET_BYTES,
  sealSecrets,
} from '../../../domain/webhooks/secret.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../../paging.js';
import { isoOrNull } from '../../runs/runWire.js';
import {
  createWebhookBody,
  listWebhooksQuery,
  listWebhooksResponse,
  presentWebhook,
  rotatedWebhookSchema,
  rotateSecretBody,
  updateWebhookBody,
  WEBHOOKS_PATH,
  webhookParams,
  webhookSchema,
  webhookWithSecretSchema,
} from './wire.js';

/** Of an organization. Each message goes to each of them. */
export const WEBHOOK_ENDPOINTS_MAX = 50;

const ADMIN = { scope: 'webhooks:admin', workspace: 'refused' } as const;

function notFound(): DomainError {
  return new DomainError('not_found', 'there is no webhook endpoint with this id');
}

/** The uuid in an endpoint's public id. Error not_found. */
export function uuidOfWebhook(id: string): string {
  const uuid = findUuid('whk', id);
  if (uuid === undefined) throw notFound();
  return uuid;
}

/** Error not_found. */
export async function getWebhook(orgDb: OrgDb, id: string): Promise<WebhookEndpoint> {
  const endpoint = await findWebhookEndpoint(orgDb, uuidOfWebhook(id));
  if (!endpoint) throw notFound();
  return endpoint;
}

export const webhookSubject = (uuid: string) => ({ type: 'webhook_endpoint', id: publicId('whk', uuid) });

/** What the log says of an address: its path may hold a key of the receiver's. */
const hostOf = (url: string): string => new URL(url).host;

const drawSecret = (): string => formatSecret(randomBytes(SECRET_BYTES));

const createWebhook = defineEndpoint({
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
  async handle({ body, settle, caller, requestId }, deps) {
    // Looks its name up, which no transaction may wait for.
    const url = await deps.outbound.assertPublicAddress(body.url, 'url');
    const id = newUuid(deps.nowMicros());
    const secret = drawSecret();
    const { description, event_types: eventTypes, enabled } = body;
    return settle(async (inside) => {
      const wanted = { id, url, description, eventTypes, enabled, createdBy: caller.keyId };
      const made = await insertWebhookEndpoint(inside, wanted, WEBHOOK_ENDPOINTS_MAX, () =>
        sealSecrets(deps.secretKeys, inside.orgId, id, { current: secret, previous: null }),
      );
      if (!made)
        throw new DomainError(
          'too_many_items',
          `an organization can have ${WEBHOOK_ENDPOINTS_MAX} webhook endpoints: remove some that are no longer used`,
        );
      const details = { host: hostOf(url), event_types: eventTypes, enabled };
      await recordAction(inside, { caller, requestId }, 'webhook.created', webhookSubject(id), details);
      const shown = presentWebhook(made);
      return {
        status: 201,
        headers: { Location: `${WEBHOOKS_PATH}/${shown.id}` },
        body: { ...shown, secret },
      };
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
    return { status: 200, body: presentWebhook(await getWebhook(orgDb, params.id)) };
  },
});

const updateWebhook = defineEndpoint({
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
  async handle({ params, body, orgDb, settle, caller, requestId }, deps) {
    const { id } = await getWebhook(orgDb, params.id);
    const url = body.url === undefined ? undefined : await deps.outbound.assertPublicAddress(body.url, 'url');
    const { description, event_types: eventTypes, enabled } = body;
    return settle(async (inside) => {
      const changed = await updateWebhookEndpoint(inside, id, { url, description, eventTypes, enabled });
      if (!changed) throw notFound();
      const answer = { status: 200, body: presentWebhook(changed.endpoint) };
      if (!changed.isChanged) return answer;
      const details = {
        changed: Object.keys(body).sort(),
        host: url && hostOf(url),
        event_types: eventTypes,
        enabled,
      };
      await recordAction(inside, { caller, requestId }, 'webhook.changed', webhookSubject(id), details);
      return answer;
    });
  },
});

const deleteWebhook = defineEndpoint({
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
  async handle({ params, orgDb, caller, requestId }) {
    const id = uuidOfWebhook(params.id);
    await orgDb.transaction(async (inside) => {
      const removed = await removeWebhookEndpoint(inside, id);
      if (!removed) throw notFound();
      const details = { host: hostOf(removed.url) };
      await recordAction(inside, { caller, requestId }, 'webhook.removed', webhookSubject(id), details);
    });
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
  async handle({ params, body, orgDb, caller, requestId }, deps) {
    const id = uuidOfWebhook(params.id);
    const secret = drawSecret();
    const rotated = await orgDb.transaction(async (inside) => {
      let secrets: EndpointSecrets = { current: secret, previous: null };
      const stored = await replaceWebhookSecrets(inside, id, ({ ciphertext }) => {
        // Where no key opens the one at hand it signs nothing any more: the new one takes its place alone.
        const before = findSecrets(deps.secretKeys, inside.orgId, { id, ciphertext });
        if (before) secrets = rotateSecrets(before, secret, deps.nowMicros(), body.grace_seconds);
        return sealSecrets(deps.secretKeys, inside.orgId, id, secrets);
      });
      if (!stored) throw notFound();
      const details = { grace_seconds: secrets.previous === null ? 0 : body.grace_seconds };
      await recordAction(
        inside,
        { caller, requestId },
        'webhook.secret_rotated',
        webhookSubject(id),
        details,
      );
      return { ...presentWebhook(stored), secrets };
    });
    const { secrets, ...shown } = rotated;
    const previousUntil = isoOrNull(secrets.previous?.untilMicros ?? null);
    return { status: 200, body: { ...shown, secret, previous_valid_until: previousUntil } };
  },
});

export const webhookEndpoints: readonly Endpoint[] = [
  createWebhook,
  listWebhooks,
  readWebhook,
  updateWebhook,
  deleteWebhook,
  rotateSecret,
];
