import type { OrgDb } from '../../db/orgDb.js';
import { upsertReportSchedule } from '../../db/reports/reportSchedules.js';
import { type NewReport, REPORTS, recordReportFile } from '../../db/reports/reports.js';
import { insertRun, markRunStarted } from '../../db/runs/runTable.js';
import { newUuid } from '../../domain/ids.js';
import { MICROS_PER_DAY } from '../../domain/period.js';
import { endRun } from '../../usecases/runs/endRun.js';
import { testBlobs } from './blobs.js';

export const REPORTS_PATH = '/api/v1/reports';

export const aReport = (overrides: Partial<NewReport> = {}): NewReport => ({
  id: newUuid(BigInt(Date.now()) * 1_000n),
  periodFrom: '2026-02-01',
  periodTo: '2026-02-28',
  sections: ['summary'],
  cause: 'request',
  cadence: null,
  requestedBy: 'test',
  requestKey: null,
  ...overrides,
});

/** A report with its file in the store of the tests; its uuid. */
export async function storeReport(
  orgDb: OrgDb,
  { generatedAtMicros = BigInt(Date.now()) * 1_000n, marker = 'a report', blobs = testBlobs() } = {},
): Promise<string> {
  const report = aReport();
  const bytes = Buffer.from(`%PDF-1.7\n% ${marker}\n`);
  const blobKey = `reports/${orgDb.orgId}/${report.id}/0.pdf`;
  await blobs.put(
    blobKey,
    (async function* () {
      yield bytes;
    })(),
    { bytesMax: 1_000 },
  );
  await insertRun(orgDb, REPORTS, report);
  await markRunStarted(orgDb, 'report', report.id, 'rendering');
  await recordReportFile(orgDb, report.id, {
    ...{ blobKey, sizeBytes: bytes.length, generatedAtMicros },
    expiresAtMicros: generatedAtMicros + 90n * MICROS_PER_DAY,
  });
  await endRun(orgDb, 'report', report.id, { status: 'succeeded' });
  return report.id;
}

/** A weekly schedule, which mails to an address of this name. */
export async function storeSchedule(
  orgDb: OrgDb,
  marker = 'finance',
  cadence: 'weekly' | 'monthly' = 'weekly',
): Promise<void> {
  await upsertReportSchedule(
    orgDb,
    {
      ...{ cadence, sections: ['summary'], timeZone: 'Europe/Berlin', dueFrom: '2026-02-02' },
      deliveries: [{ id: newUuid(0n), type: 'email', to: `${marker}@example.com` }],
    },
    'test',
  );
}
