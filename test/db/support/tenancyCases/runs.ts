import { randomUUID } from 'node:crypto';
import { deleteUnpublishedUnits } from '../../../../db/installation/oldRows.js';
import * as repriceRuns from '../../../../db/pricing/repriceRuns.js';
import { REPRICE_RUNS, repriceBatch } from '../../../../db/pricing/repriceRuns.js';
import * as gapBuckets from '../../../../db/reconciliation/gapBuckets.js';
import * as gapExplorer from '../../../../db/reconciliation/gapExplorer.js';
import * as gapRunUnits from '../../../../db/reconciliation/gapRuns.js';
import {
  GAP_RUNS,
  lockGapRunTurn,
  type NewGapRun,
  publishGapRunEnd,
  recordGapRunTurn,
} from '../../../../db/reconciliation/gapRuns.js';
import { insertOutboxMessage } from '../../../../db/runs/outbox.js';
import * as runStates from '../../../../db/runs/runTable.js';
import { findOpenRun, findRun, insertRun, listRuns, lockRun } from '../../../../db/runs/runTable.js';
import { publicId } from '../../../../domain/ids.js';
import { takeGapRunTurn } from '../../../../usecases/reconciliation/gapRunWork.js';
import { cancelRun, endRun } from '../../../../usecases/runs/endRun.js';
import {
  assertRoomForRun,
  getRun,
  insertWithinLimit,
  openRun,
  queueRun,
} from '../../../../usecases/runs/openRun.js';
import { MARCH } from '../ownedBills.js';
import type { TenancyCase } from './tenancyCase.js';

const ALL = { provider: null, fromDay: '2020-01-01', toDay: '2100-01-01' };
const PAGE = { limit: 100, offset: 0 };
const WINDOW = { windowStartMicros: MARCH.fromMicros, windowEndMicros: MARCH.toMicros };
const aGapRun = (): NewGapRun => ({
  id: randomUUID(),
  period: '30d',
  provider: 'bedrock',
  ...WINDOW,
});

/** Functions of gap runs and their findings, re-pricings, and the outbox. */
export const RUN_CASES: Record<string, TenancyCase> = {
  'insertRun of gap_run': (db) => insertRun(db, GAP_RUNS, aGapRun()),
  queueRun: (db) => queueRun(db, GAP_RUNS, aGapRun()),
  openRun: (db, { provider }) =>
    openRun(
      db,
      GAP_RUNS,
      { wanted: { ...aGapRun(), period: '7d', provider }, open: { period: '7d', provider } },
      { nowMicros: MARCH.fromMicros },
    ),
  'findOpenRun of gap_run': (db, { provider }) => findOpenRun(db, GAP_RUNS, { period: '7d', provider }),
  'findRun of gap_run': (db, { runId }) => findRun(db, GAP_RUNS, runId),
  getRun: (db, { runId }) => getRun(db, GAP_RUNS, publicId('run', runId)),
  'listRuns of gap_run': (db) => listRuns(db, GAP_RUNS, {}, PAGE),
  takeGapRunTurn: (db, { openRunId }) => takeGapRunTurn(db, openRunId, 2),
  lockGapRunTurn: (db, { openRunId }) => db.transaction((inside) => lockGapRunTurn(inside, openRunId)),
  recordGapRunTurn: (db, { openRunId }) => recordGapRunTurn(db, openRunId, true),
  insertGapRunUnits: (db, { openRunId, provider }) =>
    gapRunUnits.insertGapRunUnits(db, openRunId, {
      units: [{ provider, day: '2026-03-11', inputMark: 'mark' }],
      unchangedUnits: 0,
      observedSince: {},
      dayOffsets: {},
    }),
  findGapRunPlan: (db, { openRunId }) => gapRunUnits.findGapRunPlan(db, openRunId),
  findGapRunUnit: (db, { openRunId }) => gapRunUnits.findGapRunUnit(db, openRunId, 0),
  failGapRunUnit: (db, { openRunId }) => gapRunUnits.failGapRunUnit(db, openRunId, 0, 'x'),
  countGapRunUnits: async (db, { openRunId }) => {
    await db.run(`update gap_run_units set status = 'failed' where org_id = $1 and run_id = $2`, [
      db.orgId,
      openRunId,
    ]);
    await gapRunUnits.countGapRunUnits(db, openRunId);
  },
  deleteUnpublishedUnits: async (db, { openRunId }) => {
    await endRun(db, 'gap_run', openRunId, { status: 'cancelled' });
    return deleteUnpublishedUnits(db, { unpublishedDays: -1, runDays: 0, sliceDays: 10 });
  },
  recordUnitResult: (db, { openRunId, provider }) =>
    gapBuckets.recordUnitResult(db, openRunId, {
      ordinal: 0,
      provider,
      day: '2026-03-10',
      buckets: [],
      rateMismatches: [],
      countedSources: {},
    }),
  listFinishedUnits: (db, { runId }) => gapBuckets.listFinishedUnits(db, runId),
  publishGapRunDays: async (db, { runId }) => {
    await db.run('delete from gap_published where org_id = $1', [db.orgId]);
    await gapBuckets.publishGapRunDays(db, runId);
    return db.rows('select * from gap_published where org_id = $1', [db.orgId]);
  },
  listPublishedMismatches: (db) => gapBuckets.listPublishedMismatches(db, ALL),
  listPublishedBuckets: (db) =>
    gapExplorer.listPublishedBuckets(
      db,
      { ...ALL, hourly: false },
      { flaggedOnly: false, unmatchedOnly: false },
      { ...PAGE, after: undefined },
    ),
  countPublishedBuckets: (db) => gapExplorer.countPublishedBuckets(db, { ...ALL, hourly: true }),
  sumMonth: (db) => gapExplorer.sumMonth(db, '2020-01-01', '2100-01-01'),
  listComparedBuckets: (db) => gapExplorer.listComparedBuckets(db, ALL),
  findLastBilledMonth: (db) => gapExplorer.findLastBilledMonth(db, '2100-01-01'),
  'insertRun of reprice': async (db, { openRepriceId }) => {
    await endRun(db, 'reprice', openRepriceId, { status: 'cancelled' });
    return insertRun(db, REPRICE_RUNS, {
      id: randomUUID(),
      ...WINDOW,
      provider: null,
      model: 'new',
      requestedBy: 'new',
    });
  },
  'findOpenRun of reprice': (db) => findOpenRun(db, REPRICE_RUNS, {}),
  'findRun of reprice': (db, { repriceId }) => findRun(db, REPRICE_RUNS, repriceId),
  lockRun: (db, { repriceId }) => lockRun(db, REPRICE_RUNS, repriceId),
  'listRuns of reprice': (db) => listRuns(db, REPRICE_RUNS, {}, PAGE),
  listRepriceFindings: (db, { repriceId }) => repriceRuns.listRepriceFindings(db, [repriceId], 10),
  startRepriceRun: (db, { openRepriceId }) => repriceRuns.startRepriceRun(db, openRepriceId, 'another'),
  repriceBatch: (db, { openRepriceId, prices }) =>
    db.transaction((inside) => repriceBatch(inside, openRepriceId, prices)),
  moveRepriceCursor: (db, { openRepriceId, repricedId }) =>
    repriceRuns.moveRepriceCursor(db, openRepriceId, { micros: 1n, id: repricedId }),
  listFormerPrices: (db, { repricedId }) => repriceRuns.listFormerPrices(db, repricedId),
  noteRunWaitingForEngine: (db, { openSyncId }) =>
    runStates.noteRunWaitingForEngine(db, 'billing_sync', openSyncId),
  requeueRun: (db, { openRunId }) => runStates.requeueRun(db, 'gap_run', openRunId),
  listOpenRuns: (db) => runStates.listOpenRuns(db, 'gap_run', 10),
  assertRoomForRun: (db) => assertRoomForRun(db, { kind: 'gap_run', max: 1 }),
  insertWithinLimit: (db) =>
    db.transaction((inside) =>
      insertWithinLimit(inside, { kind: 'gap_run', max: 5 }, () => insertRun(inside, GAP_RUNS, aGapRun())),
    ),
  publishGapRunEnd: (db, { openRunId }) =>
    db.transaction(async (inside) => {
      await inside.run(
        `update gap_runs set status = 'failed', finished_at = now() where org_id = $1 and id = $2`,
        [inside.orgId, openRunId],
      );
      await publishGapRunEnd(inside, openRunId);
    }),
  recordRunEnd: (db, { openRunId }) => runStates.recordRunEnd(db, 'gap_run', openRunId, { status: 'failed' }),
  endRun: (db, { openRunId }) => endRun(db, 'gap_run', openRunId, { status: 'failed' }),
  recordCancelRequest: (db, { openRunId }) => runStates.recordCancelRequest(db, 'gap_run', openRunId),
  cancelRun: (db, { openRunId }) => cancelRun(db, GAP_RUNS, openRunId, async () => undefined),
  insertOutboxMessage: (db, { openRunId }) => insertOutboxMessage(db, 'gap_run.start', openRunId),
};
