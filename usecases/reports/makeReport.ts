import { randomBytes } from 'node:crypto';
import type { BlobStore } from '../../adapters/blobs/blobStore.js';
import type { OrgDb } from '../../db/orgDb.js';
import { findReportSchedule } from '../../db/reports/reportSchedules.js';
import { findReport, REPORTS, type Report, recordReportFile } from '../../db/reports/reports.js';
import { findRun, markRunStarted } from '../../db/runs/runTable.js';
import { isoFromMicros, MICROS_PER_DAY } from '../../domain/period.js';
import { REPORT_KEPT_DAYS } from '../../domain/reports/report.js';
import { type ReportDocument, reportDocument } from '../../domain/reports/reportDocument.js';
import { RUN_TERMINAL_STATUSES } from '../../domain/runs/runKinds.js';
import type { SecretKeys } from '../../platform/secretKeys.js';
import { endRun } from '../runs/endRun.js';
import { deliverReport } from '../webhooks/deliverReport.js';
import { getBranding, readLogo } from './branding.js';
import { gatherFigures } from './gatherFigures.js';

/** The dependencies of making a report. */
export interface ReportDeps {
  blobs: BlobStore;
  /** Typesets a report as PDF in a separate process: adapters/typst/reportPdf.ts. Error: document_failed. */
  renderReport(
    document: ReportDocument,
    options: { logo: Buffer | undefined; generatedAt: string },
  ): Promise<Buffer>;
  /** The address of this installation, without a slash at its end. */
  baseUrl(): string;
  /** Seal the tokens that end the mails of a schedule. */
  secretKeys: SecretKeys;
  nowMicros(): bigint;
}

const BYTES_MAX = 67_108_864;

/** `reports/<organization>/<report>/`: each attempt at a report has its own file there. */
const fileKey = (orgId: string, id: string): string =>
  `reports/${orgId}/${id}/${randomBytes(8).toString('hex')}.pdf`;

/**
 * Gathers the figures of an open report, typesets the document, stores it and ends the run with it. Of two simultaneous
 * attempts one ends the run, and the file of the other is deleted. Does nothing for a run that has ended. Errors:
 * document_failed, and those of the blob store.
 */
export async function makeReport(deps: ReportDeps, orgDb: OrgDb, id: string): Promise<void> {
  const report = await findRun(orgDb, REPORTS, id);
  if (!report || RUN_TERMINAL_STATUSES.has(report.status)) return;
  if (!(await markRunStarted(orgDb, 'report', id, 'rendering'))) return;
  const generatedAtMicros = deps.nowMicros();
  const pdf = await renderPdf(deps, orgDb, report, generatedAtMicros);
  const blobKey = fileKey(orgDb.orgId, id);
  let isKept = false;
  try {
    const { sizeBytes } = await deps.blobs.put(blobKey, bytesOf(pdf), { bytesMax: BYTES_MAX });
    const expiresAtMicros = generatedAtMicros + BigInt(REPORT_KEPT_DAYS) * MICROS_PER_DAY;
    isKept = await orgDb.transaction(async (inside) => {
      const file = { blobKey, sizeBytes, generatedAtMicros, expiresAtMicros };
      if (!(await recordReportFile(inside, id, file))) return false;
      if (!(await endRun(inside, 'report', id, { status: 'succeeded' }))) return false;
      await mailScheduledReport(deps, inside, id);
      return true;
    });
  } finally {
    if (!isKept) await deps.blobs.delete(blobKey).catch(() => undefined);
  }
}

/** Mails a report of a schedule that still exists to its addresses. */
async function mailScheduledReport({ secretKeys }: ReportDeps, inside: OrgDb, id: string): Promise<void> {
  const report = await findReport(inside, id);
  const schedule = report?.cadence ? await findReportSchedule(inside, report.cadence) : undefined;
  if (report && schedule) await deliverReport(inside, report, schedule, { secretKeys });
}

async function renderPdf(
  deps: ReportDeps,
  orgDb: OrgDb,
  { periodFrom, periodTo, sections }: Report,
  nowMicros: bigint,
): Promise<Buffer> {
  const period = { fromDay: periodFrom, toDay: periodTo };
  const figures = await gatherFigures(orgDb, period, nowMicros);
  const branding = await getBranding(orgDb, new URL(deps.baseUrl()).host);
  const document = reportDocument(figures, sections, branding);
  const logo = (await readLogo(deps, orgDb.orgId, branding.logo)) ?? undefined;
  return deps.renderReport(document, { logo, generatedAt: isoFromMicros(nowMicros) });
}

async function* bytesOf(pdf: Buffer): AsyncGenerator<Buffer> {
  yield pdf;
}
