import { CancellationScope, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import type { BillingImportInput } from './contract.js';
import { withRunEnding } from './runEnding.js';

const { endBillingImportFailed } = proxyActivities<Activities>(PROFILES.database);
const { readBillingImport } = proxyActivities<Activities>(PROFILES.reading);

/**
 * Reads one stored bill, completely or not at all. A fault of the file is the import's outcome, not the workflow's
 * failure.
 */
export async function billingImport(input: BillingImportInput): Promise<void> {
  const end = (message: string) =>
    CancellationScope.nonCancellable(() => endBillingImportFailed({ ...input, message }));
  const ending = {
    cancelled: () => end('the import was cancelled'),
    failed: ({ message }: { message: string }) => end(message),
  };
  await withRunEnding(ending, () => readBillingImport(input));
}
