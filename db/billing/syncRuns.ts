import type { Feed } from '../../domain/billing/billedRow.js';
import type { SyncTrigger } from '../../domain/billing/connections.js';
import { isoFromMicros } from '../../domain/period.js';
import { column } from '../entity.js';
import type { OrgDb } from '../orgDb.js';
import { defineRun, type Run } from '../runs/runTable.js';

/** A day of a bill that the provider had closed and told otherwise later. */
export interface RestatedDay {
  day: string;
  feed: Feed;
  report: string;
  /** Of cost days: what was billed before, and now. */
  old_usd: string | null;
  new_usd: string | null;
}

/** What one chunk brought. */
export interface ChunkResult {
  pages: number;
  rows: number;
  /** Days whose content is new or other than before. */
  changed_days: string[];
  /** Days that said the same and can no longer change without being a restatement. */
  settled_days: string[];
  /** Days that have ended and that the provider left out; absent: none. */
  left_out_days?: string[];
  restated: RestatedDay[];
}

/** What a sync found, over all of its chunks. */
export interface SyncRunResult {
  pages: number;
  rows: number;
  changed_days: number;
  period_start: string | null;
  period_end: string | null;
  restated: RestatedDay[];
  /** All of them; the list is cut. */
  restated_count: number;
  /** What could not be fetched, taken up by the next sync. */
  missing: { report: string; period_start: string; period_end: string; code: string; message: string }[];
  gap_run_id: string | null;
}

export interface NewSyncRun {
  id: string;
  connectionId: string;
  trigger: SyncTrigger;
}

/** A sync of a connection as it is stored. */
export interface SyncRun extends Run, NewSyncRun {
  id: string;
  waitingCode: string | null;
  waitingMessage: string | null;
  waitingUntilMicros: bigint | null;
  doneChunks: number;
  totalChunks: number;
  /** The UTC day on which it asks again for all days that may still be restated. */
  revisesOn: string | null;
  /** The gap run over what it has changed, once there is one. */
  gapRunId: string | null;
  result: SyncRunResult | null;
}

/** A connection has one open sync, which a unique index decides; one that has ended gets none. */
export const SYNC_RUNS = defineRun<SyncRun, NewSyncRun>(
  'billing_sync',
  {
    connectionId: column(),
    trigger: column(),
    waitingCode: column(),
    waitingMessage: column(),
    waitingUntilMicros: column(),
    doneChunks: column(),
    totalChunks: column(),
    revisesOn: column(),
    gapRunId: column(),
    result: column(),
  },
  ({ connectionId }) =>
    `exists (select from billing_connections where org_id = $1 and id = ${connectionId} and removed_at is null)`,
);

/** Says what a run waits for and until when; null: it goes on. It is a sign of life too. False when the run has ended. */
export async function noteSyncWaiting(
  orgDb: OrgDb,
  runId: string,
  waiting: { code: string; message: string; untilMicros: bigint } | null,
): Promise<boolean> {
  const changed = await orgDb.run(
    `update sync_runs set heartbeat_at = now(), stage = $3, waiting_code = $4, waiting_message = $5, waiting_until = $6
     where org_id = $1 and id = $2 and status = 'running'`,
    [
      orgDb.orgId,
      runId,
      waiting ? 'waiting_for_provider' : 'fetching',
      waiting?.code ?? null,
      waiting?.message.slice(0, 1_000) ?? null,
      waiting ? isoFromMicros(waiting.untilMicros) : null,
    ],
  );
  return changed === 1;
}

/** Notes on an open sync which gap run follows what it has changed. */
export async function recordGapRunOfSync(orgDb: OrgDb, id: string, gapRunId: string): Promise<void> {
  await orgDb.run(
    `update sync_runs set gap_run_id = $3::uuid, heartbeat_at = now()
     where org_id = $1 and id = $2 and status in ('queued', 'running')`,
    [orgDb.orgId, id, gapRunId],
  );
}

/** Says on an open sync that an older gap run is at work, which has to end before the next one can start. */
export async function noteSyncWaitsForGapRun(orgDb: OrgDb, id: string): Promise<void> {
  await orgDb.run(
    `update sync_runs set stage = 'waiting_for_gap_run', heartbeat_at = now()
     where org_id = $1 and id = $2 and status = 'running'`,
    [orgDb.orgId, id],
  );
}
