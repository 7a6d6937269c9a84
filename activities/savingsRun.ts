import { ApplicationFailure } from '@temporalio/activity';
import { emptyReplacedSavings } from '../usecases/installation/retention.js';
import { modelSavings } from '../usecases/policies/savings.js';
import { orgDbOf } from '../usecases/useCaseDeps.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';
import { runEndings, stopIfCancelled } from './runEndings.js';

interface RunRef {
  orgId: string;
  runId: string;
}

/** Replays of a process at once: each may remember a million sessions. Others come again, and hold no slot meanwhile. */
const REPLAYS_MAX = 2;
const COME_AGAIN_MS = 5_000;

/** The effects of a run that models what the rules would save. */
export function createSavingsRunActivities(deps: ActivityDeps) {
  const endings = runEndings(deps, 'savings_run');
  let replays = 0;
  return {
    /** Replays the calls of the run's period, keeps what the rules make of them, and shows it. */
    modelSavings: (run: RunRef): Promise<void> =>
      // A repeat takes the run over and begins again: what another attempt wrote goes first, and it can write no more.
      withFailures(async () => {
        if (replays >= REPLAYS_MAX) throw comeAgain();
        replays += 1;
        try {
          await withHeartbeat(() => modelSavings(deps, run, stopIfCancelled));
        } finally {
          replays -= 1;
        }
      }),

    /** Removes what newer results have taken the place of. */
    removeReplacedSavings: ({ orgId }: RunRef): Promise<void> =>
      // A repeat continues with what is left.
      withFailures(() =>
        withHeartbeat(() => emptyReplacedSavings(orgDbOf(deps, orgId), async () => stopIfCancelled())),
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
