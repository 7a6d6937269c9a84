import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OrgDb } from '../../../db/orgDb.js';
import * as apiCopies from '../../../db/queries/apiCopies.js';
import * as billCoverage from '../../../db/queries/billCoverage.js';
import * as billedDays from '../../../db/queries/billedDays.js';
import * as billingConnections from '../../../db/queries/billingConnections.js';
import * as billingRows from '../../../db/queries/billingRows.js';
import * as billingSources from '../../../db/queries/billingSources.js';
import * as fetchedPages from '../../../db/queries/fetchedPages.js';
import * as gapBuckets from '../../../db/queries/gapBuckets.js';
import * as gapExplorer from '../../../db/queries/gapExplorer.js';
import * as gapRuns from '../../../db/queries/gapRuns.js';
import * as observedSince from '../../../db/queries/observedSince.js';
import * as outbox from '../../../db/queries/outbox.js';
import * as runStates from '../../../db/queries/runStates.js';
import * as syncChunks from '../../../db/queries/syncChunks.js';
import * as syncRuns from '../../../db/queries/syncRuns.js';
import { findUuid } from '../../../domain/ids.js';
import type { TestApi, TestOrganization } from '../../support/api.js';
import { generateBills } from '../../support/billGenerator.js';
import { importBill, pollToEnd, runGaps } from '../../support/bills.js';
import { type TestEngine, until } from '../../support/engine.js';
import {
  aConnection,
  CONNECTIONS,
  type FetchingPlace,
  startFetchingPlace,
} from '../../support/fetchedBills.js';

const MODULES = {
  billCoverage,
  apiCopies,
  billedDays,
  billingConnections,
  billingRows,
  billingSources,
  fetchedPages,
  gapBuckets,
  gapExplorer,
  gapRuns,
  observedSince,
  outbox,
  runStates,
  syncChunks,
  syncRuns,
};
/** Pure, or maintenance across organizations: they take no organization's handle. */
const NOT_TENANT = [
  'countedSourcesSql',
  'errorColumns',
  'runTable',
  'claimOutboxMessages',
  'markOutboxDispatched',
  'retryOutboxMessage',
  'killOutboxMessage',
  'listStalledRuns',
  'pruneOutbox',
  'deleteOrphanedPages',
  'listScheduledConnections',
];

let api: TestApi;
let engine: TestEngine;
let place: FetchingPlace;
let owner: TestOrganization;
let stranger: TestOrganization;
let runId: string;
let importId: string;
let connectionId: string;
let syncRunId: string;
let pageId: string;
let day: string;

const ALL = { provider: null, fromDay: '2020-01-01', toDay: '2100-01-01' };
const SOURCE = {
  provider: 'openai' as const,
  filename: 'a',
  declaredFormat: null,
  declaredAccount: null,
  declaredFxRate: null,
  sha256: '',
  sizeBytes: 1,
};

const reportOf = () => ({
  connectionId,
  provider: 'openai' as const,
  accountId: 'org-loop',
  feed: 'cost' as const,
  report: '',
});

/** What each function gives an organization about the owner's rows: nothing, or no change. */
const CASES: Record<string, (db: OrgDb) => Promise<unknown>> = {
  listCountedCopies: (db) => billCoverage.listCountedCopies(db, ALL),
  listBilledAccountNames: (db) => billCoverage.listBilledAccountNames(db, ALL),
  findBilledSpan: (db) => billCoverage.findBilledSpan(db, 'openai'),
  listBilledCells: (db) => billedDays.listBilledCells(db, { provider: 'openai', day }),
  listUsageCells: (db) => billedDays.listUsageCells(db, { provider: 'openai', day }),
  listBilledAccounts: (db) => billedDays.listBilledAccounts(db, { provider: 'openai', day }),
  listBilledProviderDays: (db) => billedDays.listBilledProviderDays(db, ALL),
  listSourceDifferences: (db) => billedDays.listSourceDifferences(db, { ...ALL, limit: 10 }),
  listBilledTotals: (db) => billedDays.listBilledTotals(db, ALL),
  insertBillingRows: (db) =>
    billingRows.insertBillingRows(db, { id: importId, provider: 'openai', firstRowNo: 1 }, []),
  deleteBillingRows: (db) => billingRows.deleteBillingRows(db, importId),
  insertBillingDays: (db) =>
    billingRows.insertBillingDays(db, { id: importId, provider: 'openai', rank: 1, fetchedAtMicros: 0n }, []),
  insertBillingPage: async () => undefined,
  findBillingPage: (db) => billingSources.findBillingPage(db, importId, 0),
  deleteBillingPages: (db) => billingSources.deleteBillingPages(db, importId),
  insertBillingSource: async () => undefined,
  findSameBillingSource: async (db) =>
    billingSources.findSameBillingSource(db, {
      ...SOURCE,
      id: importId,
      sha256: (await billingSources.findBillingSource(owner.orgDb, importId))?.sha256 ?? '',
    }),
  findBillingSource: (db) => billingSources.findBillingSource(db, importId),
  listBillingSources: (db) =>
    billingSources.listBillingSources(db, { provider: undefined, limit: 10, offset: 0 }),
  markBillingSourceRunning: (db) => billingSources.markBillingSourceRunning(db, importId),
  recordBillingProgress: (db) => billingSources.recordBillingProgress(db, importId, 1),
  finishBillingSource: (db) =>
    billingSources.finishBillingSource(db, importId, {
      format: 'plain_csv',
      sourceRank: 1,
      accountId: null,
      rowCount: 0,
      amountPico: 0n,
      periodStart: null,
      periodEnd: null,
      unparsed: [],
      restatedBuckets: 0,
    }),
  failBillingSource: (db) => billingSources.failBillingSource(db, importId, { code: 'x', message: 'x' }),
  setBillingSourceAccount: (db) => billingSources.setBillingSourceAccount(db, importId, 'stolen'),
  listKnownAccounts: (db) => billingSources.listKnownAccounts(db, 'openai'),
  recordUnitResult: (db) =>
    gapBuckets.recordUnitResult(db, runId, {
      ordinal: 0,
      provider: 'openai',
      day,
      buckets: [],
      rateMismatches: [],
      countedSources: {},
    }),
  listFinishedUnits: (db) => gapBuckets.listFinishedUnits(db, runId),
  publishGapRunDays: (db) => gapBuckets.publishGapRunDays(db, runId),
  countRunBuckets: (db) =>
    gapBuckets.countRunBuckets(db, runId).then(({ total }) => (total === 0 ? undefined : total)),
  listPublishedBuckets: (db) =>
    gapExplorer.listPublishedBuckets(
      db,
      { ...ALL, hourly: false },
      { flaggedOnly: false, unmatchedOnly: false },
    ),
  countPublishedBuckets: (db) =>
    gapExplorer
      .countPublishedBuckets(db, { ...ALL, hourly: true })
      .then(({ total }) => (total === 0 ? undefined : total)),
  sumMonth: (db) =>
    gapExplorer
      .sumMonth(db, '2020-01-01', '2100-01-01')
      .then(({ billedPico }) => (billedPico === 0n ? undefined : billedPico)),
  listComparedBuckets: (db) => gapExplorer.listComparedBuckets(db, ALL),
  findLastBilledMonth: (db) => gapExplorer.findLastBilledMonth(db, '2100-01-01'),
  insertGapRun: async () => undefined,
  findOpenGapRun: (db) => gapRuns.findOpenGapRun(db, '90d', null),
  findGapRun: (db) => gapRuns.findGapRun(db, runId),
  listGapRuns: (db) =>
    gapRuns.listGapRuns(db, { provider: undefined, status: undefined, limit: 10, offset: 0 }),
  takeGapRunTurn: (db) =>
    gapRuns.takeGapRunTurn(db, runId, 2).then((turn) => (turn === 'over' ? undefined : turn)),
  insertGapRunUnits: (db) => gapRuns.insertGapRunUnits(db, runId, [], {}),
  findGapRunUnit: (db) => gapRuns.findGapRunUnit(db, runId, 0),
  failGapRunUnit: (db) => gapRuns.failGapRunUnit(db, runId, 0, 'x'),
  countGapRunUnits: (db) => gapRuns.countGapRunUnits(db, runId),
  listObservedSince: (db) =>
    observedSince.listObservedSince(db, 'openai').then(({ size }) => (size === 0 ? undefined : size)),
  insertOutboxMessage: async () => undefined,
  listCurrentCopies: (db) => apiCopies.listCurrentCopies(db, reportOf(), ALL),
  listFetchedDays: (db) =>
    apiCopies.listFetchedDays(db, { id: connectionId, scope: '' }, { ...ALL, provisionalDays: 2 }),
  beginApiSource: (db) =>
    apiCopies.beginApiSource(
      db,
      { runId: syncRunId, ordinal: 0 },
      { ...SOURCE, ...reportOf(), id: randomUUID(), name: 'a', format: 'openai_pages', fetchedAtMicros: 0n },
    ),
  replaceApiDays: (db) =>
    apiCopies.replaceApiDays(
      db,
      reportOf(),
      { id: importId, scope: '', fetchedAtMicros: 0n, rowCount: 0, amountPico: 0n },
      [],
    ),
  confirmApiDays: (db) => apiCopies.confirmApiDays(db, reportOf(), [day], 4_000_000_000_000_000n),
  pruneSupersededCopies: (db) =>
    apiCopies.pruneSupersededCopies(db, connectionId, { provisionalDays: 9_999, keptDays: 0 }),
  findBillingConnection: (db) => billingConnections.findBillingConnection(db, connectionId),
  listBillingConnections: (db) => billingConnections.listBillingConnections(db, { limit: 10, offset: 0 }),
  insertBillingConnection: async () => undefined,
  updateBillingConnection: async (db) => {
    const connection = await billingConnections.findBillingConnection(owner.orgDb, connectionId);
    return connection && billingConnections.updateBillingConnection(db, connection, { name: 'stolen' });
  },
  endBillingConnection: (db) => billingConnections.endBillingConnection(db, connectionId),
  recordSyncOutcome: (db) =>
    billingConnections.recordSyncOutcome(db, connectionId, { error: null, revisedOn: null }),
  recordNextSync: (db) => billingConnections.recordNextSync(db, connectionId, 0n),
  findFirstAccount: (db) => billingConnections.findFirstAccount(db, 'openai'),
  recordFetchedPage: async () => undefined,
  listSyncPages: (db) => fetchedPages.listSyncPages(db, syncRunId, 0),
  findFetchedPage: (db) => fetchedPages.findFetchedPage(db, pageId),
  insertSyncRun: (db) => syncRuns.insertSyncRun(db, { id: randomUUID(), connectionId, trigger: 'request' }),
  findOpenSyncRun: (db) => syncRuns.findOpenSyncRun(db, connectionId),
  findSyncRun: (db) => syncRuns.findSyncRun(db, syncRunId),
  listSyncRuns: (db) => syncRuns.listSyncRuns(db, connectionId, { limit: 10, offset: 0 }),
  markSyncRunning: (db) => syncRuns.markSyncRunning(db, syncRunId),
  insertSyncChunks: (db) => syncChunks.insertSyncChunks(db, syncRunId, [], null),
  findSyncChunk: (db) => syncChunks.findSyncChunk(db, syncRunId, 0),
  listSyncChunks: (db) => syncChunks.listSyncChunks(db, syncRunId),
  finishSyncChunk: (db) =>
    syncChunks.finishSyncChunk(db, syncRunId, 0, null, {
      pages: 0,
      rows: 0,
      changed_days: [],
      settled_days: [],
      restated: [],
    }),
  failSyncChunk: (db) => syncChunks.failSyncChunk(db, syncRunId, 0, { code: 'x', message: 'x' }),
  restartSyncChunk: (db) => syncChunks.restartSyncChunk(db, syncRunId, 0),
  noteSyncWaiting: (db) => syncRuns.noteSyncWaiting(db, syncRunId, null),
  noteRunWaitingForEngine: (db) => runStates.noteRunWaitingForEngine(db, 'gap_run', runId),
  requestRunCancel: (db) => runStates.requestRunCancel(db, 'gap_run', runId),
  endRun: async (db) =>
    (await runStates.endRun(db, 'gap_run', runId, { status: 'failed' })) ||
    runStates.endRun(db, 'billing_sync', syncRunId, { status: 'failed' }),
  requeueRun: async (db) =>
    (await runStates.requeueRun(db, 'gap_run', runId)) ||
    (await runStates.requeueRun(db, 'billing_import', importId)) ||
    runStates.requeueRun(db, 'billing_sync', syncRunId),
  recordGapRunOfSync: (db) => syncRuns.recordGapRunOfSync(db, syncRunId, randomUUID()),
};

/** Everything that the owner has, as text. */
async function ownersRows(): Promise<string> {
  const texts = [];
  for (const table of [
    'billing_connections',
    'sync_runs',
    'sync_chunks',
    'sync_pages',
    'billing_fetched_pages',
    'billing_sources',
    'billing_pages',
    'billing_rows',
    'billing_days',
    'gap_runs',
    'gap_run_units',
    'gap_buckets',
    'gap_published',
    'outbox',
  ]) {
    const { rows } = await api.database.superuser.query(
      `select md5(coalesce(string_agg(t::text, '|' order by t::text), '')) as digest, count(*)::int as count from ${table} t where org_id = $1`,
      [owner.orgId],
    );
    texts.push(`${table} ${rows[0].count} ${rows[0].digest}`);
  }
  return texts.join('\n');
}

beforeAll(async () => {
  place = await startFetchingPlace();
  ({ api, engine } = place);
  await engine.startWorker();
  [owner, stranger] = [await api.addOrganization(), await api.addOrganization()];
  const bills = generateBills({
    seed: 5,
    lastDay: new Date(Date.now() - 40 * 86_400_000).toISOString().slice(0, 10),
    days: 2,
    callsPerHour: 1,
  });
  day = bills.days[0] ?? '';
  importId =
    findUuid(
      'imp',
      (await importBill(api, bills.files.openaiCosts, { provider: 'openai' }, owner.adminKey)).import_id,
    ) ?? '';
  await importBill(api, bills.files.openaiUsage, { provider: 'openai' }, owner.adminKey);
  const { body: connection } = await api.post(CONNECTIONS, aConnection('openai'), owner.adminKey);
  const synced = await until(
    'the sync and the gap run that follows it',
    () => api.get(connection.sync.status_url, owner.adminKey),
    ({ body }) => Boolean(body.result?.gap_run_id),
    60_000,
  );
  const runs = '/api/v1/reconciliation/gap-explorer/runs';
  await pollToEnd(api, `${runs}/${synced.body.result.gap_run_id}`, 60_000, owner.adminKey);
  connectionId = findUuid('con', connection.id) ?? '';
  syncRunId = findUuid('run', connection.sync.id) ?? '';
  pageId = (await fetchedPages.listSyncPages(owner.orgDb, syncRunId, 0))[0]?.pageId ?? '';
  runId = findUuid('run', (await runGaps(api, '?period=90d', undefined, owner.adminKey)).run_id) ?? '';
});

afterAll(() => place?.close());

describe('another organization', () => {
  it('has a case for every query about bills and runs', () => {
    const functions = Object.values(MODULES).flatMap((module) =>
      Object.entries(module).flatMap(([name, value]) => (typeof value === 'function' ? [name] : [])),
    );
    expect(functions.filter((name) => !NOT_TENANT.includes(name)).sort()).toEqual(Object.keys(CASES).sort());
  });

  it.each(Object.keys(CASES))('gets and changes nothing by %s', async (name) => {
    const before = await ownersRows();
    const outcome = await CASES[name]?.(stranger.orgDb);
    expect([undefined, false, 0, []]).toContainEqual(outcome);
    expect(await ownersRows()).toBe(before);
  });

  it('while the owner sees its own', async () => {
    for (const name of [
      'listBilledCells',
      'listUsageCells',
      'listBilledAccounts',
      'listBilledTotals',
      'listKnownAccounts',
      'listPublishedBuckets',
      'listFinishedUnits',
      'findGapRun',
      'findBillingSource',
      'sumMonth',
      'listCountedCopies',
      'listBilledAccountNames',
      'findBilledSpan',
      'listComparedBuckets',
      'findBillingConnection',
      'listCurrentCopies',
      'listFetchedDays',
      'findSyncChunk',
      'listSyncPages',
      'findFetchedPage',
      'findFirstAccount',
    ]) {
      const outcome = await CASES[name]?.(owner.orgDb);
      expect([undefined, false, 0, []], name).not.toContainEqual(outcome);
    }
  });
});
