import { randomBytes } from 'node:crypto';
import { openSync } from '../../db/openSync.js';
import type { OrgDb } from '../../db/orgDb.js';
import {
  type BillingConnection,
  type ConnectionChanges,
  endBillingConnection,
  findBillingConnection,
  insertBillingConnection,
  listBillingConnections,
  updateBillingConnection,
} from '../../db/queries/billingConnections.js';
import { findSyncRun, listSyncRuns, type SyncRun } from '../../db/queries/syncRuns.js';
import { BACKFILL_DAYS, scopeText } from '../../domain/billing/connections.js';
import { openCredentials, sealCredentials } from '../../domain/billing/credentials.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid, uuidFromMicros } from '../../domain/ids.js';
import { dayOf, MICROS_PER_DAY, startOfDay } from '../../domain/period.js';
import {
  askProvider,
  changedSettings,
  checkCredentials,
  checkSameAccount,
  checkScope,
  connectorOf,
  identifyAccount,
} from '../billingProviders.js';
import type { ApiDeps } from '../deps.js';
import { defineEndpoint, type Endpoint, type EndpointResponse } from '../endpoint.js';
import { RUN_RETRY_AFTER_SECONDS } from '../runWire.js';
import {
  CONNECTIONS_PATH,
  connectionParams,
  connectionSchema,
  createConnectionBody,
  listConnectionsResponse,
  listPageQuery,
  listSyncRunsResponse,
  presentConnection,
  presentSyncRun,
  runUrlOf,
  settingsOf,
  syncRunParams,
  syncRunSchema,
  testResponse,
  updateConnectionBody,
} from './wire.js';

/** What may go wrong at a provider while a request waits for it. */
const PROVIDER_PROBLEMS = [
  'provider_unavailable',
  'provider_rate_limited',
  'provider_answer_unreadable',
] as const;

const newId = (deps: ApiDeps) => uuidFromMicros(deps.nowMicros(), randomBytes(8).readBigUInt64BE());

async function getConnection(orgDb: OrgDb, id: string): Promise<BillingConnection> {
  const uuid = findUuid('con', id);
  const connection = uuid === undefined ? undefined : await findBillingConnection(orgDb, uuid);
  if (!connection) throw new DomainError('not_found', 'there is no billing connection with this id');
  return connection;
}

const createConnection = defineEndpoint({
  operationId: 'createBillingConnection',
  method: 'post',
  path: CONNECTIONS_PATH,
  tag: 'Billing',
  summary: 'Connect a provider’s bills',
  description:
    'The credentials are tried and the account is asked of the provider; then 90 days are fetched behind the scenes (`sync`), and from then on every hour. Credentials are sealed and never shown again.',
  access: { scope: 'billing:write' },
  body: createConnectionBody,
  responses: {
    201: {
      description: 'Connected; poll sync.status_url',
      schema: connectionSchema,
      headers: { Location: 'The connection' },
    },
  },
  problems: ['invalid_body', 'account_already_connected', ...PROVIDER_PROBLEMS],
  async handle({ body, orgDb, signal }, deps) {
    const connector = connectorOf(deps, body.provider);
    const given = settingsOf(body.settings);
    checkCredentials(connector, body.credentials);
    checkScope(connector, given);
    const account = await identifyAccount(connector, body.credentials, given, signal);
    const id = newId(deps);
    const runId = newId(deps);
    const settings = { ...given, account };
    const backfillFrom = dayOf(startOfDay(deps.nowMicros()) - BigInt(BACKFILL_DAYS) * MICROS_PER_DAY);
    const wanted = { id, provider: connector.provider, name: body.name ?? connector.provider, settings };
    await insertBillingConnection(
      deps.database,
      orgDb.orgId,
      { ...wanted, accountId: account, scope: scopeText(settings), backfillFrom },
      runId,
      () => sealCredentials(deps.secretKeys, orgDb.orgId, id, body.credentials),
    );
    deps.kickDispatcher();
    const connection = await findBillingConnection(orgDb, id);
    if (!connection) throw new DomainError('not_found', 'the connection was ended just now');
    const presented = presentConnection(connection, await findSyncRun(orgDb, runId));
    return { status: 201, headers: { Location: `${CONNECTIONS_PATH}/${presented.id}` }, body: presented };
  },
});

const listConnections = defineEndpoint({
  operationId: 'listBillingConnections',
  method: 'get',
  path: CONNECTIONS_PATH,
  tag: 'Billing',
  summary: 'Connections, newest first',
  access: { scope: 'billing:read' },
  query: listPageQuery,
  responses: { 200: { description: 'A page of connections', schema: listConnectionsResponse } },
  problems: [],
  async handle({ query, orgDb }) {
    const found = await listBillingConnections(orgDb, { limit: query.limit + 1, offset: query.offset });
    const connections = found.slice(0, query.limit).map((connection) => presentConnection(connection));
    const more = { offset: query.offset, has_more: found.length > query.limit };
    return { status: 200, body: { connections, count: connections.length, ...more } };
  },
});

const readConnection = defineEndpoint({
  operationId: 'getBillingConnection',
  method: 'get',
  path: `${CONNECTIONS_PATH}/{id}`,
  tag: 'Billing',
  summary: 'One connection and how it does',
  access: { scope: 'billing:read' },
  params: connectionParams,
  responses: { 200: { description: 'The connection', schema: connectionSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    return { status: 200, body: presentConnection(await getConnection(orgDb, params.id)) };
  },
});

const updateConnection = defineEndpoint({
  operationId: 'updateBillingConnection',
  method: 'patch',
  path: `${CONNECTIONS_PATH}/{id}`,
  tag: 'Billing',
  summary: 'Rename, pause, narrow or give other credentials',
  description:
    'New credentials are tried first and must belong to the same account. Another scope is fetched anew for all of the connection’s days.',
  access: { scope: 'billing:write' },
  params: connectionParams,
  body: updateConnectionBody,
  responses: { 200: { description: 'The connection as it is now', schema: connectionSchema } },
  problems: [
    'not_found',
    'invalid_body',
    'account_already_connected',
    'account_mismatch',
    ...PROVIDER_PROBLEMS,
  ],
  async handle({ params, body, orgDb, signal }, deps) {
    const connection = await getConnection(orgDb, params.id);
    const connector = connectorOf(deps, connection.provider);
    const settings = body.settings && changedSettings(connector, connection, settingsOf(body.settings));
    const { credentials } = body;
    if (credentials) await checkSameAccount(connector, connection, credentials, signal);
    const changes: ConnectionChanges = {
      ...(body.name === undefined ? {} : { name: body.name }),
      ...(body.paused === undefined ? {} : { paused: body.paused }),
      ...(settings ? { settings: { settings, scope: scopeText(settings) } } : {}),
      ...(credentials
        ? { seal: () => sealCredentials(deps.secretKeys, orgDb.orgId, connection.id, credentials) }
        : {}),
    };
    if (!(await updateBillingConnection(deps.database, orgDb.orgId, connection, changes)))
      throw new DomainError('not_found', 'the connection was ended just now');
    const isOtherScope = settings !== undefined && scopeText(settings) !== connection.scope;
    const sync =
      (isOtherScope || credentials) && body.paused !== true
        ? (await openSync(orgDb, { id: newId(deps), connectionId: connection.id, trigger: 'settings' })).run
        : undefined;
    deps.kickDispatcher();
    return { status: 200, body: presentConnection(await getConnection(orgDb, params.id), sync) };
  },
});

const deleteConnection = defineEndpoint({
  operationId: 'deleteBillingConnection',
  method: 'delete',
  path: `${CONNECTIONS_PATH}/{id}`,
  tag: 'Billing',
  summary: 'End a connection',
  description:
    'Its credentials are erased at once and it is asked for no more. The bills that it brought stay.',
  access: { scope: 'billing:write' },
  params: connectionParams,
  responses: { 204: { description: 'Ended' } },
  problems: ['not_found'],
  async handle({ params, orgDb }, deps) {
    const { id } = await getConnection(orgDb, params.id);
    if (!(await endBillingConnection(orgDb, id)))
      throw new DomainError('not_found', 'there is no billing connection with this id');
    deps.kickDispatcher();
    return { status: 204 };
  },
});

const testConnection = defineEndpoint({
  operationId: 'testBillingConnection',
  method: 'post',
  path: `${CONNECTIONS_PATH}/{id}/test`,
  tag: 'Billing',
  summary: 'Try the credentials',
  description: 'One check for each permission that is needed; a failed one says where it is granted.',
  access: { scope: 'billing:write' },
  params: connectionParams,
  responses: { 200: { description: 'What was found', schema: testResponse } },
  problems: ['not_found', 'credentials_missing', 'secret_key_missing', ...PROVIDER_PROBLEMS],
  async handle({ params, orgDb, signal }, deps) {
    const connection = await getConnection(orgDb, params.id);
    const connector = connectorOf(deps, connection.provider);
    const credentials = openCredentials(deps.secretKeys, orgDb.orgId, connection);
    const checks = await askProvider(connector, signal, (limited) =>
      connector.test({ credentials, settings: connection.settings, signal: limited }),
    );
    const shown = checks.map(({ name, ok, detail }) => ({ name, ok, detail }));
    return { status: 200, body: { ok: checks.every(({ ok }) => ok), checks: shown } };
  },
});

const startSync = defineEndpoint({
  operationId: 'startBillingSync',
  method: 'post',
  path: `${CONNECTIONS_PATH}/{id}/sync`,
  tag: 'Billing',
  summary: 'Fetch the bills now',
  description:
    'Asynchronous. While a sync of the connection is open, that one is the answer (existing: true).',
  access: { scope: 'billing:write' },
  params: connectionParams,
  responses: {
    202: {
      description: 'Taken; poll status_url',
      schema: syncRunSchema,
      headers: { Location: 'Where to ask for its state', 'Retry-After': 'Seconds' },
    },
  },
  problems: ['not_found', 'credentials_missing'],
  async handle({ params, orgDb }, deps) {
    const connection = await getConnection(orgDb, params.id);
    if (connection.ciphertext === null) openCredentials(deps.secretKeys, orgDb.orgId, connection);
    const { run, existing } = await openSync(orgDb, {
      id: newId(deps),
      connectionId: connection.id,
      trigger: 'request',
    });
    if (!existing) deps.kickDispatcher();
    return accepted(run, existing);
  },
});

function accepted(run: SyncRun, existing: boolean): EndpointResponse {
  return {
    status: 202,
    headers: { Location: runUrlOf(run), 'Retry-After': String(RUN_RETRY_AFTER_SECONDS) },
    body: { ...presentSyncRun(run), ...(existing ? { existing } : {}) },
  };
}

const listRuns = defineEndpoint({
  operationId: 'listBillingSyncs',
  method: 'get',
  path: `${CONNECTIONS_PATH}/{id}/runs`,
  tag: 'Billing',
  summary: 'Syncs of a connection, newest first',
  access: { scope: 'billing:read' },
  params: connectionParams,
  query: listPageQuery,
  responses: { 200: { description: 'A page of syncs', schema: listSyncRunsResponse } },
  problems: ['not_found'],
  async handle({ params, query, orgDb }) {
    const { id } = await getConnection(orgDb, params.id);
    const found = await listSyncRuns(orgDb, id, { limit: query.limit + 1, offset: query.offset });
    const runs = found.slice(0, query.limit).map(presentSyncRun);
    const more = { offset: query.offset, has_more: found.length > query.limit };
    return { status: 200, body: { runs, count: runs.length, ...more } };
  },
});

const readRun = defineEndpoint({
  operationId: 'getBillingSync',
  method: 'get',
  path: `${CONNECTIONS_PATH}/{id}/runs/{run_id}`,
  tag: 'Billing',
  summary: 'One sync and how far it is',
  access: { scope: 'billing:read' },
  params: syncRunParams,
  responses: { 200: { description: 'The sync', schema: syncRunSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    const connection = await getConnection(orgDb, params.id);
    const uuid = findUuid('run', params.run_id);
    const run = uuid === undefined ? undefined : await findSyncRun(orgDb, uuid);
    if (!run || run.connectionId !== connection.id)
      throw new DomainError('not_found', 'there is no sync with this id');
    return { status: 200, body: presentSyncRun(run) };
  },
});

export const connectionEndpoints: readonly Endpoint[] = [
  createConnection,
  listConnections,
  readConnection,
  updateConnection,
  deleteConnection,
  testConnection,
  startSync,
  listRuns,
  readRun,
];
