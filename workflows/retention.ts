import {
  ActivityFailure,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';

const { planRetention, failRetentionStep } = proxyActivities<Activities>(PROFILES.database);
const { runRetentionStep } = proxyActivities<Activities>(PROFILES.removing);

/**
 * One run of the retention: step after step removes what is too old. A step that cannot be done is told and leaves the
 * others alone; the next run takes it up.
 */
export async function retention(): Promise<void> {
  const { runId } = workflowInfo();
  const { steps } = await planRetention();
  for (const step of steps) {
    setCurrentDetails(step);
    try {
      await runRetentionStep({ runId, step });
    } catch (error) {
      if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
      const message = error.cause instanceof Error ? error.cause.message : error.message;
      await failRetentionStep({ runId, step, message });
    }
  }
}
