import { Context } from '@temporalio/activity';
import { RETENTION_STEPS, type RetentionStep } from '../domain/installation/retention.js';
import {
  failRetentionStep,
  forgetRetentionRuns,
  type RetentionStepRef,
  runRetentionStep,
} from '../usecases/installation/retention.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';

export function createRetentionActivities(deps: ActivityDeps) {
  return {
    /** The steps of a run. In the history, so that a run under way does not change when there are more. */
    planRetention: (): Promise<{ steps: readonly RetentionStep[] }> =>
      // Forgetting twice forgets the same.
      withFailures(async () => {
        await forgetRetentionRuns(deps);
        return { steps: RETENTION_STEPS };
      }),

    runRetentionStep: (ref: RetentionStepRef): Promise<void> =>
      // What was removed is committed piece by piece; a repeat continues with what is left.
      withFailures(() =>
        withHeartbeat(() => runRetentionStep(deps, ref, Context.current().cancellationSignal)),
      ),

    failRetentionStep: (ref: RetentionStepRef & { message: string }): Promise<void> =>
      // The row of a step is one row.
      withFailures(() => failRetentionStep(deps, ref)),
  };
}
