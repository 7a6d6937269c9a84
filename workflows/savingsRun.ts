import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import type { RunInput } from './contract.js';
import { reasonOf, withRunEnding } from './runEnding.js';

const { endSavingsRunCancelled, endSavingsRunFailed } = proxyActivities<Activities>(PROFILES.database);
const { modelSavings } = proxyActivities<Activities>(PROFILES.replaying);
const { removeReplacedSavings } = proxyActivities<Activities>(PROFILES.removing);

/**
 * Models the savings of an organization's enforcement rules over the calls of a period, and publishes them at once.
 * After a cancellation or failure the former result stays.
 */
export async function savingsRun(input: RunInput): Promise<void> {
  const ending = {
    cancelled: () => endSavingsRunCancelled(input),
    failed: ({ message }: { message: string }) => endSavingsRunFailed({ ...input, message }),
  };
  await withRunEnding(ending, () => modelSavings(input));
  try {
    await removeReplacedSavings(input);
  } catch (error) {
    // The result is published; the next run, or the nightly retention, removes the rest.
    reasonOf(error);
  }
}
