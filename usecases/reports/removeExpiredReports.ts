import type { BlobStore } from '../../adapters/blobs/blobStore.js';
import type { RetentionWork } from '../../db/installation/retentionRuns.js';
import { deleteReports, listExpiredReports, listKeysOfNoReport } from '../../db/reports/reports.js';
import { findMicrosOfUuid, isUuidText } from '../../domain/ids.js';
import { MICROS_PER_DAY } from '../../domain/period.js';
import { REPORT_KEPT_DAYS } from '../../domain/reports/report.js';

/** Reports that are removed, and files that are looked up, at once. */
const BATCH = 500;
const FOLDER = 'reports/';

/**
 * Removes reports that have expired: the file first, so that a row that is left finds it gone. Then files of no report, of
 * attempts that broke with their process and of organizations that are gone; those of less than a day stay. A repeat
 * finds nothing left.
 */
export async function removeExpiredReports(
  { database, nowMicros, report }: Pick<RetentionWork, 'database' | 'nowMicros' | 'report'>,
  blobs: BlobStore,
): Promise<void> {
  const before = { nowMicros, runsMicros: nowMicros - BigInt(REPORT_KEPT_DAYS) * MICROS_PER_DAY };
  for (let found = BATCH; found === BATCH; ) {
    const expired = await listExpiredReports(database, before, BATCH);
    for (const { blobKey } of expired) if (blobKey !== null) await blobs.delete(blobKey);
    const rows = await deleteReports(database, expired);
    if (rows > 0) await report({ rows, partitions: [] });
    found = expired.length;
  }
  let keys: string[] = [];
  const removeOrphans = async () => {
    const orphans = keys.length === 0 ? [] : await listKeysOfNoReport(database, keys);
    for (const key of orphans) await blobs.delete(key);
    if (orphans.length > 0) await report({ rows: orphans.length, partitions: [] });
    keys = [];
  };
  for await (const { key } of blobs.stream(FOLDER)) {
    if (!isOlder(key, nowMicros - MICROS_PER_DAY)) continue;
    keys.push(key);
    if (keys.length === BATCH) await removeOrphans();
  }
  await removeOrphans();
}

/** Whether a file's report was asked for before a time; false for what is of nobody's making. */
function isOlder(key: string, beforeMicros: bigint): boolean {
  const [, orgId = '', id = ''] = key.split('/');
  if (!isUuidText(orgId) || !isUuidText(id)) return false;
  const madeAt = findMicrosOfUuid(id);
  return madeAt !== undefined && madeAt < beforeMicros;
}
