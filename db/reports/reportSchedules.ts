import type { ReportSection } from '../../domain/reports/report.js';
import type { Cadence, Delivery } from '../../domain/reports/schedule.js';
import type { Database } from '../client.js';
import { column, defineEntity, findEntity, selectEntities } from '../entity.js';
import { type OrgDb, unscoped } from '../orgDb.js';

export interface ReportSchedule {
  cadence: Cadence;
  sections: ReportSection[];
  /** IANA name. */
  timeZone: string;
  deliveries: Delivery[];
  /** First day of the first period whose report was not opened yet, `YYYY-MM-DD`. */
  dueFrom: string;
  createdAtMicros: bigint;
  updatedAtMicros: bigint;
}

const SCHEDULE = defineEntity<ReportSchedule>('report_schedules', {
  cadence: column(),
  sections: column(),
  timeZone: column(),
  deliveries: column(),
  dueFrom: column(),
  createdAtMicros: column(),
  updatedAtMicros: column(),
});

export function findReportSchedule(orgDb: OrgDb, cadence: Cadence): Promise<ReportSchedule | undefined> {
  return findEntity(orgDb, SCHEDULE, { cadence });
}

/** Locks the schedule until the transaction ends, so that each period is opened once. */
export function lockReportSchedule(inside: OrgDb, cadence: Cadence): Promise<ReportSchedule | undefined> {
  return findEntity(inside, SCHEDULE, { cadence }, 'for update');
}

export function listReportSchedules(orgDb: OrgDb): Promise<ReportSchedule[]> {
  return selectEntities(orgDb, SCHEDULE, {}, 'order by cadence');
}

export type NewReportSchedule = Omit<ReportSchedule, 'createdAtMicros' | 'updatedAtMicros'>;

/** Makes or replaces a schedule; one that exists keeps the period that is due. */
export async function upsertReportSchedule(
  inside: OrgDb,
  { cadence, sections, timeZone, deliveries, dueFrom }: NewReportSchedule,
  createdBy: string,
): Promise<void> {
  await inside.run(
    `insert into report_schedules (org_id, cadence, sections, time_zone, deliveries, due_from, created_by)
     values ($1, $2, $3::text[], $4, $5::jsonb, $6::date, $7)
     on conflict (org_id, cadence) do update
       set sections = excluded.sections, time_zone = excluded.time_zone, deliveries = excluded.deliveries, updated_at = now()`,
    [inside.orgId, cadence, sections, timeZone, JSON.stringify(deliveries), dueFrom, createdBy],
  );
}

/** Notes the first period that is still to be opened. */
export async function recordDueFrom(inside: OrgDb, cadence: Cadence, dueFrom: string): Promise<void> {
  await inside.run('update report_schedules set due_from = $3::date where org_id = $1 and cadence = $2', [
    inside.orgId,
    cadence,
    dueFrom,
  ]);
}

export async function deleteReportSchedule(inside: OrgDb, cadence: Cadence): Promise<boolean> {
  const removed = await inside.run('delete from report_schedules where org_id = $1 and cadence = $2', [
    inside.orgId,
    cadence,
  ]);
  return removed === 1;
}

export interface OwnedSchedule extends Pick<ReportSchedule, 'cadence' | 'timeZone'> {
  orgId: string;
}

export async function listEveryReportSchedule(database: Database): Promise<OwnedSchedule[]> {
  return unscoped(database, 'schedules of every organization are compared with the engine', (system) =>
    system.rows<OwnedSchedule>(
      'select org_id as "orgId", cadence, time_zone as "timeZone" from report_schedules order by org_id, cadence',
    ),
  );
}

/** A period of a schedule whose report failed and that none is there for. */
export interface FailedPeriod {
  orgId: string;
  cadence: Cadence;
  periodFrom: string;
  periodTo: string;
}

/** Failed periods of the last days whose schedule exists, with fewer failures than `failuresMax`. */
export async function listFailedPeriods(
  database: Database,
  { failuresMax, days }: { failuresMax: number; days: number },
): Promise<FailedPeriod[]> {
  return unscoped(database, 'scheduled reports of every organization are tried again', (system) =>
    system.rows<FailedPeriod>(
      `select r.org_id as "orgId", r.cadence, r.period_from as "periodFrom", r.period_to as "periodTo"
       from reports r join report_schedules s on s.org_id = r.org_id and s.cadence = r.cadence
       where r.status in ('failed', 'cancelled') and not exists (
         select from reports o where o.org_id = r.org_id and o.cadence = r.cadence and o.period_from = r.period_from
           and o.status in ('queued', 'running', 'succeeded'))
       group by r.org_id, r.cadence, r.period_from, r.period_to
       having count(*) < $1 and max(r.finished_at) > now() - make_interval(days => $2) limit 1000`,
      [failuresMax, days],
    ),
  );
}
