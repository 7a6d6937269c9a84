import { streamEventLines } from '../../db/events/events.js';
import { type OrgDb, readClock } from '../../db/orgDb.js';

/**
 * The events of a window as lines of COPY, oldest first (`streamEventLines`), as ingested up to `snapshotMicros`, the
 * database's present time.
 */
export async function openEventExport(
  orgDb: OrgDb,
  window: { fromMicros: bigint; toMicros: bigint },
  includePayload: boolean,
): Promise<{ snapshotMicros: bigint; blocks: AsyncGenerator<Buffer> }> {
  const snapshotMicros = await readClock(orgDb);
  return {
    snapshotMicros,
    blocks: streamEventLines(orgDb, { ...window, snapshotMicros }, includePayload),
  };
}
