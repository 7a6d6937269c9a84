import type { Logger } from 'pino';
import type { OrgDb } from '../../db/orgDb.js';
import { type PreventedSpend, sumPreventedSpend } from '../../db/policies/enforcementRules.js';
import {
  insertModeledCalls,
  insertModeledRules,
  type JudgedCall,
  listModeledCalls,
  listModeledRules,
  type ModeledCall,
  type ModeledRule,
  recordFindings,
  removeModeledCalls,
} from '../../db/policies/modeledSavings.js';
import { streamReplayedCalls } from '../../db/policies/replayedCalls.js';
import {
  findSavingsResult,
  holdSavingsRun,
  listSavingsDue,
  type NewSavingsRun,
  noteRulesChanged,
  noteRulesRead,
  openRunOf,
  SAVINGS_RUNS,
  type SavingsPeriod,
  type SavingsRun,
  succeedSavingsRun,
  takeSavingsRun,
} from '../../db/policies/savingsRuns.js';
import { findOpenRun, findRun } from '../../db/runs/runTable.js';
import { DomainError, invalidField } from '../../domain/errors.js';
import { findUuid, newUuid, publicId } from '../../domain/ids.js';
import { MICROS_PER_DAY } from '../../domain/period.js';
import { costAs, type ReplayedCall } from '../../domain/policies/enforcement/judges.js';
import { Replay, type SavingsCause } from '../../domain/policies/enforcement/replay.js';
import type { Rule } from '../../domain/policies/enforcement/rule.js';
import type { Prices } from '../pricing/priceBookHolder.js';
import { queueRun, type RunOpening } from '../runs/openRun.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';

interface ModeledResult {
  run: SavingsRun;
  rules: ModeledRule[];
}

export interface Savings {
  prevented: PreventedSpend;
  result: ModeledResult | undefined;
  open: SavingsRun | undefined;
}

/** The calls that rules blocked in a period, and the savings that the newest run over it modelled. */
export async function readSavings(orgDb: OrgDb, period: SavingsPeriod): Promise<Savings> {
  const { windowStartMicros: fromMicros, windowEndMicros: toMicros } = period;
  const prevented = await sumPreventedSpend(orgDb, { fromMicros, toMicros });
  // Both are read in one snapshot: a result that is replaced between two reads would lack its rules.
  return orgDb.transaction(async (inside) => {
    const run = await findSavingsResult(inside, period);
    const result = run && { run, rules: await listModeledRules(inside, run.id) };
    return { prevented, result, open: await findOpenRun(inside, SAVINGS_RUNS, openRunOf(period)) };
  }, 'repeatable read');
}

/** Selects the calls of a result; `runId` and `ruleId` are public ids. */
interface SavingsQuery {
  runId: string | undefined;
  ruleId: string | undefined;
  after: { runId: string; timestampMicros: bigint; id: string } | undefined;
  limit: number;
}

/** A page of the calls behind a result; without a run where nothing was modelled yet. Error: invalid_parameter. */
export async function listSavingsCalls(
  orgDb: OrgDb,
  { runId, ruleId: ruleText, after, limit }: SavingsQuery,
  nowMicros: bigint,
): Promise<{ run: SavingsRun | undefined; calls: ModeledCall[] }> {
  const ruleId = ruleText === undefined ? undefined : findUuid('rul', ruleText);
  if (ruleText !== undefined && ruleId === undefined)
    throw invalidField('query', 'rule_id', 'is not the id of a rule');
  const run = await runOfCalls(orgDb, runId, after?.runId, nowMicros);
  return { run, calls: run ? await listModeledCalls(orgDb, run.id, { ruleId, after, limit }) : [] };
}

/** The run whose calls are listed; undefined: nothing was modelled yet. Error: invalid_parameter. */
async function runOfCalls(
  orgDb: OrgDb,
  named: string | undefined,
  cursorRunId: string | undefined,
  nowMicros: bigint,
): Promise<SavingsRun | undefined> {
  if (cursorRunId !== undefined) {
    const run = await findRun(orgDb, SAVINGS_RUNS, cursorRunId);
    const isSame = named === undefined || named === publicId('run', cursorRunId);
    if (run && hasCalls(run) && isSame) return run;
    const remedy = 'the result that it goes through has given way to a newer one; begin again without it';
    throw invalidField('query', 'cursor', remedy);
  }
  if (named === undefined) return findSavingsResult(orgDb, standardPeriod(nowMicros));
  const uuid = findUuid('run', named);
  const run = uuid === undefined ? undefined : await findRun(orgDb, SAVINGS_RUNS, uuid);
  if (run && hasCalls(run)) return run;
  const why =
    run && run.savedPico !== null
      ? 'its calls gave way to newer results'
      : 'is not the id of a savings run with a result';
  throw invalidField('query', 'run_id', why);
}

/** Whether a run has a result whose calls are still stored. */
function hasCalls({ savedPico, emptiedAtMicros }: SavingsRun): boolean {
  return savedPico !== null && emptiedAtMicros === null;
}

/** Days before now that are modelled by default. */
const SAVINGS_DAYS = 30;
/** Attempts, since an open run may end between the insert that finds it and the read. */
const ATTEMPTS = 5;
const RETRY_AFTER_SECONDS = 2;

/** The default period: the 30 days before now. */
export function standardPeriod(nowMicros: bigint): SavingsPeriod {
  return {
    isStandard: true,
    windowStartMicros: nowMicros - BigInt(SAVINGS_DAYS) * MICROS_PER_DAY,
    windowEndMicros: nowMicros,
  };
}

/**
 * Starts a savings run after a change of rules. Call it in the transaction of the change, after the change: it opens a
 * run, or queues one after the open run, which reads the rules of this transaction. Error: service_unavailable when
 * runs begin and end faster than one can be opened.
 */
export async function remodelSavings(inside: OrgDb, nowMicros: bigint): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    if (await noteRulesChanged(inside)) return;
    if (await queueSavingsRun(inside, nowMicros, 'rule_change')) return;
  }
  throw new DomainError(
    'service_unavailable',
    'savings runs begin and end faster than one can be opened; try again',
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}

/** A run over a requested period. */
export function savingsOpening(period: SavingsPeriod, requestedBy: string): RunOpening<NewSavingsRun> {
  return { wanted: { ...period, cause: 'request', requestedBy }, open: openRunOf(period) };
}

/** Stores a standard run with the message that starts it; false while one is open. */
export async function queueSavingsRun(
  orgDb: OrgDb,
  nowMicros: bigint,
  cause: Exclude<SavingsCause, 'request'>,
): Promise<boolean> {
  const wanted = { id: newUuid(nowMicros), ...standardPeriod(nowMicros), cause, requestedBy: null };
  return (await queueRun(orgDb, SAVINGS_RUNS, wanted)) !== undefined;
}

/** Open runs of the instance above which no automatic run is opened. */
const OPEN_MAX = 20;

/**
 * Opens a savings run for each organization with an outdated result. Simultaneous processes still open one each.
 * Returns the number of opened runs.
 */
export async function openDueSavings(deps: UseCaseDeps, nowMicros: bigint): Promise<number> {
  let opened = 0;
  for (const orgId of await listSavingsDue(deps.database, OPEN_MAX))
    if (await queueSavingsRun(orgDbOf(deps, orgId), nowMicros, 'schedule')) opened += 1;
  return opened;
}

interface ModelDeps extends UseCaseDeps {
  prices: Prices;
  logger: Logger;
  /** Calls that are read at once; absent: the product's default. */
  replayPageCalls?: number;
  nowMicros(): bigint;
}

/** One attempt at a run: another attempt may take the run over. */
interface Attempt {
  orgDb: OrgDb;
  runId: string;
  id: string;
  /** Throws when the run was cancelled meanwhile. */
  checkpoint(): void;
}

/** Rows of an earlier attempt that one transaction removes. */
const SLICE_ROWS = 5_000;

/** The run is over or another attempt has taken it over; nothing may be written any more. */
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
    // Without rules there are no calls to replay.
    if (rules.length > 0) await replayCalls(deps, run, attempt, replay);
    await publish(deps, attempt, replay);
  } catch (error) {
    if (!(error instanceof TakenOver)) throw error;
    deps.logger.info({ orgId, runId }, 'a savings run is over, or another attempt has it');
  }
}

/**
 * Runs `work` in a transaction in which no other attempt can take the run over. Throws TakenOver when one already has.
 */
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

/** Removes the rows of an earlier attempt, and reads the present rules. */
async function begin(attempt: Attempt): Promise<Rule[]> {
  const { runId } = attempt;
  for (let removed = SLICE_ROWS; removed > 0; )
    removed = await whileHeld(attempt, (inside) => removeModeledCalls(inside, runId, SLICE_ROWS));
  return whileHeld(attempt, async (inside) => {
    // Noted before the rules are read: later changes of rules find the run, wait for this transaction, and request
    // another run.
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

/** Publishes the whole result at once; if the rules changed meanwhile, another run follows. */
async function publish({ nowMicros }: ModelDeps, attempt: Attempt, replay: Replay): Promise<void> {
  await whileHeld(attempt, async (inside) => {
    await recordFindings(inside, attempt.runId, replay.findings());
    const { again } = await succeedSavingsRun(inside, attempt.runId);
    if (again) await queueSavingsRun(inside, nowMicros(), 'rule_change');
  });
}
