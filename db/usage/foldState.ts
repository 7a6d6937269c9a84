import type { OrgDb } from '../orgDb.js';

/** How far an organization's totals are, as one snapshot sees it. */
export interface FoldState {
  /** Everything below this transaction is in the totals. */
  foldedXid: number;
  /** Whether there is nothing else: the totals alone are all that is known. */
  isAll: boolean;
}

/**
 * Looks whether a read of the totals has to read the log beside them. To plan a read of the log, which has a table for each month,
 * costs as much as to read a day's totals, and mostly there is nothing to read. To be asked in the transaction of the read,
 * which must see one snapshot.
 */
export async function readFoldState(orgDb: OrgDb): Promise<FoldState> {
  const [row] = await orgDb.rows<{ folded_xid: number; newest_xid: number }>(
    // The newest, one look into an index: of "is there one from here on" Postgres believes that a third of all rows would do.
    `select coalesce((select folded_xid from rollup_state where org_id = $1), 0)::bigint as folded_xid, coalesce(greatest(
       (select max(ingest_xid) from events where org_id = $1),
       (select max(ingest_xid) from event_adjustments where org_id = $1)), -1)::bigint as newest_xid`,
    [orgDb.orgId],
    'fold_state',
  );
  const foldedXid = row?.folded_xid ?? 0;
  return { foldedXid, isAll: (row?.newest_xid ?? -1) < foldedXid };
}
