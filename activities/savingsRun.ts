import { ApplicationFailure, CancelledFailure, Context } from '@temporalio/activity';
import { OrgDb } from '../db/orgDb.js';
import {
  insertModeledCalls,
  insertModeledRules,
  type JudgedCall,
  listModeledRules,
  recordFindings,
  removeModeledCalls,
} from '../db/policies/modeledSavings.js';
import { streamReplayedCalls } from '../db/policies/replayedCalls.js';
import {
  holdSavingsRun,
  noteRulesRead,
  type SavingsRun,
  succeedSavingsRun,
  takeSavingsRun,
} from '../db/policies/savingsRuns.js';
import { newUuid } from '../domain/ids.js';
import { Replay } from '../domain/policies/enforcement/replay.js';
import { costAs, type ReplayedCall } from '../domain/policies/enforcement/replayedCall.js';
import type { Rule } from '../domain/policies/enforcement/rule.js';
import { emptyReplacedSavings } from '../usecases/installation/removeOldRows.js';
import { queueSavingsRun } from '../usecases/policies/openSavingsRun.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';
import { runEndings } from './runEndings.js';

interface RunRef {
  orgId: string;
  runId: string;
}

/** Replays of a process at once: each may remember a million sessions. Others come again, and hold no slot meanwhile. */
const REPLAYS_MAX = 2;
const COME_AGAIN_MS = 5_000;
/** Rows of an earlier attempt that one transaction removes. */
const SLICE_ROWS = 5_000;

/** The run is over, or another attempt has it: nothing may be written any more. */
class TakenOver extends Error {}

/** The effects of a run that models what the rules would save. */
export function createSavingsRunActivities(deps: ActivityDeps) {
  const orgDbOf = (orgId: string) => new OrgDb(deps.database, orgId);
  const endings = runEndings(deps, 'savings_run');
  let replays = 0;
  return {
    /** Replays the calls of the run's period, keeps what the rules make of them, and shows it. */
    modelSavings: ({ orgId, runId }: RunRef): Promise<void> =>
      // A repeat takes the run over and begins anew: what another attempt wrote goes first, and it can write no more.
      withFailures(async () => {
        if (replays >= REPLAYS_MAX) throw comeAgain();
        replays += 1;
        try {
          await withHeartbeat(() => model(deps, orgDbOf(orgId), runId));
        } finally {
          replays -= 1;
        }
      }),

    /** Removes what newer results have taken the place of. */
    removeReplacedSavings: ({ orgId }: RunRef): Promise<void> =>
      // A repeat goes on with what is left.
      withFailures(() =>
        withHeartbeat(() => emptyReplacedSavings(orgDbOf(orgId), async () => stopIfCancelled())),
      ),

    endSavingsRunCancelled: endings.cancelled,
    endSavingsRunFailed: endings.failed,
  };
}

function comeAgain(): ApplicationFailure {
  return ApplicationFailure.create({
    message: 'this process replays as many months as it may',
    type: 'service_unavailable',
    nextRetryDelay: COME_AGAIN_MS,
  });
}

function stopIfCancelled(): void {
  if (Context.current().cancellationSignal.aborted) throw new CancelledFailure('the run was cancelled');
}

/** One attempt at a run, from its first call to its result. */
async function model(deps: ActivityDeps, orgDb: OrgDb, runId: string): Promise<void> {
  const book = await deps.prices.freshOf(orgDb.orgId);
  const attemptId = newUuid(deps.nowMicros());
  const run = await takeSavingsRun(orgDb, runId, { id: attemptId, priceVersion: book.version });
  if (!run) return;
  try {
    const rules = await begin(orgDb, runId, attemptId);
    const replay = new Replay(rules, { costAs: (call, toModel) => costAs(book, call, toModel) });
    // Without rules there is nothing to look at.
    if (rules.length > 0) await replayCalls(deps, orgDb, run, attemptId, replay);
    await publish(deps, orgDb, runId, attemptId, replay);
  } catch (error) {
    if (!(error instanceof TakenOver)) throw error;
    deps.logger.info({ orgId: orgDb.orgId, runId }, 'a savings run is over, or another attempt has it');
  }
}

/** Work of an attempt that still has its run: in one transaction, in which nobody else can take it. */
async function whileHeld<T>(
  orgDb: OrgDb,
  runId: string,
  attemptId: string,
  work: (inside: OrgDb) => Promise<T>,
  progress?: { calls: number; cursorMicros: bigint },
): Promise<T> {
  stopIfCancelled();
  return orgDb.transaction(async (inside) => {
    if (!(await holdSavingsRun(inside, runId, attemptId, progress))) throw new TakenOver();
    return work(inside);
  });
}

/** Clears what an earlier attempt has left, and reads the rules as they are. */
async function begin(orgDb: OrgDb, runId: string, attemptId: string): Promise<Rule[]> {
  for (let removed = SLICE_ROWS; removed > 0; )
    removed = await whileHeld(orgDb, runId, attemptId, (inside) =>
      removeModeledCalls(inside, runId, SLICE_ROWS),
    );
  return whileHeld(orgDb, runId, attemptId, async (inside) => {
    // Before the rules are read: who changes them from here on finds the run, waits for this transaction, and notes it.
    await noteRulesRead(inside, runId);
    await insertModeledRules(inside, runId);
    return (await listModeledRules(inside, runId)).map(({ rule }) => rule);
  });
}

async function replayCalls(
  { replayPageCalls }: ActivityDeps,
  orgDb: OrgDb,
  run: SavingsRun,
  attemptId: string,
  replay: Replay,
): Promise<void> {
  const window = { fromMicros: run.windowStartMicros, toMicros: run.windowEndMicros };
  for await (const calls of streamReplayedCalls(orgDb, window, replayPageCalls)) {
    const judged = judge(replay, calls);
    const progress = { calls: calls.length, cursorMicros: calls.at(-1)?.timestampMicros ?? window.toMicros };
    await whileHeld(
      orgDb,
      run.id,
      attemptId,
      (inside) => insertModeledCalls(inside, run.id, judged),
      progress,
    );
  }
}

function judge(replay: Replay, calls: readonly ReplayedCall[]): JudgedCall[] {
  return calls.flatMap((call) => {
    const verdict = replay.take(call);
    return verdict ? [{ eventId: call.id, timestampMicros: call.timestampMicros, verdict }] : [];
  });
}

/** Shows the result, all of it at once; where the rules changed meanwhile, another run follows. */
async function publish(
  { nowMicros }: ActivityDeps,
  orgDb: OrgDb,
  runId: string,
  attemptId: string,
  replay: Replay,
): Promise<void> {
  await whileHeld(orgDb, runId, attemptId, async (inside) => {
    await recordFindings(inside, runId, replay.findings());
    const { again } = await succeedSavingsRun(inside, runId);
    if (again) await queueSavingsRun(inside, nowMicros(), 'rule_change');
  });
}
