import {
  type BillingConnection,
  type ConnectionChanges,
  endBillingConnection,
  findBillingConnection,
  insertBillingConnection,
  listBillingConnections,
  updateBillingConnection,
} from '../../../db/billing/billingConnections.js';
import { SYNC_RUNS } from '../../../db/billing/syncRuns.js';
import type { OrgDb } from '../../../db/orgDb.js';
import { findRun } from '../../../db/runs/runTable.js';
import { hasOtherRates } from '../../../domain/billing/connectionScope.js';
import { BACKFILL_DAYS, scopeText } from '../../../domain/billing/connections.js';
import { openCredentials, sealCredentials } from '../../../domain/billing/credentials.js';
import { DomainError } from '../../../domain/errors.js';
import { newUuid, publicId } from '../../../domain/ids.js';
import { lastDays } from '../../../domain/period.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { openSettingsSync } from '../../../usecases/billing/openSync.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { pageOf } from '../../paging.js';
import {
  askProvider,
  changedSettings,
  checkCredentials,
  checkSameAccount,
  checkScope,
  connectorOf,
  getConnection,
  identifyAccount,
} from '../billingProviders.js';
import { CONNECTIONS_PATH, connectionParams } from '../syncs/wire.js';
import {
  connectionSchema,
  createConnectionBody,
  listConnectionsQuery,
  listConnectionsResponse,
  presentConnection,
  settingsOf,
  testResponse,
  updateConnectionBody,
} from './wire.js';

/** What may go wrong at a provider while a request waits for it. */
const PROVIDER_PROBLEMS = [
  'provider_unavailable',
  'provider_rate_limited',
  'provider_paging_changed',
  'provider_answer_unreadable',
] as const;

async function getStored(inside: OrgDb, id: string): Promise<BillingConnection> {
  const connection = await findBillingConnection(inside, id);
  if (!connection) throw new DomainError('not_found', 'the connection was ended just now');
  return connection;
}

const subjectOf = (id: string) => ({ type: 'connection', id: publicId('con', id) });

const createConnection = defineEndpoint({
  operationId: 'createBillingConnection',
  method: 'post',
  path: CONNECTIONS_PATH,
  tag: 'Billing',
  summary: 'Connect a provider’s bills',
  description:
    'The credentials are tried and the account is asked of the provider; then 90 days are fetched behind the scenes (`sync`), and from then on every hour. Credentials are sealed and never shown again.',
  access: { scope: 'billing:write', workspace: 'refused' },
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
    const connector = connectorOf(deps, body.provider);
    const given = settingsOf(body.settings);
    checkCredentials(connector, body.credentials);
    checkScope(connector, given);
    const account = await identifyAccount(connector, body.credentials, given, signal);
    const id = newUuid(deps.nowMicros());
    const runId = newUuid(deps.nowMicros());
    const settings = { ...given, account };
    const backfillFrom = lastDays(BACKFILL_DAYS, deps.nowMicros()).fromDay;
    const wanted = { id, provider: connector.provider, name: body.name ?? connector.provider, settings };
    return settle(async (inside) => {
      await insertBillingConnection(
        inside,
        { ...wanted, accountId: account, scope: scopeText(settings), backfillFrom },
        runId,
        () => sealCredentials(deps.secretKeys, inside.orgId, id, body.credentials),
      );
      afterCommit(() => deps.kickDispatcher());
      const presented = presentConnection(
        await getStored(inside, id),
        await findRun(inside, SYNC_RUNS, runId),
      );
      const details = { name: wanted.name, provider: wanted.provider, account };
      await recordAction(inside, { caller, requestId }, 'connection.created', subjectOf(id), details);
      return { status: 201, headers: { Location: `${CONNECTIONS_PATH}/${presented.id}` }, body: presented };
    });
  },
});

const listConnections = defineEndpoint({
  operationId: 'listBillingConnections',
  method: 'get',
  path: CONNECTIONS_PATH,
  tag: 'Billing',
  summary: 'Connections, newest first',
  access: { scope: 'billing:read', workspace: 'refused' },
  query: listConnectionsQuery,
  responses: { 200: { description: 'A page of connections', schema: listConnectionsResponse } },
  problems: [],
  async handle({ query, orgDb }) {
    const found = await listBillingConnections(orgDb, { limit: query.limit + 1, offset: query.offset });
    const { shown, page } = pageOf(found, query);
    const connections = shown.map((connection) => presentConnection(connection));
    return { status: 200, body: { connections, ...page } };
  },
});

const readConnection = defineEndpoint({
  operationId: 'getBillingConnection',
  method: 'get',
  path: `${CONNECTIONS_PATH}/{id}`,
  tag: 'Billing',
  summary: 'One connection and how it does',
  access: { scope: 'billing:read', workspace: 'refused' },
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
  access: { scope: 'billing:write', workspace: 'refused' },
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
    const isOtherScope = settings !== undefined && scopeText(settings) !== connection.scope;
    const isOtherRate = settings !== undefined && hasOtherRates(settings, connection.settings);
    const needsSync = (isOtherScope || isOtherRate || credentials !== undefined) && body.paused !== true;
    return settle(async (inside) => {
      if (!(await updateBillingConnection(inside, connection, changes)))
        throw new DomainError('not_found', 'the connection was ended just now');
      const sync = needsSync ? await openSettingsSync(inside, connection.id, deps.nowMicros()) : undefined;
      afterCommit(() => deps.kickDispatcher());
      const presented = presentConnection(await getConnection(inside, params.id), sync);
      // Which fields, and never what the credentials are.
      const details = { changed: Object.keys(body).sort(), name: body.name, paused: body.paused };
      await recordAction(
        inside,
        { caller, requestId },
        'connection.changed',
        subjectOf(connection.id),
        details,
      );
      return { status: 200, body: presented };
    });
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
  access: { scope: 'billing:write', workspace: 'refused' },
  params: connectionParams,
  responses: { 204: { description: 'Ended' } },
  problems: ['not_found'],
  async handle({ params, orgDb, caller, requestId }, deps) {
    const { id, name } = await getConnection(orgDb, params.id);
    await orgDb.transaction(async (inside) => {
      if (!(await endBillingConnection(inside, id)))
        throw new DomainError('not_found', 'there is no billing connection with this id');
      await recordAction(inside, { caller, requestId }, 'connection.ended', subjectOf(id), { name });
    });
    deps.kickDispatcher();
    return { status: 204 };
  },
});

const testConnection = defineEndpoint({
  operationId: 'testBillingConnection',
  method: 'post',
  path: `${CONNECTIONS_PATH}/{id}/test`,
  idempotency: 'afterwards',
  tag: 'Billing',
  summary: 'Try the credentials',
  description: 'One check for each permission that is needed; a failed one says where it is granted.',
  access: { scope: 'billing:write', workspace: 'refused' },
  params: connectionParams,
  responses: { 200: { description: 'What was found', schema: testResponse } },
  problems: ['not_found', 'credentials_missing', 'secret_key_missing', ...PROVIDER_PROBLEMS],
  async handle({ params, orgDb, signal, caller, requestId }, deps) {
    const connection = await getConnection(orgDb, params.id);
    const connector = connectorOf(deps, connection.provider);
    const credentials = openCredentials(deps.secretKeys, orgDb.orgId, connection);
    const checks = await askProvider(connector, signal, (limited) =>
      connector.test({ credentials, settings: connection.settings, signal: limited }),
    );
    const shown = checks.map(({ name, ok, detail }) => ({ name, ok, detail }));
    const ok = checks.every((check) => check.ok);
    await recordAction(orgDb, { caller, requestId }, 'connection.tested', subjectOf(connection.id), { ok });
    return { status: 200, body: { ok, checks: shown } };
  },
});

export const connectionEndpoints: readonly Endpoint[] = [
  createConnection,
  listConnections,
  readConnection,
  updateConnection,
  deleteConnection,
  testConnection,
];
