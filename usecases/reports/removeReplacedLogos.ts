import type { BlobStore } from '../../adapters/blobs/blobStore.js';
import type { RetentionWork } from '../../db/installation/retentionRuns.js';
import { type LogoName, listReplacedLogos } from '../../db/reports/branding.js';
import { findMicrosOfUuid, isUuidText } from '../../domain/ids.js';
import { MICROS_PER_DAY } from '../../domain/period.js';
import { logoKey } from '../../domain/reports/branding.js';

/** Logos of one query. */
const BATCH_LOGOS = 500;
const FOLDER = 'logos/';

/**
 * Deletes files of logos that no organization shows: of changes whose process died, and of deleted organizations. A
 * change in progress has no row yet, so files of less than a day stay. A repeat finds nothing left.
 */
export async function removeReplacedLogos(
  { database, nowMicros, report }: Pick<RetentionWork, 'database' | 'nowMicros' | 'report'>,
  blobs: BlobStore,
): Promise<void> {
  const remove = async (names: readonly LogoName[]) => {
    const replaced = await listReplacedLogos(database, names);
    for (const { orgId, id } of replaced) await blobs.delete(logoKey(orgId, id));
    await report({ rows: replaced.length, partitions: [] });
  };
  const names: LogoName[] = [];
  for await (const { key } of blobs.stream(FOLDER)) {
    const [, orgId = '', file = ''] = key.split('/');
    const id = file.replace(/\.png$/, '');
    if (!isUuidText(orgId) || !isUuidText(id)) continue;
    if ((findMicrosOfUuid(id) ?? nowMicros) > nowMicros - MICROS_PER_DAY) continue;
    names.push({ orgId, id });
    if (names.length >= BATCH_LOGOS) await remove(names.splice(0));
  }
  if (names.length > 0) await remove(names);
}
