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
    /** The steps of a run. They are in the workflow's history, so that new steps do not change a run in progress. */
    planRetention: (): Promise<{ steps: readonly RetentionStep[] }> =>
      // Deleting records of old runs twice has the same result.
      withFailures(async () => {
        await forgetRetentionRuns(deps);
        return { steps: RETENTION_STEPS };
      }),

    runRetentionStep: (ref: RetentionStepRef): Promise<void> =>
      // Removals commit part by part; a repeat continues with the rest.
      withFailures(() =>
        withHeartbeat(() => runRetentionStep(deps, ref, Context.current().cancellationSignal)),
      ),

    failRetentionStep: (ref: RetentionStepRef & { message: string }): Promise<void> =>
      // A step has one row, so a repeat stores the same.
      withFailures(() => failRetentionStep(deps, ref)),
  };
}
