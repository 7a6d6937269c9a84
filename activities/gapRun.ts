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

/** Runs of one organization that work at once; the others wait for their turn. */
const RUNNING_MAX = 2;

/** The effects of a gap run. Each may be repeated: see the first comment of each. */
export function createGapRunActivities(deps: ActivityDeps) {
  const endings = runEndings(deps, 'gap_run');
  /** A piece of work that heartbeats and gives up when the run was cancelled. */
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
    /** Whether the run may go on. */
    takeGapRunTurn: ({ orgId, runId }: RunRef): Promise<RunTurn> =>
      // Repeating sets the same state again; a run that has ended stays ended.
      withFailures(() => takeGapRunTurn(orgDbOf(deps, orgId), runId, RUNNING_MAX)),

    /** Numbers the provider-days that have changed; says how many. */
    planGapRun: (ref: RunRef): Promise<{ units: number }> =>
      // The units are stored once: a repeat finds them and counts them.
      withFailures(async () => {
        const plan = await planRun(runWork(deps, ref));
        await analyzeAfterBulk(deps);
        return plan;
      }),

    /** Matches one provider-day and stores what it found. */
    matchProviderDay: ({ ordinal, ...ref }: RunRef & { ordinal: number }): Promise<void> =>
      // A repeat replaces the unit's buckets in one transaction.
      longWork(ref, (work) => matchUnit(work, ordinal)),

    failGapRunUnit: ({
      orgId,
      runId,
      ordinal,
      message,
    }: RunRef & { ordinal: number; message: string }): Promise<void> =>
      // A repeat writes the same failure again; a unit that is done stays done.
      withFailures(() => failUnit(orgDbOf(deps, orgId), runId, ordinal, message)),

    /** Numbers the accounts that are explained again, when it is the run's turn to explain. */
    planExplanations: (ref: RunRef): Promise<ExplanationPlan> =>
      // The accounts are stored once; the turn is kept once it is taken.
      withFailures(() => planExplanations(runWork(deps, ref))),

    /** Explains the series of one account that have changed, and the account as a whole. */
    explainRunAccount: ({ ordinal, ...ref }: RunRef & { ordinal: number }): Promise<void> =>
      // A repeat continues with the series that are left; an account that is done does not change.
      longWork(ref, (work) => explainRunAccount(work, ordinal)),

    failRunAccount: ({
      orgId,
      runId,
      ordinal,
      message,
    }: RunRef & { ordinal: number; message: string }): Promise<void> =>
      // A repeat writes the same failure again; an account that is done stays done.
      withFailures(() => failAccount(orgDbOf(deps, orgId), runId, ordinal, message)),

    /** Shows everything that the run found. `over`: it has ended, and nothing follows. */
    publishRunFindings: (ref: RunRef): Promise<'published' | 'over'> =>
      // Everything changes in one transaction, once: a repeat finds it published.
      withFailures(() => publish(ref)),

    /** The same for runs that began when publishing ended a run: they draft nothing, the next run does. */
    publishGapRun: (ref: RunRef): Promise<void> =>
      // As publishRunFindings; the end comes once.
      withFailures(async () => {
        if ((await publish(ref)) === 'published') await endPublished(ref, []);
      }),

    /** Drafts claims over what people have confirmed, once the run has published; returns how many it could not. */
    draftRunClaims: (ref: RunRef): Promise<{ failed: number }> =>
      // A repeat drafts what is left: a dispute is in one claim at most.
      longWork(ref, (work) => draftRunClaims(work, deps)),

    /** Looks for the answers to filed claims on the bills that the run has compared. */
    findRunCredits: (ref: RunRef): Promise<void> =>
      // A repeat finds what is proposed already, and proposes nothing twice.
      longWork(ref, findRunCredits),

    /** Ends a run that has published; `problems` are sentences about what could not be done after that. */
    endPublishedRun: ({ problems, ...ref }: RunRef & { problems: readonly string[] }): Promise<void> =>
      withFailures(() => endPublished(ref, problems)),

    endGapRunCancelled: endings.cancelled,
    endGapRunFailed: endings.failed,
  };
}
