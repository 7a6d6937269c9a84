import type { OrgDb } from '../../db/orgDb.js';
import {
  listModeledCalls,
  listModeledRules,
  type ModeledCall,
  type ModeledRule,
} from '../../db/policies/modeledSavings.js';
import { type PreventedSpend, sumPreventedSpend } from '../../db/policies/preventedSpend.js';
import {
  findSavingsResult,
  openRunOf,
  SAVINGS_RUNS,
  type SavingsPeriod,
  type SavingsRun,
} from '../../db/policies/savingsRuns.js';
import { findOpenRun, findRun } from '../../db/runs/runTable.js';
import { invalidField } from '../../domain/errors.js';
import { findUuid, publicId } from '../../domain/ids.js';
import { standardPeriod } from './openSavingsRun.js';

interface ModeledResult {
  run: SavingsRun;
  rules: ModeledRule[];
}

export interface Savings {
  prevented: PreventedSpend;
  result: ModeledResult | undefined;
  open: SavingsRun | undefined;
}

/** What rules have prevented in a period, and what the newest run over it has modeled. */
export async function readSavings(orgDb: OrgDb, period: SavingsPeriod): Promise<Savings> {
  const { windowStartMicros: fromMicros, windowEndMicros: toMicros } = period;
  const prevented = await sumPreventedSpend(orgDb, { fromMicros, toMicros });
  // One state of both: a result that gives way between the two reads would be shown without its rules.
  return orgDb.transaction(async (inside) => {
    const run = await findSavingsResult(inside, period);
    const result = run && { run, rules: await listModeledRules(inside, run.id) };
    return { prevented, result, open: await findOpenRun(inside, SAVINGS_RUNS, openRunOf(period)) };
  }, 'repeatable read');
}

/** Which calls of a result are listed: `runId` and `ruleId` are public ids. */
interface AskedCalls {
  runId: string | undefined;
  ruleId: string | undefined;
  after: { runId: string; timestampMicros: bigint; id: string } | undefined;
  limit: number;
}

/** A page of the calls behind a result; no run where nothing was modeled yet. Error invalid_parameter. */
export async function listSavingsCalls(
  orgDb: OrgDb,
  { runId, ruleId: ruleText, after, limit }: AskedCalls,
  nowMicros: bigint,
): Promise<{ run: SavingsRun | undefined; calls: ModeledCall[] }> {
  const ruleId = ruleText === undefined ? undefined : findUuid('rul', ruleText);
  if (ruleText !== undefined && ruleId === undefined)
    throw invalidField('query', 'rule_id', 'is not the id of a rule');
  const run = await runOfCalls(orgDb, runId, after?.runId, nowMicros);
  return { run, calls: run ? await listModeledCalls(orgDb, run.id, { ruleId, after, limit }) : [] };
}

/** The run whose calls are listed; undefined where nothing was modeled yet. Error invalid_parameter. */
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

/** Whether a run has a result whose calls are still there. */
function hasCalls({ savedPico, emptiedAtMicros }: SavingsRun): boolean {
  return savedPico !== null && emptiedAtMicros === null;
}
