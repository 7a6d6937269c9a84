import { repriceCalls } from '../usecases/pricing/repriceCalls.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';
import { runEndings, stopIfCancelled } from './runEndings.js';

/** The effects of a re-pricing. */
export function createRepricingActivities(deps: ActivityDeps) {
  const endings = runEndings(deps, 'reprice');
  return {
    /** Prices the next events of a run; says whether that was all. */
    repriceEvents: (run: { orgId: string; runId: string }): Promise<{ done: boolean }> =>
      // Each batch commits with the run's place: a repeat continues behind what was done.
      withFailures(() => withHeartbeat(() => repriceCalls(deps, run, stopIfCancelled))),

    endRepricingCancelled: endings.cancelled,
    endRepricingFailed: endings.failed,
  };
}
