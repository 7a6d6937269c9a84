import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { OrgDb } from '../../db/orgDb.js';
import { findReportOfRequest, type NewReport, REPORTS, type Report } from '../../db/reports/reports.js';
import { findRun } from '../../db/runs/runTable.js';
import { parseIdempotencyKey } from '../../domain/access/idempotencyKey.js';
import { DomainError, type ErrorCode } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import type { ReportPeriod, ReportSection } from '../../domain/reports/report.js';
import { RUN_TERMINAL_STATUSES } from '../../domain/runs/runKinds.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { endRun } from '../runs/endRun.js';
import { type OpenRunLimit, openRun } from '../runs/openRun.js';
import { makeReport, type ReportDeps } from './makeReport.js';

export interface RequestedReport {
  period: ReportPeriod;
  sections: ReportSection[];
  /** The header Idempotency-Key; undefined: a repeat is another report. */
  idempotencyKey: string | undefined;
}

/**
 * Opens a report with the message that starts its workflow, or returns the report of the same Idempotency-Key. Errors:
 * rate_limited, invalid_idempotency_key, idempotency_key_reused.
 */
export async function requestReport(
  orgDb: OrgDb,
  { period, sections, idempotencyKey }: RequestedReport,
  author: RequestAuthor,
  { limit, nowMicros }: { limit: OpenRunLimit | undefined; nowMicros: bigint },
): Promise<{ report: Report; existing: boolean }> {
  const { keyId } = author.caller;
  const requestKey = idempotencyKey === undefined ? null : requestKeyOf(keyId, idempotencyKey);
  const wanted: Omit<NewReport, 'id'> = {
    ...{ periodFrom: period.fromDay, periodTo: period.toDay, sections },
    ...{ cause: 'request', cadence: null, requestedBy: keyId, requestKey },
  };
  const known = requestKey === null ? undefined : await findReportOfRequest(orgDb, requestKey);
  if (known) return { report: assertSame(known, wanted), existing: true };
  const record = (inside: OrgDb, { id }: Report) =>
    recordAction(
      inside,
      author,
      'report.requested',
      { type: 'report', id: publicId('rpt', id) },
      {
        ...{ from: period.fromDay, to: period.toDay, sections },
      },
    );
  const open = { requestKey };
  const { run: report, existing } = await openRun(
    orgDb,
    REPORTS,
    { wanted, open },
    { nowMicros, limit, record },
  );
  return { report: existing ? assertSame(report, wanted) : report, existing };
}

function requestKeyOf(keyId: string, header: string): string {
  return createHash('sha256')
    .update(`${keyId}\n${parseIdempotencyKey(header)}`)
    .digest('hex');
}

function assertSame(report: Report, wanted: Omit<NewReport, 'id'>): Report {
  const isSame =
    report.periodFrom === wanted.periodFrom &&
    report.periodTo === wanted.periodTo &&
    report.sections.join() === wanted.sections.join();
  if (isSame) return report;
  throw new DomainError(
    'idempotency_key_reused',
    'this Idempotency-Key came with another request before; send a new key with a new request',
  );
}

export interface WaitDeps extends ReportDeps {
  /** Health of the workflow engine. */
  temporalStatus(): Promise<'up' | 'degraded'>;
}

/** Longest wait of a request for its report. */
export const REPORT_WAIT_MS = 60_000;
/** Between two reads of the run. */
const LOOK_MS = 60;
/** A report that no worker has started after this time is made in this process, milliseconds. */
const QUEUED_MS = 5_000;

/**
 * Waits until a report has ended. This process makes the report itself when Temporal is unavailable or no worker starts
 * it in time. undefined: it takes longer, or the client has disconnected. Errors: those with which the report failed.
 */
export async function awaitReport(
  deps: WaitDeps,
  orgDb: OrgDb,
  id: string,
  { signal, waitMs = REPORT_WAIT_MS }: { signal: AbortSignal; waitMs?: number | undefined },
): Promise<Report | undefined> {
  const began = performance.now();
  let isMadeHere = false;
  for (let look = 0; performance.now() - began < waitMs && !signal.aborted; look += 1) {
    const report = await findRun(orgDb, REPORTS, id);
    if (!report) return undefined;
    if (RUN_TERMINAL_STATUSES.has(report.status)) return assertMade(report);
    const isLate = performance.now() - began > QUEUED_MS;
    if (!isMadeHere && report.status === 'queued' && (isLate || (await isTemporalUnavailable(deps, look)))) {
      isMadeHere = true;
      await makeHere(deps, orgDb, id);
      continue;
    }
    await sleep(LOOK_MS);
  }
  return undefined;
}

/** Whether Temporal is unavailable: checked at the second look, when a worker may have started the report, then every second. */
async function isTemporalUnavailable({ temporalStatus }: WaitDeps, look: number): Promise<boolean> {
  const every = Math.ceil(1_000 / LOOK_MS);
  return look % every === 1 && (await temporalStatus()) === 'degraded';
}

/** Makes the report as the workflow's activity does; a failure ends its run. */
async function makeHere(deps: WaitDeps, orgDb: OrgDb, id: string): Promise<void> {
  try {
    await makeReport(deps, orgDb, id);
  } catch (error) {
    const code = error instanceof DomainError ? error.code : 'internal_error';
    const message = error instanceof Error ? error.message : String(error);
    await endRun(orgDb, 'report', id, { status: 'failed', error: { code, message } });
  }
}

/** Failures of a report that are the answer to its request; any other is internal_error. */
const ANSWERED: readonly ErrorCode[] = ['document_failed', 'storage_full', 'service_unavailable'];

function assertMade(report: Report): Report {
  if (report.status === 'succeeded') return report;
  const code = ANSWERED.find((known) => known === report.errorCode) ?? 'internal_error';
  throw new DomainError(code, report.errorMessage ?? 'the report could not be made');
}
