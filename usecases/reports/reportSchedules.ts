import type { Logger } from 'pino';
import type { Orchestrator } from '../../adapters/orchestrator.js';
import { getOrganization } from '../../db/installation/organizations.js';
import type { OrgDb } from '../../db/orgDb.js';
import {
  deleteReportSchedule,
  findReportSchedule,
  listEveryReportSchedule,
  listFailedPeriods,
  listReportSchedules,
  lockReportSchedule,
  type OwnedSchedule,
  type ReportSchedule,
  recordDueFrom,
  upsertReportSchedule,
} from '../../db/reports/reportSchedules.js';
import { REPORTS } from '../../db/reports/reports.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import { DomainError } from '../../domain/errors.js';
import { newUuid, publicId } from '../../domain/ids.js';
import { MICROS_PER_HOUR } from '../../domain/period.js';
import type { ReportPeriod, ReportSection } from '../../domain/reports/report.js';
import {
  CADENCES,
  type Cadence,
  type Delivery,
  dueMicrosOf,
  localDayAt,
  periodAfter,
  periodEndedBefore,
  periodFrom,
  scheduleHourOf,
} from '../../domain/reports/schedule.js';
import { reportScheduleId } from '../../workflows/contract.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { queueRun } from '../runs/openRun.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';
import { mailNotConfigured } from '../webhooks/sendAttempt.js';

export interface WantedSchedule {
  cadence: Cadence;
  sections: ReportSection[];
  /** Undefined: the organization's. */
  timeZone: string | undefined;
  deliveries: Delivery[];
}

/**
 * Stores or replaces a schedule, with the message that makes Temporal's. The first report is of the present period; a
 * replaced schedule keeps its next period. Error: mail_not_configured for an e-mail delivery when `canMail` is false.
 */
export async function putReportSchedule(
  orgDb: OrgDb,
  wanted: WantedSchedule,
  author: RequestAuthor,
  { nowMicros, canMail }: { nowMicros: bigint; canMail: boolean },
): Promise<ReportSchedule> {
  const { cadence, sections, deliveries } = wanted;
  if (!canMail && deliveries.some(({ type }) => type === 'email')) throw mailNotConfigured();
  return orgDb.transaction(async (inside) => {
    const timeZone = wanted.timeZone ?? (await getOrganization(inside)).settings.timeZone;
    const ended = periodEndedBefore(cadence, localDayAt(timeZone, nowMicros));
    const dueFrom = periodAfter(cadence, ended).fromDay;
    const schedule = { cadence, sections, timeZone, deliveries, dueFrom };
    await upsertReportSchedule(inside, schedule, author.caller.keyId);
    await insertOutboxMessage(inside, 'report.schedule', inside.orgId);
    await record(inside, author, 'report_schedule.put', cadence, {
      ...{ sections, time_zone: timeZone, deliveries: deliveries.map(({ type }) => type) },
    });
    return getReportSchedule(inside, cadence);
  });
}

/** The organization's schedule of this cadence. Error: not_found. */
export async function getReportSchedule(orgDb: OrgDb, cadence: Cadence): Promise<ReportSchedule> {
  const schedule = await findReportSchedule(orgDb, cadence);
  if (schedule) return schedule;
  throw new DomainError('not_found', `there is no ${cadence} schedule of reports`);
}

/** Ends a schedule; its reports stay. Error: not_found. */
export async function removeReportSchedule(
  orgDb: OrgDb,
  cadence: Cadence,
  author: RequestAuthor,
): Promise<void> {
  await orgDb.transaction(async (inside) => {
    await getReportSchedule(inside, cadence);
    await deleteReportSchedule(inside, cadence);
    await insertOutboxMessage(inside, 'report.schedule', inside.orgId);
    await record(inside, author, 'report_schedule.removed', cadence, {});
  });
}

function record(
  inside: OrgDb,
  author: RequestAuthor,
  action: 'report_schedule.put' | 'report_schedule.removed',
  cadence: Cadence,
  details: Parameters<typeof recordAction>[4],
): Promise<void> {
  const subject = { type: 'report_schedule', id: publicId('org', inside.orgId) };
  return recordAction(inside, author, action, subject, { cadence, ...details });
}

/** The next period of a schedule and when its report is due. */
export function nextOf({ cadence, dueFrom, timeZone }: ReportSchedule): {
  period: ReportPeriod;
  dueMicros: bigint;
} {
  const period = periodFrom(cadence, dueFrom);
  return { period, dueMicros: dueMicrosOf(period, timeZone) };
}

/** Most periods that one call opens; after a long outage later calls open the rest. */
const PERIODS_MAX = 20;

/**
 * Opens the reports of a schedule that are due by a time, each with the message that starts it; a second call for the same
 * time opens none. Returns the number of opened reports.
 */
export async function openDueReports(
  orgDb: OrgDb,
  cadence: Cadence,
  byMicros: bigint,
  nowMicros: bigint,
): Promise<number> {
  return orgDb.transaction(async (inside) => {
    const schedule = await lockReportSchedule(inside, cadence);
    if (!schedule) return 0;
    let opened = 0;
    for (let { period, dueMicros } = nextOf(schedule); dueMicros <= byMicros && opened < PERIODS_MAX; ) {
      await openScheduled(inside, schedule, period, nowMicros);
      opened += 1;
      const { fromDay: dueFrom } = periodAfter(cadence, period);
      await recordDueFrom(inside, cadence, dueFrom);
      ({ period, dueMicros } = nextOf({ ...schedule, dueFrom }));
    }
    return opened;
  });
}

/** Opens the report of a period; does nothing if the period has one, which a unique index decides. */
function openScheduled(
  inside: OrgDb,
  { cadence, sections }: Pick<ReportSchedule, 'cadence' | 'sections'>,
  { fromDay, toDay }: ReportPeriod,
  nowMicros: bigint,
): Promise<unknown> {
  return queueRun(inside, REPORTS, {
    id: newUuid(nowMicros),
    ...{ periodFrom: fromDay, periodTo: toDay, sections, cause: 'schedule', cadence },
    ...{ requestedBy: null, requestKey: null },
  });
}

export interface ReportScheduleDeps extends UseCaseDeps {
  orchestrator: Orchestrator;
  logger: Logger;
  nowMicros(): bigint;
}

/** Temporal starts a report within ten minutes (its jitter); a report that is due for longer was missed. */
const GRACE_MICROS = MICROS_PER_HOUR;
/** The attempts of a scheduled report, and the days over which they are spread. */
const TRIED = { failuresMax: 3, days: 7 };

/** Opens reports that Temporal missed, after any outage, and repeats failed ones; returns the number of opened reports. */
export async function openMissedReports({
  database,
  nowMicros,
}: Omit<ReportScheduleDeps, 'orchestrator' | 'logger'>): Promise<number> {
  let opened = 0;
  const now = nowMicros();
  for (const { orgId, cadence } of await listEveryReportSchedule(database))
    opened += await openDueReports(orgDbOf({ database }, orgId), cadence, now - GRACE_MICROS, now);
  for (const { orgId, cadence, periodFrom: fromDay, periodTo: toDay } of await listFailedPeriods(
    database,
    TRIED,
  )) {
    await orgDbOf({ database }, orgId).transaction(async (inside) => {
      const schedule = await lockReportSchedule(inside, cadence);
      if (schedule) await openScheduled(inside, schedule, { fromDay, toDay }, now);
    });
    opened += 1;
  }
  return opened;
}

/**
 * Makes Temporal's schedules of reports agree with those in Postgres: creates missing ones, or updates all with `isAll`,
 * and deletes the others. Error: workflow_engine_unavailable.
 */
export async function reconcileReportSchedules(
  { database, orchestrator, logger }: ReportScheduleDeps,
  isAll: boolean,
): Promise<void> {
  const found = await orchestrator.listReportSchedules();
  for (const schedule of await listEveryReportSchedule(database)) {
    const id = reportScheduleId(schedule);
    if (found.delete(id) && !isAll) continue;
    await putSchedule(orchestrator, schedule).catch((error: unknown) => {
      if (error instanceof DomainError && error.code === 'workflow_engine_unavailable') throw error;
      // A schedule that cannot be made must not prevent the others.
      logger.error({ err: error, schedule: id }, 'a schedule of reports could not be made');
    });
  }
  for (const scheduleId of found) await orchestrator.deleteSchedule(scheduleId);
}

/** Makes Temporal's schedules of one organization agree with its rows. Error: workflow_engine_unavailable. */
export async function tendReportSchedules(
  { orchestrator, database }: Pick<ReportScheduleDeps, 'orchestrator' | 'database'>,
  orgId: string,
): Promise<void> {
  const schedules = await listReportSchedules(orgDbOf({ database }, orgId));
  for (const cadence of CADENCES) {
    const schedule = schedules.find((one) => one.cadence === cadence);
    if (schedule) await putSchedule(orchestrator, { orgId, cadence, timeZone: schedule.timeZone });
    else await orchestrator.deleteSchedule(reportScheduleId({ orgId, cadence }));
  }
}

const putSchedule = (orchestrator: Orchestrator, schedule: OwnedSchedule): Promise<void> =>
  orchestrator.putReportSchedule({ ...schedule, hour: scheduleHourOf(schedule.timeZone) });
