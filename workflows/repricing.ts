import { continueAsNew, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import type { RunInput } from './contract.js';
import { withRunEnding } from './runEnding.js';

const { endRepricingCancelled, endRepricingFailed } = proxyActivities<Activities>(PROFILES.database);
const { repriceEvents } = proxyActivities<Activities>(PROFILES.pricing);

/**
 * Re-prices an organization's calls of a time, batch by batch. The cursor is in the run's row, so it continues there
 * after any kill. After a cancellation or failure the re-priced calls stay, and both prices are stored.
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
