import type { BlobStore } from '../../adapters/blobs/blobStore.js';
import type { RetentionWork } from '../../db/installation/retentionRuns.js';
import { deleteReports, listExpiredReports, listKeysOfNoReport } from '../../db/reports/reports.js';
import { findMicrosOfUuid, isUuidText } from '../../domain/ids.js';
import { MICROS_PER_DAY } from '../../domain/period.js';
import { REPORT_KEPT_DAYS } from '../../domain/reports/report.js';

/** Reports of one removal, and files of one query. */
const BATCH = 500;
const FOLDER = 'reports/';

/**
 * Deletes expired reports, each file before its row, so that after an interruption the next run still finds the row. Then
 * deletes files without a report: of attempts whose process died, and of deleted organizations. Files of less than a day
 * stay. A repeat finds nothing left.
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

/** Whether a file's report was requested before a time; false for a name that the product does not write. */
function isOlder(key: string, beforeMicros: bigint): boolean {
  const [, orgId = '', id = ''] = key.split('/');
  if (!isUuidText(orgId) || !isUuidText(id)) return false;
  const madeAt = findMicrosOfUuid(id);
  return madeAt !== undefined && madeAt < beforeMicros;
}
