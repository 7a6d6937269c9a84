import {
  ActivityFailure,
  CancellationScope,
  continueAsNew,
  isCancellation,
  proxyActivities,
  workflowInfo,
} from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import type { RunInput } from './contract.js';

const { endRepricingCancelled, endRepricingFailed } = proxyActivities<Activities>(PROFILES.database);
const { repriceEvents } = proxyActivities<Activities>(PROFILES.pricing);

/**
 * Prices an organization's calls of a time anew, some at a time. Its place is in the run's row, so it goes on where it
 * was whatever was killed. Cancelled or failed, it leaves what was priced as it is: both prices are kept.
 */
export async function repricing(input: RunInput): Promise<void> {
  try {
    while (!(await repriceEvents(input)).done)
      if (workflowInfo().continueAsNewSuggested) return await continueAsNew<typeof repricing>(input);
  } catch (error) {
    if (isCancellation(error)) {
      await CancellationScope.nonCancellable(() => endRepricingCancelled(input));
      throw error;
    }
    if (!(error instanceof ActivityFailure)) throw error;
    const message = error.cause instanceof Error ? error.cause.message : error.message;
    await endRepricingFailed({ ...input, message });
  }
}
