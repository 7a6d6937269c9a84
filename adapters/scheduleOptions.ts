import type { ScheduleOptions } from '@temporalio/client';
import {
  retentionScheduleId,
  type ScheduledSyncInput,
  syncScheduleId,
  WORKFLOW_NAMES,
} from '../workflows/contract.js';

/** When the bill of a connection is asked for. */
export interface SyncSchedule extends ScheduledSyncInput {
  everySeconds: number;
  paused: boolean;
}

/** Syncs of many connections are not to begin in the same second. */
const SYNC_JITTER = '10 minutes';
/** A sync that was missed for longer is left to the next one, which asks for the same days. */
const SYNC_CATCHUP = '1 hour';
const SYNC_TIMEOUT = '1 hour';

/** The schedule of a connection. Its memo says whose it is: installations may share a server. */
export function syncScheduleOptions(schedule: SyncSchedule, taskQueue: string) {
  const { orgId, connectionId, everySeconds, paused } = schedule;
  const scheduleId = syncScheduleId({ orgId, connectionId });
  return {
    scheduleId,
    spec: { intervals: [{ every: everySeconds * 1_000 }], jitter: SYNC_JITTER },
    policies: { overlap: 'SKIP', catchupWindow: SYNC_CATCHUP, pauseOnFailure: false },
    action: {
      type: 'startWorkflow',
      workflowType: WORKFLOW_NAMES.scheduledSync,
      workflowId: scheduleId,
      taskQueue,
      args: [{ orgId, connectionId }],
      workflowExecutionTimeout: SYNC_TIMEOUT,
    },
    state: { paused },
    memo: { taskQueue },
  } satisfies ScheduleOptions;
}

/** At 03:00 UTC of each day; one that was missed within a day is caught up. */
export function retentionScheduleOptions(taskQueue: string) {
  const scheduleId = retentionScheduleId(taskQueue);
  return {
    scheduleId,
    spec: { intervals: [{ every: '24 hours', offset: '3 hours' }] },
    policies: { overlap: 'SKIP', catchupWindow: '1 day', pauseOnFailure: false },
    action: {
      type: 'startWorkflow',
      workflowType: WORKFLOW_NAMES.retention,
      workflowId: scheduleId,
      taskQueue,
      args: [],
      workflowExecutionTimeout: '23 hours',
    },
    memo: { taskQueue },
  } satisfies ScheduleOptions;
}
