import { findSyncRun, listSyncRuns } from '../../../db/billing/syncRuns.js';
import { openCredentials } from '../../../domain/billing/credentials.js';
import { DomainError } from '../../../domain/errors.js';
import { findUuid, newUuid, publicId } from '../../../domain/ids.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { openSync } from '../../../usecases/billing/openSync.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { pageOf } from '../../paging.js';
import { acceptedResponse, acceptedRun } from '../../runs/runWire.js';
import { getConnection } from '../billingProviders.js';
import {
  CONNECTIONS_PATH,
  connectionParams,
  listSyncRunsQuery,
  listSyncRunsResponse,
  presentSyncRun,
  syncRunParams,
  syncRunSchema,
} from './wire.js';

const startSync = defineEndpoint({
  operationId: 'startBillingSync',
  method: 'post',
  path: `${CONNECTIONS_PATH}/{id}/sync`,
  tag: 'Billing',
  summary: 'Fetch the bills now',
  description:
    'Asynchronous. While a sync of the connection is open, that one is the answer (existing: true).',
  access: { scope: 'billing:write', workspace: 'refused' },
  limit: 'billing_sync',
  params: connectionParams,
  responses: acceptedResponse(syncRunSchema),
  problems: ['not_found', 'credentials_missing'],
  async handle({ params, orgDb, runLimit, afterCommit, caller, requestId }, deps) {
    const connection = await getConnection(orgDb, params.id);
    if (connection.ciphertext === null) openCredentials(deps.secretKeys, orgDb.orgId, connection);
    const { run, existing } = await openSync(
      orgDb,
      { id: newUuid(deps.nowMicros()), connectionId: connection.id, trigger: 'request' },
      (inside, { id }) =>
        recordAction(
          inside,
          { caller, requestId },
          'connection.sync_started',
          { type: 'connection', id: publicId('con', connection.id) },
          { run_id: publicId('run', id) },
        ),
      runLimit,
    );
    if (!existing) afterCommit(() => deps.kickDispatcher());
    return acceptedRun(presentSyncRun(run), existing);
  },
});

const listRuns = defineEndpoint({
  operationId: 'listBillingSyncs',
  method: 'get',
  path: `${CONNECTIONS_PATH}/{id}/runs`,
  tag: 'Billing',
  summary: 'Syncs of a connection, newest first',
  access: { scope: 'billing:read', workspace: 'refused' },
  params: connectionParams,
  query: listSyncRunsQuery,
  responses: { 200: { description: 'A page of syncs', schema: listSyncRunsResponse } },
  problems: ['not_found'],
  async handle({ params, query, orgDb }) {
    const { id } = await getConnection(orgDb, params.id);
    const found = await listSyncRuns(orgDb, id, { limit: query.limit + 1, offset: query.offset });
    const { shown, page } = pageOf(found, query);
    return { status: 200, body: { runs: shown.map(presentSyncRun), ...page } };
  },
});

const readRun = defineEndpoint({
  operationId: 'getBillingSync',
  method: 'get',
  path: `${CONNECTIONS_PATH}/{id}/runs/{run_id}`,
  tag: 'Billing',
  summary: 'One sync and how far it is',
  access: { scope: 'billing:read', workspace: 'refused' },
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

export const syncEndpoints: readonly Endpoint[] = [startSync, listRuns, readRun];
