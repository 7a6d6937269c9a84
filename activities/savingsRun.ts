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

/**
 * Replays in a process at once: each may hold a million sessions in memory. Further ones are retried later and hold no
 * slot meanwhile.
 */
const REPLAYS_MAX = 2;
const COME_AGAIN_MS = 5_000;

/** The activities of a savings run. */
export function createSavingsRunActivities(deps: ActivityDeps) {
  const endings = runEndings(deps, 'savings_run');
  let replays = 0;
  return {
    /** Replays the calls of the run's period, stores the effect of the rules, and publishes the result. */
    modelSavings: (run: RunRef): Promise<void> =>
      // A repeat takes the run over and starts again: it deletes the rows of the former attempt, which can write no
      // more.
      withFailures(async () => {
        if (replays >= REPLAYS_MAX) throw comeAgain();
        replays += 1;
        try {
          await withHeartbeat(() => modelSavings(deps, run, stopIfCancelled));
        } finally {
          replays -= 1;
        }
      }),

    /** Removes results that newer ones have replaced. */
    removeReplacedSavings: ({ orgId }: RunRef): Promise<void> =>
      // A repeat continues with the rest.
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
