import { CancelledFailure, Context } from '@temporalio/activity';
import type { RunKind } from '../domain/runs/runKinds.js';
import { endRun } from '../usecases/runs/endRun.js';
import { orgDbOf } from '../usecases/useCaseDeps.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';

interface RunRef {
  orgId: string;
  runId: string;
}

/** Activities that end a run without a result. Only an open run is ended, so a repeat does nothing. */
export function runEndings(deps: ActivityDeps, kind: RunKind) {
  return {
    cancelled: ({ orgId, runId }: RunRef): Promise<void> =>
      withFailures(async () => {
        await endRun(orgDbOf(deps, orgId), kind, runId, { status: 'cancelled' });
      }),

    failed: ({
      orgId,
      runId,
      code = 'internal_error',
      message,
    }: RunRef & { code?: string; message: string }): Promise<void> =>
      withFailures(async () => {
        deps.logger.error({ kind, orgId, runId, code, message }, 'a run failed');
        await endRun(orgDbOf(deps, orgId), kind, runId, { status: 'failed', error: { code, message } });
      }),
  };
}

/** Throws CancelledFailure when the activity's run was cancelled. */
export function stopIfCancelled(): void {
  if (Context.current().cancellationSignal.aborted) throw new CancelledFailure('the run was cancelled');
}
