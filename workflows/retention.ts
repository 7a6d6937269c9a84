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
 * One run of the retention: removes old data step by step. A failed step is reported and does not stop the others; the
 * next run repeats it.
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
