import { findApiKey, listApiKeys } from '../../../db/access/keys.js';
import { isKeyId, type KeyGiver } from '../../../domain/access/keyRules.js';
import { DomainError } from '../../../domain/errors.js';
import { findUuid } from '../../../domain/ids.js';
import {
  changeKey,
  createKey,
  drawKey,
  type KeyAuthor,
  revokeKey,
  rotateKey,
} from '../../../usecases/access/keyChanges.js';
import { authorOf, type RequestAuthor } from '../../../usecases/access/recordAction.js';
import type { ApiDeps } from '../../deps.js';
import { endpointGroup } from '../../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../../paging.js';
import {
  createKeyBody,
  KEYS_PATH,
  keyParams,
  keySchema,
  keyWithSecretSchema,
  listKeysQuery,
  listKeysResponse,
  presentKey,
  rotateKeyBody,
  updateKeyBody,
} from './wire.js';

const NO_WORKSPACE = '00000000-0000-0000-0000-000000000000';

function keyAuthorOf(request: RequestAuthor & { caller: KeyGiver }, deps: ApiDeps): KeyAuthor {
  return { giver: request.caller, ...authorOf(request), nowMicros: deps.nowMicros() };
}

function assertKeyId(id: string): string {
  if (!isKeyId(id)) throw new DomainError('not_found', 'there is no key with this id');
  return id;
}

const routes = endpointGroup({ tag: 'Keys', access: { scope: 'keys:admin', workspace: 'refused' } });

routes.post(KEYS_PATH, {
  operationId: 'createKey',
  summary: 'Make a key',
  description:
    'The answer contains the key itself, only this once. A key cannot grant more than it holds: a key that is limited to keys:admin can make only keys with the same limit.',
  body: createKeyBody,
  responses: {
    201: {
      description: 'The key, with its text',
      schema: keyWithSecretSchema,
      headers: { Location: 'The key' },
    },
  },
  problems: ['invalid_body', 'forbidden', 'workspace_archived', 'too_many_items'],
  async handle(request, deps) {
    const { name, role, scopes, workspace_id: workspaceId, expires_at: expiresAtMicros } = request.body;
    const { text, ...digest } = drawKey();
    const wanted = { ...digest, name, role, scopes, workspaceId, expiresAtMicros };
    const key = await createKey(request.orgDb, wanted, keyAuthorOf(request, deps));
    return {
      status: 201,
      headers: { Location: `${KEYS_PATH}/${key.id}` },
      body: { ...presentKey(key), key: text },
    };
  },
});

routes.get(KEYS_PATH, {
  operationId: 'listKeys',
  csv: 'keys',
  summary: 'Keys, newest first',
  description: 'Includes revoked and expired keys, because calls name the key that sent them.',
  query: listKeysQuery,
  responses: { 200: { description: 'A page of keys', schema: listKeysResponse } },
  async handle({ query, orgDb }) {
    const after = decodeTimeCursor(query.cursor, isKeyId);
    const { role, status, workspace_id: workspace } = query;
    const workspaceId = workspace === undefined ? undefined : (findUuid('wsp', workspace) ?? NO_WORKSPACE);
    const asked = { limit: query.limit + 1, offset: after ? 0 : query.offset, after };
    const found = await listApiKeys(orgDb, { role, status, workspaceId }, asked);
    const { shown, page } = cursoredPage(found, query, (key) => [key.createdAtMicros, key.id]);
    return { status: 200, body: { keys: shown.map(presentKey), ...page } };
  },
});

routes.get(`${KEYS_PATH}/{id}`, {
  operationId: 'getKey',
  summary: 'One key',
  params: keyParams,
  responses: { 200: { description: 'The key', schema: keySchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    const key = await findApiKey(orgDb, assertKeyId(params.id));
    if (!key) throw new DomainError('not_found', 'there is no key with this id');
    return { status: 200, body: presentKey(key) };
  },
});

routes.patch(`${KEYS_PATH}/{id}`, {
  operationId: 'updateKey',
  summary: 'Rename a key, narrow it, or give it another end',
  description:
    'Absent fields keep their values. Role and workspace never change: make another key. The change holds on every instance within a second.',
  params: keyParams,
  body: updateKeyBody,
  responses: { 200: { description: 'The key as it is now', schema: keySchema } },
  problems: ['not_found', 'invalid_body', 'forbidden', 'key_not_active', 'last_admin_key'],
  async handle(request, deps) {
    const { name, scopes, expires_at: expiresAtMicros } = request.body;
    const id = assertKeyId(request.params.id);
    const change = { name, scopes, expiresAtMicros };
    const key = await changeKey(request.orgDb, id, change, keyAuthorOf(request, deps));
    return { status: 200, body: presentKey(key) };
  },
});

routes.delete(`${KEYS_PATH}/{id}`, {
  operationId: 'revokeKey',
  summary: 'Revoke a key',
  description:
    'At once and for good; on every instance within a second. The key stays in the list, because calls name it. The last admin key that is neither narrowed nor expires cannot be revoked.',
  params: keyParams,
  responses: { 204: { description: 'Revoked' } },
  problems: ['not_found', 'last_admin_key'],
  async handle(request, deps) {
    const id = assertKeyId(request.params.id);
    if (!(await revokeKey(request.orgDb, id, keyAuthorOf(request, deps))))
      throw new DomainError('not_found', 'this key was revoked before');
    return { status: 204 };
  },
});

routes.post(`${KEYS_PATH}/{id}/rotate`, {
  operationId: 'rotateKey',
  summary: 'Give a key another secret',
  description:
    'The id does not change. The present secret is valid for grace_seconds more, so that clients can be changed one by one; a rotation during the grace period ends the oldest secret at once.',
  params: keyParams,
  body: rotateKeyBody,
  isBodyOptional: true,
  responses: { 200: { description: 'The key, with its new text', schema: keyWithSecretSchema } },
  problems: ['not_found', 'invalid_body', 'forbidden', 'key_not_active', 'last_admin_key'],
  async handle(request, deps) {
    const { text, id, secretHash, last4 } = drawKey(assertKeyId(request.params.id));
    const secret = { secretHash, last4, graceSeconds: request.body.grace_seconds };
    const key = await rotateKey(request.orgDb, id, secret, keyAuthorOf(request, deps));
    return { status: 200, body: { ...presentKey(key), key: text } };
  },
});

export const keyEndpoints = routes.endpoints;
