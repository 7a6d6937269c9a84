import { randomUUID } from 'node:crypto';
import type { OrgDb } from '../../../../db/orgDb.js';
import * as modeled from '../../../../db/policies/modeledSavings.js';
import { streamReplayedCalls } from '../../../../db/policies/replayedCalls.js';
import * as runs from '../../../../db/policies/savingsRuns.js';
import { findOpenRun, findRun, insertRun, listRuns } from '../../../../db/runs/runTable.js';
import { publicId } from '../../../../domain/ids.js';
import type { RuleFindings } from '../../../../domain/policies/enforcement/replay.js';
import { emptyReplacedSavings } from '../../../../usecases/installation/retention.js';
import {
  listSavingsCalls,
  queueSavingsRun,
  readSavings,
  remodelSavings,
  standardPeriod,
} from '../../../../usecases/policies/savings.js';
import { endRun } from '../../../../usecases/runs/endRun.js';
import type { TenancyCase } from './tenancyCase.js';

const NOW = 1_780_000_000_000_000n;
const ALWAYS = { isStandard: false, windowStartMicros: 0n, windowEndMicros: 4_000_000_000_000_000n };
const PAGE = { ruleId: undefined, after: undefined, limit: 10 };

const aRun = (period: runs.SavingsPeriod): runs.NewSavingsRun => ({
  id: randomUUID(),
  ...period,
  cause: 'request',
  requestedBy: 'new',
});

const aCall = (ruleId: string, eventId: string = randomUUID()): modeled.JudgedCall => ({
  eventId,
  timestampMicros: NOW,
  verdict: { ruleId, action: 'block', savedPico: 7n, unpricedReason: null },
});

const findingsOf = (ruleId: string): RuleFindings => ({
  ruleId,
  asked: 1,
  blocked: 1,
  downgraded: 0,
  savedPico: 7n,
  unpriced: {},
  unjudged: {},
  forgotten: 0,
});

async function emptySavings(db: OrgDb, runId: string): Promise<void> {
  while ((await modeled.removeModeledCalls(db, runId, 10)) > 0);
  await modeled.emptySavingsRun(db, runId);
}

/** Functions of savings runs and their results. */
export const SAVINGS_CASES: Record<string, TenancyCase> = {
  readSavings: (db) => readSavings(db, standardPeriod(NOW)),
  listSavingsCalls: (db, { savingsRunId }) =>
    listSavingsCalls(db, { ...PAGE, runId: publicId('run', savingsRunId) }, NOW),
  'insertRun of savings_run': (db) =>
    insertRun(db, runs.SAVINGS_RUNS, aRun({ ...ALWAYS, windowStartMicros: 1n })),
  'findOpenRun of savings_run': (db) =>
    findOpenRun(db, runs.SAVINGS_RUNS, runs.openRunOf(standardPeriod(NOW))),
  findSavingsResult: (db) => runs.findSavingsResult(db, ALWAYS),
  'findRun of savings_run': (db, { savingsRunId }) => findRun(db, runs.SAVINGS_RUNS, savingsRunId),
  'listRuns of savings_run': (db) => listRuns(db, runs.SAVINGS_RUNS, {}, { limit: 10, offset: 0 }),
  noteRulesChanged: async (db, { openSavingsId }) => {
    await runs.noteRulesRead(db, openSavingsId);
    return runs.noteRulesChanged(db);
  },
  takeSavingsRun: (db, { openSavingsId }) =>
    runs.takeSavingsRun(db, openSavingsId, { id: randomUUID(), priceVersion: 'another' }),
  holdSavingsRun: (db, { openSavingsId, savingsAttemptId }) =>
    runs.holdSavingsRun(db, openSavingsId, savingsAttemptId, { calls: 1, cursorMicros: NOW }),
  noteRulesRead: (db, { openSavingsId }) => runs.noteRulesRead(db, openSavingsId),
  succeedSavingsRun: (db, { openSavingsId }) => runs.succeedSavingsRun(db, openSavingsId),
  remodelSavings: async (db, { openSavingsId }) => {
    await endRun(db, 'savings_run', openSavingsId, { status: 'cancelled' });
    return db.transaction((inside) => remodelSavings(inside, NOW));
  },
  queueSavingsRun: async (db, { openSavingsId }) => {
    await endRun(db, 'savings_run', openSavingsId, { status: 'cancelled' });
    return queueSavingsRun(db, NOW, 'schedule');
  },
  insertModeledRules: (db, { openSavingsId }) => modeled.insertModeledRules(db, openSavingsId),
  listModeledRules: (db, { savingsRunId }) => modeled.listModeledRules(db, savingsRunId),
  insertModeledCalls: (db, { savingsRunId, ruleId }) =>
    modeled.insertModeledCalls(db, savingsRunId, [aCall(ruleId)]),
  recordFindings: (db, { savingsRunId, ruleId }) =>
    modeled.recordFindings(db, savingsRunId, [{ ...findingsOf(ruleId), savedPico: 8n }]),
  removeModeledCalls: (db, { savingsRunId }) => modeled.removeModeledCalls(db, savingsRunId, 10),
  listModeledCalls: (db, { savingsRunId }) => modeled.listModeledCalls(db, savingsRunId, PAGE),
  listReplacedSavings: (db) =>
    modeled.listReplacedSavings(db, { standardRuns: 0, otherRuns: 0, otherDays: 0 }),
  emptySavingsRun: (db, { savingsRunId }) => emptySavings(db, savingsRunId),
  deleteEmptiedSavings: async (db, { savingsRunId }) => {
    await emptySavings(db, savingsRunId);
    return modeled.deleteEmptiedSavings(db, -1);
  },
  emptyReplacedSavings: (db) => emptyReplacedSavings(db, async () => undefined),
  streamReplayedCalls: async (db) => {
    const calls = [];
    const window = { fromMicros: 0n, toMicros: ALWAYS.windowEndMicros };
    for await (const page of streamReplayedCalls(db, window)) calls.push(...page);
    return calls;
  },
};

export interface OwnedSavings {
  /** A savings run with a result, and one that is at work, with who works on it. */
  savingsRunId: string;
  openSavingsId: string;
  savingsAttemptId: string;
}

/** A result with one call, one that was cancelled with another, and a run at work. */
export async function makeSavings(
  db: OrgDb,
  { ruleId, eventId }: { ruleId: string; eventId: string },
): Promise<OwnedSavings> {
  const savingsAttemptId = randomUUID();
  const take = async (period: runs.SavingsPeriod) => {
    const { id } = aRun(period);
    await insertRun(db, runs.SAVINGS_RUNS, { ...aRun(period), id });
    await runs.takeSavingsRun(db, id, { id: savingsAttemptId, priceVersion: 'v' });
    return id;
  };
  const replay = async (period: runs.SavingsPeriod) => {
    const id = await take(period);
    await modeled.insertModeledRules(db, id);
    await modeled.insertModeledCalls(db, id, [aCall(ruleId, eventId)]);
    await modeled.recordFindings(db, id, [findingsOf(ruleId)]);
    return id;
  };
  const savingsRunId = await replay(ALWAYS);
  await runs.succeedSavingsRun(db, savingsRunId);
  await endRun(db, 'savings_run', await replay(ALWAYS), { status: 'cancelled' });
  const openSavingsId = await take(standardPeriod(NOW));
  await runs.noteRulesChanged(db);
  return { savingsRunId, openSavingsId, savingsAttemptId };
}
