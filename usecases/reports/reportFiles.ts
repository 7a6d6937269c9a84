import type { Readable } from 'node:stream';
import type { BlobStore } from '../../adapters/blobs/blobStore.js';
import type { OrgDb } from '../../db/orgDb.js';
import { findReport, type GeneratedReport } from '../../db/reports/reports.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid } from '../../domain/ids.js';

/** A report with its document, opened; `id` is public. Error: report_not_found, also for an expired one. */
export async function openReport(
  { blobs }: { blobs: BlobStore },
  orgDb: OrgDb,
  id: string,
): Promise<{ report: GeneratedReport; sizeBytes: number; stream: Readable }> {
  const uuid = findUuid('rpt', id);
  const report = uuid === undefined ? undefined : await findReport(orgDb, uuid);
  if (!report) throw notFound();
  try {
    return { report, ...(await blobs.get(report.blobKey)) };
  } catch (error) {
    // The report expired and was deleted between the two reads.
    if (error instanceof DomainError && error.code === 'not_found') throw notFound();
    throw error;
  }
}

const notFound = (): DomainError =>
  new DomainError('report_not_found', 'there is no report with this id, or it has expired');
