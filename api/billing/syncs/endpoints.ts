import type { NewSyncRun, SyncRun } from '../../../db/billing/syncRuns.js';
import { openCredentials } from '../../../domain/billing/credentials.js';
import { publicId } from '../../../domain/ids.js';
import { syncOpening } from '../../../usecases/billing/openSync.js';
import { getConnection } from '../../../usecases/billing/providerAccounts.js';
import { runTableOf } from '../../../usecases/runs/runTables.js';
import type { Endpoint } from '../../endpoint.js';
import {
  getRunEndpoint,
  listRunsEndpoint,
  type RunResource,
  startRunEndpoint,
} from '../../runs/runEndpoints.js';
import {
  CONNECTIONS_PATH,
  connectionParams,
  listSyncRunsQuery,
  listSyncRunsResponse,
  presentSyncRun,
  syncRunSchema,
} from './wire.js';

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
