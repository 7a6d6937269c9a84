import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import type { ScheduledSyncInput } from './contract.js';

const { requestScheduledSync } = proxyActivities<Activities>(PROFILES.database);

/** Started by a schedule: it only requests a sync, which then runs through its row like every sync. */
export async function scheduledSync(input: ScheduledSyncInput): Promise<void> {
  await requestScheduledSync(input);
}
