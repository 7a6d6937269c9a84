import { lockByName } from '../locks.js';
import type { OrgDb } from '../orgDb.js';
import { type RunKind, runTable } from './runStates.js';

/** Ids of the organization's runs of a kind that are queued or at work, the oldest first; `limit` at most. */
export async function listOpenRuns(orgDb: OrgDb, kind: RunKind, limit: number): Promise<string[]> {
  // A source that a sync made is no run: the sync is.
  const own = kind === 'billing_import' ? "and kind = 'file'" : '';
  const rows = await orgDb.rows<{ id: string }>(
    `select id from ${runTable(kind)} where org_id = $1 and status in ('queued', 'running') ${own}
     order by created_at, id limit $2`,
    [orgDb.orgId, limit],
  );
  return rows.map((row) => row.id);
}

/** Lets nobody else open a run of the kind for the organization until the transaction ends. */
export async function lockOpenRuns(orgDb: OrgDb, kind: RunKind): Promise<void> {
  await lockByName(orgDb, 'openRuns', `${kind} ${orgDb.orgId}`);
}
