import {
  continueAsNew,
  log,
  patched,
  proxyActivities,
  setCurrentDetails,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import type { GapRunInput } from './contract.js';
import { reasonOf, withRunEnding } from './runEnding.js';

/** Provider-days that are matched at once, and accounts that are explained at once; both are CPU-bound on one core. */
const WINDOW = 8;
const EXPLAINED_AT_ONCE = 2;
/** Pause between two checks whether it is the run's turn. */
const TURN_POLL = '2 seconds';

const { takeGapRunTurn, planGapRun, endGapRunCancelled, endGapRunFailed } = proxyActivities<Activities>(
  PROFILES.database,
);
const { publishGapRun, publishRunFindings, endPublishedRun } = proxyActivities<Activities>(PROFILES.database);
const { failGapRunUnit, failRunAccount } = proxyActivities<Activities>(PROFILES.database);
const { matchProviderDay } = proxyActivities<Activities>(PROFILES.matching);
const { planExplanations } = proxyActivities<Activities>(PROFILES.planning);
const { explainRunAccount } = proxyActivities<Activities>(PROFILES.explaining);
const { draftRunClaims, findRunCredits } = proxyActivities<Activities>(PROFILES.drafting);

/**
 * One gap run: plans, matches each changed provider-day, explains the changed accounts, publishes everything at once,
 * drafts claims over confirmed disputes, searches for answers to filed claims, and ends. A failed day, account or draft
 * does not stop the others and makes the run partial. A run that is cancelled before it publishes publishes nothing;
 * published results stay.
 */
export async function gapRun(input: GapRunInput): Promise<void> {
  const { orgId, runId } = input;
  const ending = {
    cancelled: () => endGapRunCancelled({ orgId, runId }),
    failed: ({ message }: { message: string }) => endGapRunFailed({ orgId, runId, message }),
  };
  await withRunEnding(ending, () => run(input));
}

async function run(input: GapRunInput): Promise<void> {
  const { orgId, runId } = input;
  const turn = await waitForTurn(input);
  if (turn === 'over') return;
  // Temporal had lost a run that had already published.
  if (turn === 'published') return await followUp(input);
  if (turn === 'wait') return await continueAsNew<typeof gapRun>(input);
  const { units } = await planGapRun({ orgId, runId });
  const next = await matchUnits(input, units);
  if (next < units) return await continueAsNew<typeof gapRun>({ orgId, runId, fromUnit: next });
  if (patched('gapRun-explain-v1')) {
    const explained = await explainAccounts(input);
    if (explained === 'over') return;
    if (explained !== 'done')
      return await continueAsNew<typeof gapRun>({ orgId, runId, fromUnit: units, fromAccount: explained });
  }
  if (patched('gapRun-ends-last-v1')) {
    if ((await publishRunFindings({ orgId, runId })) === 'published') await followUp(input);
    return;
  }
  await publishGapRun({ orgId, runId });
  if (patched('gapRun-drafts-v1'))
    await attempt('claims could not be drafted', () => draftRunClaims({ orgId, runId }), input);
  if (patched('gapRun-credits-v1'))
    await attempt('no credits could be looked for', () => findRunCredits({ orgId, runId }), input);
}

type Turn = Awaited<ReturnType<Activities['takeGapRunTurn']>>;

/** Waits until fewer runs of the organization run; `wait`: the history has grown long meanwhile. */
async function waitForTurn({ orgId, runId }: GapRunInput): Promise<Turn> {
  let turn = await takeGapRunTurn({ orgId, runId });
  while (turn === 'wait' && !workflowInfo().continueAsNewSuggested) {
    await sleep(TURN_POLL);
    turn = await takeGapRunTurn({ orgId, runId });
  }
  return turn;
}

/** Matches the units from where the history began, a few at a time; stops early when the history has grown long. */
async function matchUnits(input: GapRunInput, units: number): Promise<number> {
  const { orgId, runId } = input;
  let next = input.fromUnit ?? 0;
  const lane = async (): Promise<void> => {
    while (next < units && !workflowInfo().continueAsNewSuggested) {
      const ordinal = next;
      next += 1;
      setCurrentDetails(`unit ${ordinal + 1} of ${units}`);
      try {
        await matchProviderDay({ orgId, runId, ordinal });
      } catch (error) {
        await failGapRunUnit({ orgId, runId, ordinal, message: reasonOf(error).message });
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(WINDOW, Math.max(0, units - next)) }, lane));
  return next;
}

/**
 * Explains the accounts from where the history began, when no other run of the organization explains. Returns the first
 * remaining account when the history has grown long.
 */
async function explainAccounts(input: GapRunInput): Promise<'done' | 'over' | number> {
  const { orgId, runId } = input;
  let plan = await planExplanations({ orgId, runId });
  while (plan.turn === 'wait') {
    if (workflowInfo().continueAsNewSuggested) return input.fromAccount ?? 0;
    await sleep(TURN_POLL);
    plan = await planExplanations({ orgId, runId });
  }
  if (plan.turn === 'over') return 'over';
  const { accounts } = plan;
  let next = input.fromAccount ?? 0;
  const lane = async (): Promise<void> => {
    while (next < accounts && !workflowInfo().continueAsNewSuggested) {
      const ordinal = next;
      next += 1;
      setCurrentDetails(`account ${ordinal + 1} of ${accounts}`);
      try {
        await explainRunAccount({ orgId, runId, ordinal });
      } catch (error) {
        await failRunAccount({ orgId, runId, ordinal, message: reasonOf(error).message });
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(EXPLAINED_AT_ONCE, Math.max(0, accounts - next)) }, lane));
  return next < accounts ? next : 'done';
}

/** The steps after the publication, and the end of the run. The next run repeats failed steps. */
async function followUp(input: GapRunInput): Promise<void> {
  const { orgId, runId } = input;
  const problems: string[] = [];
  const drafted = await attempt('claims could not be drafted', () => draftRunClaims({ orgId, runId }), input);
  if (drafted.problem !== undefined) problems.push(drafted.problem);
  const failed = drafted.result?.failed ?? 0;
  if (failed > 0)
    problems.push(
      `${failed} ${failed === 1 ? 'claim' : 'claims'} could not be drafted; the next run tries again`,
    );
  const credits = await attempt(
    'no credits could be looked for',
    () => findRunCredits({ orgId, runId }),
    input,
  );
  if (credits.problem !== undefined) problems.push(credits.problem);
  await endPublishedRun({ orgId, runId, problems });
}

/** Runs work whose failure does not fail the run; returns its result, or the problem in words. */
async function attempt<T>(
  words: string,
  work: () => Promise<T>,
  { orgId, runId }: GapRunInput,
): Promise<{ result?: T; problem?: string }> {
  try {
    return { result: await work() };
  } catch (error) {
    const problem = `${words}: ${reasonOf(error).message}`;
    log.error('a run could not do what follows from its findings', { orgId, runId, problem });
    return { problem };
  }
}
