import type { BlobStore } from '../../adapters/blobs/blobStore.js';
import type { RetentionWork } from '../../db/installation/retentionRuns.js';
import { type InvoiceName, listMissingInvoices } from '../../db/invoices/invoices.js';
import { findMicrosOfUuid, isUuidText } from '../../domain/ids.js';
import { MICROS_PER_DAY } from '../../domain/period.js';

/** Invoices of one query. */
const BATCH_INVOICES = 500;
const FOLDER = 'invoices/';

/**
 * Deletes files of invoices without a row: of uploads whose process died, of deleted invoices and organizations. An
 * upload in progress has no row yet, so files of less than a day stay. A repeat finds nothing left.
 */
export async function removeOrphanedFiles(
  { database, nowMicros, report }: Pick<RetentionWork, 'database' | 'nowMicros' | 'report'>,
  blobs: BlobStore,
): Promise<void> {
  const remove = async (files: Map<string, { name: InvoiceName; keys: string[] }>) => {
    const missing = await listMissingInvoices(
      database,
      [...files.values()].map(({ name }) => name),
    );
    const keys = missing.flatMap(({ orgId, id }) => files.get(`${orgId}/${id}`)?.keys ?? []);
    for (const key of keys) await blobs.delete(key);
    await report({ rows: keys.length, partitions: [] });
  };
  let files = new Map<string, { name: InvoiceName; keys: string[] }>();
  for await (const { key } of blobs.stream(FOLDER)) {
    const name = ownerOf(key, nowMicros - MICROS_PER_DAY);
    if (!name) continue;
    const place = `${name.orgId}/${name.id}`;
    if (!files.has(place) && files.size >= BATCH_INVOICES) {
      await remove(files);
      files = new Map();
    }
    const known = files.get(place) ?? { name, keys: [] };
    known.keys.push(key);
    files.set(place, known);
  }
  if (files.size > 0) await remove(files);
}

/** The invoice of a file; undefined for a younger file, and for a name that the product does not write. */
function ownerOf(key: string, beforeMicros: bigint): InvoiceName | undefined {
  const [, orgId = '', id = ''] = key.split('/');
  if (!isUuidText(orgId) || !isUuidText(id)) return undefined;
  const madeAt = findMicrosOfUuid(id);
  return madeAt !== undefined && madeAt < beforeMicros ? { orgId, id } : undefined;
}
