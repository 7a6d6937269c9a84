import { randomUUID } from 'node:crypto';
import { repriceBatch } from '../../../../db/pricing/repriceBatch.js';
import * as repriceRuns from '../../../../db/pricing/repriceRuns.js';
import * as gapBuckets from '../../../../db/reconciliation/gapBuckets.js';
import * as gapExplorer from '../../../../db/reconciliation/gapExplorer.js';
import { publishGapRunEnd } from '../../../../db/reconciliation/gapRunMessages.js';
import * as gapRuns from '../../../../db/reconciliation/gapRuns.js';
import * as gapRunUnits from '../../../../db/reconciliation/gapRunUnits.js';
import { listOpenRuns } from '../../../../db/runs/openRuns.js';
import { insertOutboxMessage } from '../../../../db/runs/outbox.js';
import * as runStates from '../../../../db/runs/runStates.js';
import { openRun } from '../../../../usecases/runs/openRun.js';
import { assertRoomForRun, insertWithinLimit } from '../../../../usecases/runs/openRunLimit.js';
import { MARCH } from '../ownedBills.js';
import type { TenancyCase } from './tenancyCase.js';

const ALL = { provider: null, fromDay: '2020-01-01', toDay: '2100-01-01' };
const PAGE = { limit: 100, offset: 0 };
const WINDOW = { windowStartMicros: MARCH.fromMicros, windowEndMicros: MARCH.toMicros };
const aGapRun = (): gapRuns.NewGapRun => ({
  id: randomUUID(),
  period: '30d',
  provider: 'bedrock',
  ...WINDOW,
});

/** Gap runs and what they found, re-pricings, and what starts them. */
export const RUN_CASES: Record<string, TenancyCase> = {
  insertGapRun: (db) => gapRuns.insertGapRun(db, aGapRun()),
  openRun: (db, { provider }) =>
    openRun(db, {
      insert: (inside) => gapRuns.insertGapRun(inside, { ...aGapRun(), period: '7d', provider }),
      message: 'gap_run.start',
      findOpen: () => gapRuns.findOpenGapRun(db, '7d', provider),
    }),
  findOpenGapRun: (db, { provider }) => gapRuns.findOpenGapRun(db, '7d', provider),
  findGapRun: (db, { runId }) => gapRuns.findGapRun(db, runId),
  listGapRuns: (db) => gapRuns.listGapRuns(db, { provider: undefined, status: undefined, ...PAGE }),
  takeGapRunTurn: (db, { openRunId }) => gapRuns.takeGapRunTurn(db, openRunId, 2),
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
  insertRepriceRun: async (db, { openRepriceId }) => {
    await runStates.endRun(db, 'reprice', openRepriceId, { status: 'cancelled' });
    return repriceRuns.insertRepriceRun(db, {
      id: randomUUID(),
      ...WINDOW,
      provider: null,
      model: 'new',
      requestedBy: 'new',
    });
  },
  findOpenRepriceRun: (db) => repriceRuns.findOpenRepriceRun(db),
  findRepriceRun: (db, { repriceId }) => repriceRuns.findRepriceRun(db, repriceId),
  lockRepriceRun: (db, { repriceId }) => repriceRuns.lockRepriceRun(db, repriceId),
  listRepriceRuns: (db) => repriceRuns.listRepriceRuns(db, { status: undefined, ...PAGE }),
  listRepriceFindings: (db, { repriceId }) => repriceRuns.listRepriceFindings(db, [repriceId], 10),
  startRepriceRun: (db, { openRepriceId }) => repriceRuns.startRepriceRun(db, openRepriceId, 'another'),
  repriceBatch: (db, { openRepriceId, prices }) => repriceBatch(db, openRepriceId, prices),
  moveRepriceCursor: (db, { openRepriceId, repricedId }) =>
    repriceRuns.moveRepriceCursor(db, openRepriceId, { micros: 1n, id: repricedId }),
  listFormerPrices: (db, { repricedId }) => repriceRuns.listFormerPrices(db, repricedId),
  noteRunWaitingForEngine: (db, { openSyncId }) =>
    runStates.noteRunWaitingForEngine(db, 'billing_sync', openSyncId),
  requeueRun: (db, { openRunId }) => runStates.requeueRun(db, 'gap_run', openRunId),
  listOpenRuns: (db) => listOpenRuns(db, 'gap_run', 10),
  assertRoomForRun: (db) => assertRoomForRun(db, { kind: 'gap_run', max: 1 }),
  insertWithinLimit: (db) =>
    db.transaction((inside) =>
      insertWithinLimit(inside, { kind: 'gap_run', max: 5 }, () => gapRuns.insertGapRun(inside, aGapRun())),
    ),
  publishGapRunEnd: (db, { openRunId }) =>
    db.transaction(async (inside) => {
      await inside.run(
        `update gap_runs set status = 'failed', finished_at = now() where org_id = $1 and id = $2`,
        [inside.orgId, openRunId],
      );
      await publishGapRunEnd(inside, openRunId);
    }),
  endRun: (db, { openRunId }) => runStates.endRun(db, 'gap_run', openRunId, { status: 'failed' }),
  requestRunCancel: (db, { openRunId }) => runStates.requestRunCancel(db, 'gap_run', openRunId),
  insertOutboxMessage: (db, { openRunId }) => insertOutboxMessage(db, 'gap_run.start', openRunId),
};
