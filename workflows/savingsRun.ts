import { ActivityFailure, CancellationScope, isCancellation, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import type { RunInput } from './contract.js';

const { endSavingsRunCancelled, endSavingsRunFailed } = proxyActivities<Activities>(PROFILES.database);
const { modelSavings } = proxyActivities<Activities>(PROFILES.replaying);
const { removeReplacedSavings } = proxyActivities<Activities>(PROFILES.removing);

/**
 * Works out what an organization's enforcement rules would have saved of the calls of a period, and shows it, all at
 * once. Cancelled or failed, it shows nothing: what was there stays.
 */
export async function savingsRun(input: RunInput): Promise<void> {
  try {
    await modelSavings(input);
  } catch (error) {
    if (isCancellation(error)) {
      await CancellationScope.nonCancellable(() => endSavingsRunCancelled(input));
      throw error;
    }
    if (!(error instanceof ActivityFailure)) throw error;
    const message = error.cause instanceof Error ? error.cause.message : error.message;
    await endSavingsRunFailed({ ...input, message });
  }
  try {
    await removeReplacedSavings(input);
  } catch (error) {
    // The result stands; the next run, or the night's retention, removes what is left.
    if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
  }
}
