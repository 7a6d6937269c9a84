/** Temporal's schedules. Each memo names the task queue, because installations may share a server. */
import type { ScheduleOptions } from '@temporalio/client';
import {
  priceFeedScheduleId,
  reportScheduleId,
  retentionScheduleId,
  type ScheduledReportInput,
  type ScheduledSyncInput,
  syncScheduleId,
  WORKFLOW_NAMES,
} from '../workflows/contract.js';

/** When the bill of a connection is fetched. */
export interface SyncSchedule extends ScheduledSyncInput {
  everySeconds: number;
  paused: boolean;
}

/** Spreads the syncs of many connections. */
const SYNC_JITTER = '10 minutes';
/** A sync that was missed for longer is left to the next one, which fetches the same days. */
const SYNC_CATCHUP = '1 hour';
const SYNC_TIMEOUT = '1 hour';

/** The schedule of a connection. */
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

/** At 03:00 UTC of each day; a missed run is caught up within a day. */
export const retentionScheduleOptions = (taskQueue: string) =>
  dailyScheduleOptions('retention', retentionScheduleId(taskQueue), '3 hours', taskQueue);

/** At 05:00 UTC of each day, before most people look at prices. */
export const priceFeedScheduleOptions = (taskQueue: string) =>
  dailyScheduleOptions('priceFeeds', priceFeedScheduleId(taskQueue), '5 hours', taskQueue);

function dailyScheduleOptions(
  workflow: 'retention' | 'priceFeeds',
  scheduleId: string,
  offset: '3 hours' | '5 hours',
  taskQueue: string,
) {
  return {
    scheduleId,
    spec: { intervals: [{ every: '24 hours', offset }] },
    policies: { overlap: 'SKIP', catchupWindow: '1 day', pauseOnFailure: false },
    action: {
      type: 'startWorkflow',
      workflowType: WORKFLOW_NAMES[workflow],
      workflowId: scheduleId,
      taskQueue,
      args: [],
      workflowExecutionTimeout: '23 hours',
    },
    memo: { taskQueue },
  } satisfies ScheduleOptions;
}

/** When an organization's report is made. */
export interface ReportScheduleTimes extends ScheduledReportInput {
  /** IANA name. */
  timeZone: string;
  /** Local hour, 6 or later: no clock changes then, so that no time is skipped or comes twice. */
  hour: number;
}

/** The schedule of an organization's reports: on Mondays, or on the first of each month. */
export function reportScheduleOptions(
  { orgId, cadence, timeZone, hour }: ReportScheduleTimes,
  taskQueue: string,
) {
  const scheduleId = reportScheduleId({ orgId, cadence });
  const day = cadence === 'weekly' ? { dayOfWeek: 'MONDAY' as const } : { dayOfMonth: 1 };
  return {
    scheduleId,
    spec: { calendars: [{ ...day, hour, minute: 0, second: 0 }], timezone: timeZone, jitter: '10 minutes' },
    policies: { overlap: 'BUFFER_ONE', catchupWindow: '3 days', pauseOnFailure: false },
    action: {
      type: 'startWorkflow',
      workflowType: WORKFLOW_NAMES.scheduledReport,
      workflowId: scheduleId,
      taskQueue,
      args: [{ orgId, cadence }],
      workflowExecutionTimeout: '2 hours',
    },
    memo: { taskQueue },
  } satisfies ScheduleOptions;
}
