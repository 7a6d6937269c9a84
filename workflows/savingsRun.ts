import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import type { RunInput } from './contract.js';
import { reasonOf, withRunEnding } from './runEnding.js';

const { endSavingsRunCancelled, endSavingsRunFailed } = proxyActivities<Activities>(PROFILES.database);
const { modelSavings } = proxyActivities<Activities>(PROFILES.replaying);
const { removeReplacedSavings } = proxyActivities<Activities>(PROFILES.removing);

/**
 * Works out what an organization's enforcement rules would have saved of the calls of a period, and shows it, all at
 * once. Cancelled or failed, it shows nothing: what was there stays.
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
    // The result stands; the next run, or the night's retention, removes what is left.
    reasonOf(error);
  }
}
