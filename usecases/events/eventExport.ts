import { streamEventTexts } from '../../db/events/events.js';
import { type OrgDb, readClock } from '../../db/orgDb.js';

/**
 * The events of a window as texts, oldest first (`streamEventTexts`), as ingested up to `snapshotMicros`, the
 * database's present time.
 */
export async function openEventExport(
  orgDb: OrgDb,
  window: { fromMicros: bigint; toMicros: bigint },
  includePayload: boolean,
): Promise<{ snapshotMicros: bigint; partitions: AsyncGenerator<(string | null)[][]> }> {
  const snapshotMicros = await readClock(orgDb);
  return {
    snapshotMicros,
    partitions: streamEventTexts(orgDb, { ...window, snapshotMicros }, includePayload),
  };
}
