import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import type { ScheduledSyncInput } from './contract.js';

const { requestScheduledSync } = proxyActivities<Activities>(PROFILES.database);

/** What a schedule starts: it only asks for a sync, which then goes the way of every sync, through its row. */
export async function scheduledSync(input: ScheduledSyncInput): Promise<void> {
  await requestScheduledSync(input);
}
