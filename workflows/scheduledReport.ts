import { defineSearchAttributeKey } from '@temporalio/common';
import { proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import type { ScheduledReportInput } from './contract.js';

const { requestScheduledReport } = proxyActivities<Activities>(PROFILES.database);

/** The time for which the schedule started the workflow, however late that was. */
const SCHEDULED_START = defineSearchAttributeKey('TemporalScheduledStartTime', 'DATETIME');

/** Started by a schedule: it only opens the report that is due; the report then runs like every other. */
export async function scheduledReport(input: ScheduledReportInput): Promise<void> {
  const { typedSearchAttributes, startTime } = workflowInfo();
  const nominal = typedSearchAttributes.get(SCHEDULED_START) ?? startTime;
  await requestScheduledReport({ ...input, nominalMs: nominal.getTime() });
}
