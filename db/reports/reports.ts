import { isoFromMicros } from '../../domain/period.js';
import type { ReportCause, ReportSection } from '../../domain/reports/report.js';
import type { Cadence } from '../../domain/reports/schedule.js';
import type { Database } from '../client.js';
import { column, findEntity, listNewest } from '../entity.js';
import { type OrgDb, unscoped } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import { defineRun, type Run } from '../runs/runTable.js';

export interface NewReport {
  id: string;
  /** UTC days, both included. */
  periodFrom: string;
  periodTo: string;
  sections: ReportSection[];
  cause: ReportCause;
  /** Of the schedule that it is of. */
  cadence: Cadence | null;
  requestedBy: string | null;
  /** Of the Idempotency-Key that it was asked for with. */
  requestKey: string | null;
}

/** A report, which is its run too: the last four are there once it has succeeded. */
export interface Report extends Run, NewReport {
  blobKey: string | null;
  sizeBytes: number | null;
  generatedAtMicros: bigint | null;
  expiresAtMicros: bigint | null;
}

export const REPORTS = defineRun<Report, NewReport>('report', {
  periodFrom: column(),
  periodTo: column(),
  sections: column(),
  cause: column(),
  cadence: column(),
  requestedBy: column(),
  requestKey: column(),
  blobKey: column(),
  sizeBytes: column(),
  generatedAtMicros: column(),
  expiresAtMicros: column(),
});

/** A report whose document is there. */
export type GeneratedReport = Report & {
  blobKey: string;
  sizeBytes: number;
  generatedAtMicros: bigint;
  expiresAtMicros: bigint;
};

const IS_KEPT = `status = 'succeeded' and expires_at > now()`;

export async function findReport(orgDb: OrgDb, id: string): Promise<GeneratedReport | undefined> {
  return (await findEntity(orgDb, REPORTS, { id }, `and ${IS_KEPT}`)) as GeneratedReport | undefined;
}

export function findReportOfRequest(orgDb: OrgDb, requestKey: string): Promise<Report | undefined> {
  return findEntity(orgDb, REPORTS, { requestKey });
}

/** Reports that have not expired, the newest first. */
export async function listReports(
  orgDb: OrgDb,
  page: { limit: number; offset: number },
): Promise<GeneratedReport[]> {
  const found = await listNewest(orgDb, REPORTS, {
    and: (query) => query.whereRaw(IS_KEPT),
    time: 'generated_at',
    page,
  });
  return found as GeneratedReport[];
}

export interface ReportFile {
  blobKey: string;
  sizeBytes: number;
  generatedAtMicros: bigint;
  expiresAtMicros: bigint;
}

/** Notes where an open report's document is; false when it has ended. */
export async function recordReportFile(inside: OrgDb, id: string, file: ReportFile): Promise<boolean> {
  const changed = await inside.run(
    `update reports set blob_key = $3, size_bytes = $4, generated_at = $5::timestamptz, expires_at = $6::timestamptz
     where org_id = $1 and id = $2 and status in ('queued', 'running')`,
    [
      ...[inside.orgId, id, file.blobKey, file.sizeBytes],
      ...[isoFromMicros(file.generatedAtMicros), isoFromMicros(file.expiresAtMicros)],
    ],
  );
  return changed === 1;
}

export interface ExpiredReport {
  orgId: string;
  id: string;
  blobKey: string | null;
}

/** Reports of every organization that have expired, and runs as old that made none. */
export async function listExpiredReports(
  database: Database,
  beforeMicros: { nowMicros: bigint; runsMicros: bigint },
  limit: number,
): Promise<ExpiredReport[]> {
  return unscoped(database, 'reports of every organization expire', (system) =>
    system.rows<ExpiredReport>(
      `select org_id as "orgId", id, blob_key as "blobKey" from reports
       where expires_at <= $1::timestamptz or (expires_at is null and finished_at <= $2::timestamptz) order by org_id, id limit $3`,
      [isoFromMicros(beforeMicros.nowMicros), isoFromMicros(beforeMicros.runsMicros), limit],
    ),
  );
}

export async function deleteReports(database: Database, reports: readonly ExpiredReport[]): Promise<number> {
  return unscoped(database, 'reports of every organization expire', (system) =>
    system.run(
      `delete from reports r using unnest($1::uuid[], $2::uuid[]) as gone (org_id, id)
       where r.org_id = gone.org_id and r.id = gone.id`,
      [plainArray(reports.map(({ orgId }) => orgId)), plainArray(reports.map(({ id }) => id))],
    ),
  );
}

/** Those of the keys that are no report's. */
export async function listKeysOfNoReport(database: Database, keys: readonly string[]): Promise<string[]> {
  const rows = await unscoped(
    database,
    'files of reports are compared with those of every organization',
    (system) =>
      system.rows<{ key: string }>(
        `select key from unnest($1::text[]) as stored (key) where not exists (select from reports r where r.blob_key = stored.key)`,
        [textArray(keys)],
      ),
  );
  return rows.map(({ key }) => key);
}
