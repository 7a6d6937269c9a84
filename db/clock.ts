import type { OrgDb } from './orgDb.js';

/** The database's clock at this moment, microseconds since 1970: not the time at which the transaction began. */
export async function readClock(orgDb: OrgDb): Promise<bigint> {
  const [row] = await orgDb.rows<{ at: bigint }>('select clock_timestamp() as at', [], 'clock-read');
  if (!row) throw new Error('a clock answers');
  return row.at;
}
