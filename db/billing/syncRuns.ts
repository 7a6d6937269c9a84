import type { Feed } from '../../domain/billing/billedRow.js';
import type { SyncTrigger } from '../../domain/billing/connections.js';
import { isoFromMicros } from '../../domain/period.js';
import type { RunStatus } from '../../domain/runs/runs.js';
import type { OrgDb } from '../orgDb.js';

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

/** A sync of a connection as it is stored. */
export interface SyncRun {
  id: string;
  connectionId: string;
  trigger: SyncTrigger;
  status: RunStatus;
  stage: string;
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
  errorCode: string | null;
  errorMessage: string | null;
  createdAtMicros: bigint;
  startedAtMicros: bigint | null;
  finishedAtMicros: bigint | null;
}

interface SyncRunRow {
  id: string;
  connection_id: string;
  trigger: SyncTrigger;
  status: RunStatus;
  stage: string;
  waiting_code: string | null;
  waiting_message: string | null;
  waiting_until: bigint | null;
  done_chunks: number;
  total_chunks: number;
  revises_on: string | null;
  gap_run_id: string | null;
  result: SyncRunResult | null;
  error_code: string | null;
  error_message: string | null;
  created_at: bigint;
  started_at: bigint | null;
  finished_at: bigint | null;
}

const COLUMNS = `id, connection_id, trigger, status, stage, waiting_code, waiting_message, waiting_until, done_chunks, total_chunks, revises_on, gap_run_id, result,
  error_code, error_message, created_at, started_at, finished_at`;

function fromSyncRunRow(row: SyncRunRow): SyncRun {
  return {
    id: row.id,
    connectionId: row.connection_id,
    trigger: row.trigger,
    status: row.status,
    stage: row.stage,
    waitingCode: row.waiting_code,
    waitingMessage: row.waiting_message,
    waitingUntilMicros: row.waiting_until,
    doneChunks: row.done_chunks,
    totalChunks: row.total_chunks,
    revisesOn: row.revises_on,
    gapRunId: row.gap_run_id,
    result: row.result,
    errorCode: row.error_code,
    errorMessage: row.error_message,
    createdAtMicros: row.created_at,
    startedAtMicros: row.started_at,
    finishedAtMicros: row.finished_at,
  };
}

/** Stores a queued sync; undefined while another of the connection is open, which the unique index decides. */
export async function insertSyncRun(
  orgDb: OrgDb,
  run: { id: string; connectionId: string; trigger: SyncTrigger },
): Promise<SyncRun | undefined> {
  const rows = await orgDb.rows<SyncRunRow>(
    `insert into sync_runs (org_id, id, connection_id, trigger, status)
     select $1, $2, $3, $4, 'queued' where exists (select from billing_connections where org_id = $1 and id = $3 and removed_at is null)
     on conflict (org_id, connection_id) where status in ('queued', 'running') do nothing returning ${COLUMNS}`,
    [orgDb.orgId, run.id, run.connectionId, run.trigger],
  );
  return rows[0] && fromSyncRunRow(rows[0]);
}

export async function findOpenSyncRun(orgDb: OrgDb, connectionId: string): Promise<SyncRun | undefined> {
  const rows = await orgDb.rows<SyncRunRow>(
    `select ${COLUMNS} from sync_runs where org_id = $1 and connection_id = $2 and status in ('queued', 'running')`,
    [orgDb.orgId, connectionId],
  );
  return rows[0] && fromSyncRunRow(rows[0]);
}

export async function findSyncRun(orgDb: OrgDb, id: string): Promise<SyncRun | undefined> {
  const rows = await orgDb.rows<SyncRunRow>(
    `select ${COLUMNS} from sync_runs where org_id = $1 and id = $2`,
    [orgDb.orgId, id],
  );
  return rows[0] && fromSyncRunRow(rows[0]);
}

/** Syncs of a connection, newest first. */
export async function listSyncRuns(
  orgDb: OrgDb,
  connectionId: string,
  page: { limit: number; offset: number },
): Promise<SyncRun[]> {
  const rows = await orgDb.rows<SyncRunRow>(
    `select ${COLUMNS} from sync_runs where org_id = $1 and connection_id = $2 order by created_at desc, id desc limit $3 offset $4`,
    [orgDb.orgId, connectionId, page.limit, page.offset],
  );
  return rows.map(fromSyncRunRow);
}

/** Marks a sync as taken up by its workflow; false when it has ended. */
export async function markSyncRunning(orgDb: OrgDb, id: string): Promise<boolean> {
  const changed = await orgDb.run(
    `update sync_runs set status = 'running', stage = 'planning', started_at = coalesce(started_at, now()), heartbeat_at = now()
     where org_id = $1 and id = $2 and status in ('queued', 'running')`,
    [orgDb.orgId, id],
  );
  return changed === 1;
}

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
