import type { Logger } from 'pino';
import type { OrgDb } from '../../db/orgDb.js';
import {
  insertModeledCalls,
  insertModeledRules,
  type JudgedCall,
  listModeledRules,
  recordFindings,
  removeModeledCalls,
} from '../../db/policies/modeledSavings.js';
import { streamReplayedCalls } from '../../db/policies/replayedCalls.js';
import {
  holdSavingsRun,
  noteRulesRead,
  type SavingsRun,
  succeedSavingsRun,
  takeSavingsRun,
} from '../../db/policies/savingsRuns.js';
import { newUuid } from '../../domain/ids.js';
import { Replay } from '../../domain/policies/enforcement/replay.js';
import { costAs, type ReplayedCall } from '../../domain/policies/enforcement/replayedCall.js';
import type { Rule } from '../../domain/policies/enforcement/rule.js';
import type { Prices } from '../pricing/priceBookHolder.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';
import { queueSavingsRun } from './openSavingsRun.js';

interface ModelDeps extends UseCaseDeps {
  prices: Prices;
  logger: Logger;
  /** Calls that are read at once; the product's own where absent. */
  replayPageCalls?: number;
  nowMicros(): bigint;
}

/** One attempt at a run: another one may take the run over. */
interface Attempt {
  orgDb: OrgDb;
  runId: string;
  id: string;
  /** Throws when the run was cancelled meanwhile. */
  checkpoint(): void;
}

/** Rows of an earlier attempt that one transaction removes. */
const SLICE_ROWS = 5_000;

/** The run is over, or another attempt has it: nothing may be written any more. */
class TakenOver extends Error {}

/** One attempt at a run, from its first call to its result. */
export async function modelSavings(
  deps: ModelDeps,
  { orgId, runId }: { orgId: string; runId: string },
  checkpoint: () => void,
): Promise<void> {
  const orgDb = orgDbOf(deps, orgId);
  const book = await deps.prices.freshOf(orgId);
  const attempt: Attempt = { orgDb, runId, id: newUuid(deps.nowMicros()), checkpoint };
  const run = await takeSavingsRun(orgDb, runId, { id: attempt.id, priceVersion: book.version });
  if (!run) return;
  try {
    const rules = await begin(attempt);
    const replay = new Replay(rules, { costAs: (call, toModel) => costAs(book, call, toModel) });
    // Without rules there is nothing to look at.
    if (rules.length > 0) await replayCalls(deps, run, attempt, replay);
    await publish(deps, attempt, replay);
  } catch (error) {
    if (!(error instanceof TakenOver)) throw error;
    deps.logger.info({ orgId, runId }, 'a savings run is over, or another attempt has it');
  }
}

/** Work of an attempt that still has its run: in one transaction, in which nobody else can take it. */
async function whileHeld<T>(
  { orgDb, runId, id, checkpoint }: Attempt,
  work: (inside: OrgDb) => Promise<T>,
  progress?: { calls: number; cursorMicros: bigint },
): Promise<T> {
  checkpoint();
  return orgDb.transaction(async (inside) => {
    if (!(await holdSavingsRun(inside, runId, id, progress))) throw new TakenOver();
    return work(inside);
  });
}

/** Clears what an earlier attempt has left, and reads the rules as they are. */
async function begin(attempt: Attempt): Promise<Rule[]> {
  const { runId } = attempt;
  for (let removed = SLICE_ROWS; removed > 0; )
    removed = await whileHeld(attempt, (inside) => removeModeledCalls(inside, runId, SLICE_ROWS));
  return whileHeld(attempt, async (inside) => {
    // Before the rules are read: who changes them from here on finds the run, waits for this transaction, and notes it.
    await noteRulesRead(inside, runId);
    await insertModeledRules(inside, runId);
    return (await listModeledRules(inside, runId)).map(({ rule }) => rule);
  });
}

async function replayCalls(
  { replayPageCalls }: ModelDeps,
  run: SavingsRun,
  attempt: Attempt,
  replay: Replay,
): Promise<void> {
  const window = { fromMicros: run.windowStartMicros, toMicros: run.windowEndMicros };
  for await (const calls of streamReplayedCalls(attempt.orgDb, window, replayPageCalls)) {
    const judged = judge(replay, calls);
    const progress = { calls: calls.length, cursorMicros: calls.at(-1)?.timestampMicros ?? window.toMicros };
    await whileHeld(attempt, (inside) => insertModeledCalls(inside, run.id, judged), progress);
  }
}

function judge(replay: Replay, calls: readonly ReplayedCall[]): JudgedCall[] {
  return calls.flatMap((call) => {
    const verdict = replay.take(call);
    return verdict ? [{ eventId: call.id, timestampMicros: call.timestampMicros, verdict }] : [];
  });
}

/** Shows the result, all of it at once; where the rules changed meanwhile, another run follows. */
async function publish({ nowMicros }: ModelDeps, attempt: Attempt, replay: Replay): Promise<void> {
  await whileHeld(attempt, async (inside) => {
    await recordFindings(inside, attempt.runId, replay.findings());
    const { again } = await succeedSavingsRun(inside, attempt.runId);
    if (again) await queueSavingsRun(inside, nowMicros(), 'rule_change');
  });
}
