import { ActivityFailure, CancellationScope, isCancellation, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import type { BillingImportInput } from './contract.js';

const { endBillingImportFailed } = proxyActivities<Activities>(PROFILES.database);
const { readBillingImport } = proxyActivities<Activities>(PROFILES.reading);

/** Reads one stored bill, as a whole or not at all. What is wrong with a file is its outcome, not the workflow's failure. */
export async function billingImport(input: BillingImportInput): Promise<void> {
  try {
    await readBillingImport(input);
  } catch (error) {
    if (!isCancellation(error) && !(error instanceof ActivityFailure)) throw error;
    const message =
      error instanceof ActivityFailure && error.cause instanceof Error
        ? error.cause.message
        : 'the import was cancelled';
    await CancellationScope.nonCancellable(() => endBillingImportFailed({ ...input, message }));
    if (isCancellation(error)) throw error;
  }
}
