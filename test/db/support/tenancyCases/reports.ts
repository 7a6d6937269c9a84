import { Readable } from 'node:stream';
import type { BlobStore } from '../../../../adapters/blobs/blobStore.js';
import { listClaimsOver } from '../../../../db/claims/claims.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import { sumAlerts } from '../../../../db/policies/alerts.js';
import { findBranding, upsertBranding } from '../../../../db/reports/branding.js';
import * as schedules from '../../../../db/reports/reportSchedules.js';
import * as reports from '../../../../db/reports/reports.js';
import { findOpenRun, findRun, insertRun, listRuns } from '../../../../db/runs/runTable.js';
import { publicId } from '../../../../domain/ids.js';
import { changeBranding, getBranding, openLogo } from '../../../../usecases/reports/branding.js';
import { gatherFigures } from '../../../../usecases/reports/gatherFigures.js';
import { openReport } from '../../../../usecases/reports/reportFiles.js';
import * as useCases from '../../../../usecases/reports/reportSchedules.js';
import { requestReport } from '../../../../usecases/reports/requestReport.js';
import { endRun } from '../../../../usecases/runs/endRun.js';
import { testBlobs } from '../../../support/blobs.js';
import { aReport, storeReport, storeSchedule } from '../../../support/reports.js';
import { anAuthor, type TenancyCase } from './tenancyCase.js';

const ALL = { fromDay: '2020-01-01', toDay: '2100-01-01' };
const ALL_TIME = { fromMicros: 0n, toMicros: 4_000_000_000_000_000n };
const PAGE = { limit: 10, offset: 0 };
const NOW = 1_790_000_000_000_000n;

/** Files are no part of what is tried here. */
const BLOBS = {
  get: async () => ({ sizeBytes: 0, stream: Readable.from([]) }),
  put: async () => ({ sha256: '', sizeBytes: 0 }),
  delete: async () => undefined,
} as unknown as BlobStore;
const renderLogo = () => Promise.reject(new Error('no logo is sent'));

/** An organization's reports, as the tests use them. */
export interface OwnedReports {
  /** One that was generated. */
  reportId: string;
  /** One that is queued, asked for with this key. */
  openReportId: string;
  reportRequestKey: string;
}

export async function makeReports(db: OrgDb, marker: string): Promise<OwnedReports> {
  const reportId = await storeReport(db, { marker });
  await storeSchedule(db, marker);
  const open = aReport({ requestKey: marker, requestedBy: marker });
  await insertRun(db, reports.REPORTS, open);
  const failed = aReport({ cause: 'schedule', cadence: 'monthly' });
  await insertRun(db, reports.REPORTS, failed);
  const error = { code: 'internal_error', message: marker };
  await endRun(db, 'report', failed.id, { status: 'failed', error });
  return { reportId, openReportId: open.id, reportRequestKey: marker };
}

/** Reports, and what they are gathered from beside what other cases read. */
export const REPORT_CASES: Record<string, TenancyCase> = {
  'insertRun of report': (db) => insertRun(db, reports.REPORTS, aReport()),
  'findRun of report': (db, { reportId }) => findRun(db, reports.REPORTS, reportId),
  'findOpenRun of report': (db, { reportRequestKey }) =>
    findOpenRun(db, reports.REPORTS, { requestKey: reportRequestKey }),
  'listRuns of report': (db) => listRuns(db, reports.REPORTS, {}, PAGE),
  findReport: (db, { reportId }) => reports.findReport(db, reportId),
  findReportOfRequest: (db, { reportRequestKey }) => reports.findReportOfRequest(db, reportRequestKey),
  listReports: (db) => reports.listReports(db, PAGE),
  recordReportFile: (db, { openReportId }) =>
    reports.recordReportFile(db, openReportId, {
      ...{ blobKey: 'reports/a.pdf', sizeBytes: 1, generatedAtMicros: NOW, expiresAtMicros: NOW },
    }),
  openReport: async (db, { reportId }) => {
    const { report, stream } = await openReport({ blobs: testBlobs() }, db, publicId('rpt', reportId));
    stream.destroy();
    return report;
  },
  requestReport: (db) =>
    requestReport(
      db,
      {
        period: { fromDay: '2026-02-01', toDay: '2026-02-02' },
        ...{ sections: ['summary'], idempotencyKey: undefined },
      },
      anAuthor('report'),
      { limit: undefined, nowMicros: NOW },
    ),
  getBranding: (db) => getBranding(db, 'trueup.test'),
  gatherFigures: (db) => gatherFigures(db, { fromDay: '2026-02-01', toDay: '2026-12-31' }, NOW),
  findReportSchedule: (db) => schedules.findReportSchedule(db, 'weekly'),
  lockReportSchedule: (db) => db.transaction((inside) => schedules.lockReportSchedule(inside, 'weekly')),
  listReportSchedules: (db) => schedules.listReportSchedules(db),
  upsertReportSchedule: (db) =>
    schedules.upsertReportSchedule(
      db,
      {
        ...{ cadence: 'weekly', sections: ['spend'], timeZone: 'UTC' },
        deliveries: [],
        dueFrom: '2026-02-02',
      },
      'test',
    ),
  recordDueFrom: (db) => schedules.recordDueFrom(db, 'weekly', '2026-02-09'),
  deleteReportSchedule: (db) => schedules.deleteReportSchedule(db, 'weekly'),
  getReportSchedule: (db) => useCases.getReportSchedule(db, 'weekly'),
  putReportSchedule: (db) =>
    useCases.putReportSchedule(
      db,
      { ...{ cadence: 'weekly', sections: ['spend'], timeZone: 'UTC' }, deliveries: [] },
      anAuthor('schedule'),
      { nowMicros: NOW, canMail: false },
    ),
  removeReportSchedule: (db) => useCases.removeReportSchedule(db, 'weekly', anAuthor('schedule')),
  openDueReports: (db) => useCases.openDueReports(db, 'weekly', NOW, NOW),
  sumAlerts: (db) => sumAlerts(db, ALL_TIME),
  listClaimsOver: (db) => listClaimsOver(db, ALL, 10),
  findBranding: (db) => findBranding(db),
  upsertBranding: (db) =>
    upsertBranding(db, { brandColor: '#000000', orgName: 'changed', footerText: null, logo: null }),
  openLogo: async (db) => (await openLogo({ blobs: BLOBS }, db)).logo,
  changeBranding: (db, { keyId }) =>
    changeBranding(
      { blobs: BLOBS, renderLogo },
      db,
      { orgName: 'changed' },
      { caller: { keyId }, requestId: 'req_1' },
      0n,
    ),
};
