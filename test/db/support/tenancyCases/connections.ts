import { randomUUID } from 'node:crypto';
import * as apiCopies from '../../../../db/billing/apiCopies.js';
import * as billingConnections from '../../../../db/billing/billingConnections.js';
import { updateSyncOutcome } from '../../../../db/billing/billingConnections.js';
import * as fetchedPages from '../../../../db/billing/fetchedPages.js';
import { pruneFetchedPages } from '../../../../db/billing/fetchedPages.js';
import * as syncChunks from '../../../../db/billing/syncRuns.js';
import * as syncRuns from '../../../../db/billing/syncRuns.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import { findOpenRun, findRun, insertRun, listRuns, markRunStarted } from '../../../../db/runs/runTable.js';
import { publicId } from '../../../../domain/ids.js';
import { endConnection } from '../../../../usecases/billing/connections.js';
import { recordSyncOutcome } from '../../../../usecases/billing/connectionTurns.js';
import { getConnection } from '../../../../usecases/billing/providerAccounts.js';
import { openSettingsSync } from '../../../../usecases/billing/sync.js';
import { endRun } from '../../../../usecases/runs/endRun.js';
import type { Owned } from '../ownedThings.js';
import type { TenancyCase } from './tenancyCase.js';

const ALL = { fromDay: '2020-01-01', toDay: '2100-01-01' };
const PAGE = { limit: 100, offset: 0 };
const ONE_ACCOUNT = 'an account may be billed once on the whole instance, whichever organization has it';
const FAR_MICROS = 4_000_000_000_000_000n;

const reportOf = ({ connection, provider }: Owned) => ({
  connectionId: connection.id,
  provider,
  accountId: connection.accountId,
  feed: 'cost' as const,
  report: '',
});
const RESULT = { pages: 0, rows: 0, changed_days: [], settled_days: [], restated: [] };
const seal = () => ({ ciphertext: Buffer.alloc(64, 1), keyId: 'k1' });
/** A connection takes up a new sync once its open one has ended. */
const endOpen = (db: OrgDb, { openSyncId }: Owned) =>
  db.run(`update sync_runs set status = 'cancelled', finished_at = now() where org_id = $1 and id = $2`, [
    db.orgId,
    openSyncId,
  ]);

/** Functions of connections, their syncs, and fetched pages. */
export const CONNECTION_CASES: Record<string, TenancyCase> = {
  listCurrentCopies: (db, of) => apiCopies.listCurrentCopies(db, reportOf(of), ALL),
  listFetchedDays: (db, { connection }) =>
    apiCopies.listFetchedDays(
      db,
      { id: connection.id, scope: connection.scope, settings: connection.settings },
      { ...ALL, restatable: { of: 'day', days: 2 } },
    ),
  beginApiSource: (db, of) =>
    apiCopies.beginApiSource(
      db,
      { runId: of.openSyncId, ordinal: 0 },
      {
        ...reportOf(of),
        id: randomUUID(),
        name: of.marker,
        sha256: randomUUID().replaceAll('-', '').repeat(2),
        sizeBytes: 1,
        format: 'openai_pages',
        fetchedAtMicros: 0n,
      },
    ),
  replaceApiDays: (db, of) =>
    apiCopies.replaceApiDays(
      db,
      reportOf(of),
      { id: of.importId, scope: '', fetchedAtMicros: FAR_MICROS, rowCount: 1, amountPico: 1n },
      [
        {
          contentHash: 'd'.repeat(64),
          accountId: of.connection.accountId,
          day: '2026-03-11',
          feed: 'cost',
          report: '',
          chargeCategory: 'usage',
          rowCount: 1,
          amountPico: 1n,
          unconvertedRows: 0,
          isFinal: null,
        },
      ] as never,
      {},
    ),
  confirmApiDays: async (db, of) => {
    const days = (await apiCopies.listCurrentCopies(of.org.orgDb, reportOf(of), ALL)).map(({ day }) => day);
    return apiCopies.confirmApiDays(db, reportOf(of), { days, finalDays: days, atMicros: FAR_MICROS }, {});
  },
  pruneSupersededCopies: (db, { connection }) =>
    apiCopies.pruneSupersededCopies(db, connection.id, {
      restatable: { of: 'day', days: 9_999 },
      keptDays: 0,
    }),
  insertBillingConnection: {
    asSystem: ONE_ACCOUNT,
    run: (db, { marker }) =>
      billingConnections.insertBillingConnection(
        db,
        {
          id: randomUUID(),
          provider: 'openai',
          name: marker,
          accountId: `${marker}-new`,
          scope: '',
          settings: {},
          backfillFrom: '2026-01-01',
        },
        randomUUID(),
        seal,
      ),
  },
  updateBillingConnection: {
    asSystem: ONE_ACCOUNT,
    run: (db, { connection }) =>
      billingConnections.updateBillingConnection(db, connection, { name: 'taken over', seal }),
  },
  findBillingConnection: (db, { connection }) => billingConnections.findBillingConnection(db, connection.id),
  listBillingConnections: (db) => billingConnections.listBillingConnections(db, PAGE),
  endConnection: (db, { connection, keyId }) =>
    endConnection(db, connection, { caller: { keyId }, requestId: 'req_1' }),
  getConnection: (db, { connection }) => getConnection(db, publicId('con', connection.id)),
  endBillingConnection: (db, { connection }) => billingConnections.endBillingConnection(db, connection.id),
  recordSyncOutcome: (db, { connection }) =>
    recordSyncOutcome(db, connection.id, { error: null, revisedOn: null }),
  updateSyncOutcome: (db, { connection }) =>
    updateSyncOutcome(db, connection.id, { error: null, revisedOn: null }),
  recordNextSync: (db, { connection }) => billingConnections.recordNextSync(db, connection.id, 0n),
  findFirstAccount: (db, { provider }) => billingConnections.findFirstAccount(db, provider),
  recordFetchedPage: (db, { connection, openSyncId, marker }) =>
    fetchedPages.recordFetchedPage(db, {
      id: randomUUID(),
      connectionId: connection.id,
      runId: openSyncId,
      ordinal: 0,
      pageNo: 1,
      report: 'costs',
      requestKey: marker,
      requestPath: '/',
      sha256: 'e'.repeat(64),
      body: Buffer.from(marker),
      providerRequestId: null,
      fetchedAtMicros: 0n,
      nextCursor: null,
      buckets: [],
    }),
  listSyncPages: (db, { syncRunId }) => fetchedPages.listSyncPages(db, syncRunId, 0),
  findFetchedPage: (db, { pageId }) => fetchedPages.findFetchedPage(db, pageId),
  pruneFetchedPages: {
    asSystem: 'only maintenance removes what was fetched',
    run: (db, { connection }) => pruneFetchedPages(db.database, { orgId: db.orgId, id: connection.id }, -1),
  },
  'insertRun of billing_sync': async (db, of) => {
    await endOpen(db, of);
    return insertRun(db, syncRuns.SYNC_RUNS, {
      id: randomUUID(),
      connectionId: of.connection.id,
      trigger: 'request',
    });
  },
  openSettingsSync: (db, { connection }) => openSettingsSync(db, connection.id, 0n),
  'findOpenRun of billing_sync': (db, { connection }) =>
    findOpenRun(db, syncRuns.SYNC_RUNS, { connectionId: connection.id }),
  'findRun of billing_sync': (db, { syncRunId }) => findRun(db, syncRuns.SYNC_RUNS, syncRunId),
  'listRuns of billing_sync': (db, { connection }) =>
    listRuns(db, syncRuns.SYNC_RUNS, { connectionId: connection.id }, PAGE),
  'markRunStarted of billing_sync': (db, { openSyncId }) =>
    markRunStarted(db, 'billing_sync', openSyncId, 'planning'),
  noteSyncWaiting: async (db, { openSyncId }) => {
    await markRunStarted(db, 'billing_sync', openSyncId, 'planning');
    return syncRuns.noteSyncWaiting(db, openSyncId, { code: 'x', message: 'x', untilMicros: FAR_MICROS });
  },
  recordGapRunOfSync: (db, { openSyncId, openRunId }) =>
    syncRuns.recordGapRunOfSync(db, openSyncId, openRunId),
  noteSyncWaitsForGapRun: async (db, { openSyncId }) => {
    await markRunStarted(db, 'billing_sync', openSyncId, 'planning');
    await syncRuns.noteSyncWaitsForGapRun(db, openSyncId);
  },
  insertSyncChunks: async (db, { openSyncId, emptySyncId }) => {
    // A connection has one open sync at a time.
    await endRun(db, 'billing_sync', openSyncId, { status: 'failed' });
    await db.run(
      `update sync_runs set status = 'queued', finished_at = null where org_id = $1 and id = $2::uuid`,
      [db.orgId, emptySyncId],
    );
    const chunk = {
      report: 'costs',
      feed: 'cost',
      bucketWidth: '1d',
      startMicros: 0n,
      endMicros: 1n,
    } as const;
    return syncChunks.insertSyncChunks(db, emptySyncId, [chunk], null);
  },
  findSyncChunk: (db, { syncRunId }) => syncChunks.findSyncChunk(db, syncRunId, 0),
  listSyncChunks: (db, { syncRunId }) => syncChunks.listSyncChunks(db, syncRunId),
  finishSyncChunk: (db, { openSyncId }) => syncChunks.finishSyncChunk(db, openSyncId, 0, null, RESULT),
  failSyncChunk: (db, { openSyncId }) =>
    syncChunks.failSyncChunk(db, openSyncId, 0, { code: 'x', message: 'x' }),
  restartSyncChunk: (db, { openSyncId }) => syncChunks.restartSyncChunk(db, openSyncId, 0),
};
