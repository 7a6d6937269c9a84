import { recomputeWeights } from '../usecases/reconciliation/recomputeWeights.js';
import { orgDbOf } from '../usecases/useCaseDeps.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';

/** The activities of computing weights from outcomes of claims. */
export function createWeightActivities(deps: ActivityDeps) {
  return {
    /** Computes an organization's weights from all outcomes, and updates the tiers of its open drafts. */
    recomputeWeights: ({ orgId }: { orgId: string }): Promise<void> =>
      // A repeat finds what the first attempt stored, and stores nothing.
      withFailures(async () => {
        const learned = await recomputeWeights(orgDbOf(deps, orgId), deps.nowMicros());
        const { version, isNew, rescored } = learned;
        if (isNew) deps.logger.info({ orgId, version, rescored: rescored.length }, 'weights were learned');
      }),
  };
}
