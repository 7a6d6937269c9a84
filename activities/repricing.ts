import { repriceCalls } from '../usecases/pricing/repriceCalls.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';
import { runEndings, stopIfCancelled } from './runEndings.js';

/** The activities of a re-pricing. */
export function createRepricingActivities(deps: ActivityDeps) {
  const endings = runEndings(deps, 'reprice');
  return {
    /** Prices the next events of a run; returns whether the run is complete. */
    repriceEvents: (run: { orgId: string; runId: string }): Promise<{ done: boolean }> =>
      // Each batch commits with the run's cursor: a repeat continues after it.
      withFailures(() => withHeartbeat(() => repriceCalls(deps, run, stopIfCancelled))),

    endRepricingCancelled: endings.cancelled,
    endRepricingFailed: endings.failed,
  };
}
