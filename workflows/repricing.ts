import { continueAsNew, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import type { RunInput } from './contract.js';
import { withRunEnding } from './runEnding.js';

const { endRepricingCancelled, endRepricingFailed } = proxyActivities<Activities>(PROFILES.database);
const { repriceEvents } = proxyActivities<Activities>(PROFILES.pricing);

/**
 * Prices an organization's calls of a time anew, some at a time. Its place is in the run's row, so it goes on where it
 * was whatever was killed. Cancelled or failed, it leaves what was priced as it is: both prices are kept.
 */
export async function repricing(input: RunInput): Promise<void> {
  const ending = {
    cancelled: () => endRepricingCancelled(input),
    failed: ({ message }: { message: string }) => endRepricingFailed({ ...input, message }),
  };
  await withRunEnding(ending, async () => {
    while (!(await repriceEvents(input)).done)
      if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof repricing>(input);
  });
}
