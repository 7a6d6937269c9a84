import { analyzeAfterBulk } from '../usecases/installation/maintenance.js';
import {
  type ExplanationPlan,
  explainRunAccount,
  failAccount,
  planExplanations,
} from '../usecases/reconciliation/explainRun.js';
import {
  draftRunClaims,
  findRunCredits,
  type RunTurn,
  type RunWork,
  runWork,
  takeGapRunTurn,
} from '../usecases/reconciliation/gapRunWork.js';
import { planRun } from '../usecases/reconciliation/planRun.js';
import { failUnit, matchUnit } from '../usecases/reconciliation/providerDay.js';
import { publishRun } from '../usecases/reconciliation/publishRun.js';
import { endRun } from '../usecases/runs/endRun.js';
import { orgDbOf } from '../usecases/useCaseDeps.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';
import { runEndings, stopIfCancelled } from './runEndings.js';

interface RunRef {
  orgId: string;
  runId: string;
}

/** Most running gap runs of one organization; the others wait for their turn. */
const RUNNING_MAX = 2;

/** The activities of a gap run. Each may be repeated; its first comment says why. */
export function createGapRunActivities(deps: ActivityDeps) {
  const endings = runEndings(deps, 'gap_run');
  /** Runs work that heartbeats and stops when the run was cancelled. */
  const longWork = <T>(ref: RunRef, work: (run: RunWork) => Promise<T>): Promise<T> =>
    withFailures(() => withHeartbeat(() => work(runWork(deps, ref, stopIfCancelled))));
  const publish = async (ref: RunRef): Promise<'published' | 'over'> => {
    await analyzeAfterBulk(deps);
    const state = await publishRun(runWork(deps, ref));
    await analyzeAfterBulk(deps);
    return state;
  };
  const endPublished = async ({ orgId, runId }: RunRef, problems: readonly string[]): Promise<void> => {
    const message = problems.join('; ');
    await endRun(orgDbOf(deps, orgId), 'gap_run', runId, {
      status: 'succeeded',
      ...(message === '' ? {} : { error: { code: 'follow_up_failed', message } }),
    });
  };
  return {
    /** Whether the run may continue. */
    takeGapRunTurn: ({ orgId, runId }: RunRef): Promise<RunTurn> =>
      // A repeat sets the same state again; an ended run stays ended.
      withFailures(() => takeGapRunTurn(orgDbOf(deps, orgId), runId, RUNNING_MAX)),

    /** Plans the changed provider-days; returns their number. */
    planGapRun: (ref: RunRef): Promise<{ units: number }> =>
      // The units are stored once: a repeat finds and counts them.
      withFailures(async () => {
        const plan = await planRun(runWork(deps, ref));
        await analyzeAfterBulk(deps);
        return plan;
      }),

    /** Matches one provider-day and stores the result. */
    matchProviderDay: ({ ordinal, ...ref }: RunRef & { ordinal: number }): Promise<void> =>
      // A repeat replaces the unit's buckets in one transaction.
      longWork(ref, (work) => matchUnit(work, ordinal)),

    failGapRunUnit: ({
      orgId,
      runId,
      ordinal,
      message,
    }: RunRef & { ordinal: number; message: string }): Promise<void> =>
      // A repeat stores the same failure again; a finished unit stays finished.
      withFailures(() => failUnit(orgDbOf(deps, orgId), runId, ordinal, message)),

    /** Plans the accounts to explain again, when it is the run's turn to explain. */
    planExplanations: (ref: RunRef): Promise<ExplanationPlan> =>
      // The accounts are stored once; a taken turn is kept.
      withFailures(() => planExplanations(runWork(deps, ref))),

    /** Explains the changed series of one account, and the account as a whole. */
    explainRunAccount: ({ ordinal, ...ref }: RunRef & { ordinal: number }): Promise<void> =>
      // A repeat continues with the remaining series; a finished account does not change.
      longWork(ref, (work) => explainRunAccount(work, ordinal)),

    failRunAccount: ({
      orgId,
      runId,
      ordinal,
      message,
    }: RunRef & { ordinal: number; message: string }): Promise<void> =>
      // A repeat stores the same failure again; a finished account stays finished.
      withFailures(() => failAccount(orgDbOf(deps, orgId), runId, ordinal, message)),

    /** Publishes the run's findings. `over`: the run has ended, and nothing follows. */
    publishRunFindings: (ref: RunRef): Promise<'published' | 'over'> =>
      // Everything changes once, in one transaction: a repeat finds the run published.
      withFailures(() => publish(ref)),

    /** Publishes and ends runs that began when publishing ended a run: they draft nothing, the next run does. */
    publishGapRun: (ref: RunRef): Promise<void> =>
      // Like publishRunFindings; the run ends once.
      withFailures(async () => {
        if ((await publish(ref)) === 'published') await endPublished(ref, []);
      }),

    /** Drafts claims over confirmed disputes after the run has published; returns the number that failed. */
    draftRunClaims: (ref: RunRef): Promise<{ failed: number }> =>
      // A repeat drafts the rest: a dispute is in one claim at most.
      longWork(ref, (work) => draftRunClaims(work, deps)),

    /** Searches the bills that the run compared for answers to filed claims. */
    findRunCredits: (ref: RunRef): Promise<void> =>
      // A repeat finds the stored proposals, and proposes nothing twice.
      longWork(ref, findRunCredits),

    /** Ends a published run; `problems` are sentences about failures after the publication. */
    endPublishedRun: ({ problems, ...ref }: RunRef & { problems: readonly string[] }): Promise<void> =>
      withFailures(() => endPublished(ref, problems)),

    endGapRunCancelled: endings.cancelled,
    endGapRunFailed: endings.failed,
  };
}
