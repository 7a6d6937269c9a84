import { listBillingConnections } from '../../../db/billing/billingConnections.js';
import type { NewSyncRun, SyncRun } from '../../../db/billing/syncRuns.js';
import { openCredentials } from '../../../domain/billing/connections.js';
import { publicId } from '../../../domain/ids.js';
import {
  type ConnectionChange,
  endConnection,
  storeChange,
  storeConnection,
  testConnection,
  tryChange,
  tryConnection,
} from '../../../usecases/billing/connections.js';
import { getConnection } from '../../../usecases/billing/providerAccounts.js';
import { syncOpening } from '../../../usecases/billing/sync.js';
import { runTableOf } from '../../../usecases/runs/runTables.js';
import { type Endpoint, endpointGroup } from '../../endpoint.js';
import { pageOf } from '../../paging.js';
import {
  getRunEndpoint,
  listRunsEndpoint,
  type RunResource,
  startRunEndpoint,
} from '../../runs/runEndpoints.js';
import {
  CONNECTIONS_PATH,
  connectionParams,
  connectionSchema,
  createConnectionBody,
  listConnectionsQuery,
  listConnectionsResponse,
  listSyncRunsQuery,
  listSyncRunsResponse,
  presentConnection,
  presentSyncRun,
  settingsOf,
  syncRunSchema,
  testResponse,
  updateConnectionBody,
} from './wire.js';

/** Problems of a request that waits for a provider's answer. */
const PROVIDER_PROBLEMS = [
  'provider_unavailable',
  'provider_rate_limited',
  'provider_paging_changed',
  'provider_answer_unreadable',
] as const;

const routes = endpointGroup({
  tag: 'Billing',
  access: {
    read: { scope: 'billing:read', workspace: 'refused' },
    write: { scope: 'billing:write', workspace: 'refused' },
  },
});

routes.post(CONNECTIONS_PATH, {
  operationId: 'createBillingConnection',
  summary: 'Connect a provider’s bills',
  description:
    'The credentials are tried and the provider names the account; then 90 days are fetched in the background (`sync`), and from then on every hour. Credentials are sealed and never shown again.',
  body: createConnectionBody,
  idempotency: 'afterwards',
  responses: {
    201: {
      description: 'Connected; poll sync.status_url',
      schema: connectionSchema,
      headers: { Location: 'The connection' },
    },
  },
  problems: ['invalid_body', 'account_already_connected', 'not_found', ...PROVIDER_PROBLEMS],
  async handle({ body, signal, settle, afterCommit, caller, requestId }, deps) {
    const accepted = await tryConnection(deps, { ...body, settings: settingsOf(body.settings) }, signal);
    afterCommit(() => deps.kickDispatcher());
    return settle(async (inside) => {
      const { connection, sync } = await storeConnection(inside, deps, accepted, { caller, requestId });
      const shown = presentConnection(connection, sync);
      return { status: 201, headers: { Location: `${CONNECTIONS_PATH}/${shown.id}` }, body: shown };
    });
  },
});

routes.get(CONNECTIONS_PATH, {
  operationId: 'listBillingConnections',
  csv: 'connections',
  summary: 'Connections, newest first',
  query: listConnectionsQuery,
  responses: { 200: { description: 'A page of connections', schema: listConnectionsResponse } },
  async handle({ query, orgDb }) {
    const found = await listBillingConnections(orgDb, { limit: query.limit + 1, offset: query.offset });
    const { shown, page } = pageOf(found, query);
    const connections = shown.map((connection) => presentConnection(connection));
    return { status: 200, body: { connections, ...page } };
  },
});

routes.get(`${CONNECTIONS_PATH}/{id}`, {
  operationId: 'getBillingConnection',
  summary: 'One connection and how it does',
  params: connectionParams,
  responses: { 200: { description: 'The connection', schema: connectionSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    return { status: 200, body: presentConnection(await getConnection(orgDb, params.id)) };
  },
});

routes.patch(`${CONNECTIONS_PATH}/{id}`, {
  operationId: 'updateBillingConnection',
  summary: 'Rename, pause, narrow or give other credentials',
  description:
    'New credentials are tried first and must belong to the same account. If the scope changes, all days of the connection are fetched again.',
  params: connectionParams,
  body: updateConnectionBody,
  idempotency: 'afterwards',
  responses: { 200: { description: 'The connection as it is now', schema: connectionSchema } },
  problems: [
    'not_found',
    'invalid_body',
    'account_already_connected',
    'account_mismatch',
    ...PROVIDER_PROBLEMS,
  ],
  async handle({ params, body, orgDb, signal, settle, afterCommit, caller, requestId }, deps) {
    const connection = await getConnection(orgDb, params.id);
    const change = { ...body, ...(body.settings ? { settings: settingsOf(body.settings) } : {}) };
    const accepted = await tryChange(deps, orgDb.orgId, connection, change as ConnectionChange, signal);
    afterCommit(() => deps.kickDispatcher());
    return settle(async (inside) => {
      const stored = await storeChange(inside, deps, connection, accepted, { caller, requestId });
      return { status: 200, body: presentConnection(stored.connection, stored.sync) };
    });
  },
});

routes.delete(`${CONNECTIONS_PATH}/{id}`, {
  operationId: 'deleteBillingConnection',
  summary: 'End a connection',
  description:
    'Its credentials are erased at once and nothing more is fetched. The bills that it fetched are kept.',
  params: connectionParams,
  responses: { 204: { description: 'Ended' } },
  problems: ['not_found'],
  async handle({ params, orgDb, caller, requestId }, deps) {
    await endConnection(orgDb, await getConnection(orgDb, params.id), { caller, requestId });
    deps.kickDispatcher();
    return { status: 204 };
  },
});

routes.post(`${CONNECTIONS_PATH}/{id}/test`, {
  operationId: 'testBillingConnection',
  idempotency: 'afterwards',
  summary: 'Try the credentials',
  description:
    'One check for each permission that is needed; a failed check names the place where the permission is granted.',
  params: connectionParams,
  responses: { 200: { description: 'What was found', schema: testResponse } },
  problems: ['not_found', 'credentials_missing', 'secret_key_missing', ...PROVIDER_PROBLEMS],
  async handle({ params, orgDb, signal, caller, requestId }, deps) {
    const connection = await getConnection(orgDb, params.id);
    const author = { caller, requestId };
    const { ok, checks } = await testConnection(deps, orgDb, connection, author, signal);
    const shown = checks.map(({ name, ok, detail }) => ({ name, ok, detail }));
    return { status: 200, body: { ok, checks: shown } };
  },
});

export const connectionEndpoints = routes.endpoints;

const RESOURCE: RunResource<SyncRun, NewSyncRun> = {
  runs: runTableOf('billing_sync'),
  tag: 'Billing',
  read: { scope: 'billing:read', workspace: 'refused' },
  write: { scope: 'billing:write', workspace: 'refused' },
  path: `${CONNECTIONS_PATH}/{id}/runs`,
  schema: syncRunSchema,
  present: (runs) => runs.map(presentSyncRun),
  findParent: async (orgDb, id) => ({ connectionId: (await getConnection(orgDb, id)).id }),
};

export const syncEndpoints: readonly Endpoint[] = [
  startRunEndpoint(RESOURCE, {
    operationId: 'startBillingSync',
    path: `${CONNECTIONS_PATH}/{id}/sync`,
    summary: 'Fetch the bills now',
    description:
      'Asynchronous. While a sync of the connection is open, that one is the answer (existing: true).',
    params: connectionParams,
    problems: ['not_found', 'credentials_missing'],
    async prepare({ params, orgDb }, deps) {
      const connection = await getConnection(orgDb, params.id);
      if (connection.ciphertext === null) openCredentials(deps.secretKeys, orgDb.orgId, connection);
      return {
        ...syncOpening(connection.id, 'request'),
        audit: ({ id }) => ({
          action: 'connection.sync_started',
          subject: { type: 'connection', id: publicId('con', connection.id) },
          details: { run_id: publicId('run', id) },
        }),
      };
    },
  }),
  listRunsEndpoint(RESOURCE, {
    operationId: 'listBillingSyncs',
    summary: 'Syncs of a connection, newest first',
    described: 'A page of syncs',
    query: listSyncRunsQuery,
    response: listSyncRunsResponse,
  }),
  getRunEndpoint(RESOURCE, {
    operationId: 'getBillingSync',
    summary: 'One sync and how far it is',
    described: 'The sync',
  }),
];
