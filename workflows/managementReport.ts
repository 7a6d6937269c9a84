import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import type { RunInput } from './contract.js';
import { withRunEnding } from './runEnding.js';

const { endReportCancelled, endReportFailed } = proxyActivities<Activities>(PROFILES.database);
const { generateReport } = proxyActivities<Activities>(PROFILES.rendering);

/** One management report. What keeps it from being made is the run's outcome, not the workflow's failure. */
export async function managementReport(input: RunInput): Promise<void> {
  const ending = {
    cancelled: () => endReportCancelled(input),
    failed: (reason: { code: string; message: string }) => endReportFailed({ ...input, ...reason }),
  };
  await withRunEnding(ending, () => generateReport(input));
}
