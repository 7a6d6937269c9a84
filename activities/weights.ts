import { OrgDb } from '../db/orgDb.js';
import { recomputeWeights } from '../usecases/reconciliation/recomputeWeights.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';

/** The effects of learning from the outcomes of claims. */
export function createWeightActivities({ database, nowMicros, logger }: ActivityDeps) {
  return {
    /** Learns from all outcomes of an organization, and rescores its open drafts. */
    recomputeWeights: ({ orgId }: { orgId: string }): Promise<void> =>
      // A repeat finds what the first attempt stored, and stores nothing.
      withFailures(async () => {
        const { version, isNew, rescored } = await recomputeWeights(new OrgDb(database, orgId), nowMicros());
        if (isNew) logger.info({ orgId, version, rescored: rescored.length }, 'weights were learned');
      }),
  };
}
