import type { Feed } from '../../domain/billing/billedRow.js';
import type { SyncTrigger } from '../../domain/billing/connections.js';
import { isoFromMicros } from '../../domain/period.js';
import { column, defineEntity, findEntity, selectEntities } from '../entity.js';
import type { OrgDb } from '../orgDb.js';
import { defineRun, type Run } from '../runs/runTable.js';

/** A settled day whose bill the provider changed later. */
export interface RestatedDay {
  day: string;
  feed: Feed;
  report: string;
  /** For cost days: the sum before, and now. */
  old_usd: string | null;
  new_usd: string | null;
}

export interface ChunkResult {
  pages: number;
  rows: number;
  /** Days with new or changed content. */
  changed_days: string[];
  /** Unchanged days that are settled from now on: a later change would be a restatement. */
  settled_days: string[];
  /** Ended days that the provider left out; absent: none. */
  left_out_days?: string[];
  restated: RestatedDay[];
}

export interface SyncRunResult {
  pages: number;
  rows: number;
  changed_days: number;
  period_start: string | null;
  period_end: string | null;
  restated: RestatedDay[];
  /** The number of all restatements; the list is cut. */
  restated_count: number;
  /** Parts that could not be fetched; the next sync fetches them. */
  missing: { report: string; period_start: string; period_end: string; code: string; message: string }[];
  gap_run_id: string | null;
}

export interface NewSyncRun {
  id: string;
  connectionId: string;
  trigger: SyncTrigger;
}

export interface SyncRun extends Run, NewSyncRun {
  id: string;
  waitingCode: string | null;
  waitingMessage: string | null;
  waitingUntilMicros: bigint | null;
  doneChunks: number;
  totalChunks: number;
  /** The UTC day on which it fetches all days that may still be restated. */
  revisesOn: string | null;
  /** The gap run over the changed days, once it exists. */
  gapRunId: string | null;
  result: SyncRunResult | null;
}

/** A unique index permits one open sync for a connection; an ended connection gets none. */
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

/** Records what a run waits for and until when; null: it continues. Also a heartbeat. false: the run has ended. */
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

/** Records on an open sync which gap run follows its changes. */
export async function recordGapRunOfSync(orgDb: OrgDb, id: string, gapRunId: string): Promise<void> {
  await orgDb.run(
    `update sync_runs set gap_run_id = $3::uuid, heartbeat_at = now()
     where org_id = $1 and id = $2 and status in ('queued', 'running')`,
    [orgDb.orgId, id, gapRunId],
  );
}

/** Records on an open sync that an older gap run has to end before the next one can start. */
export async function noteSyncWaitsForGapRun(orgDb: OrgDb, id: string): Promise<void> {
  await orgDb.run(
    `update sync_runs set stage = 'waiting_for_gap_run', heartbeat_at = now()
     where org_id = $1 and id = $2 and status = 'running'`,
    [orgDb.orgId, id],
  );
}

export interface SyncChunk {
  ordinal: number;
  report: string;
  feed: Feed;
  bucketWidth: '1d' | '1h';
  startMicros: bigint;
  endMicros: bigint;
  status: 'pending' | 'done' | 'failed';
  restarts: number;
  result: ChunkResult | null;
  errorCode: string | null;
  errorMessage: string | null;
}

const CHUNK = defineEntity<SyncChunk>('sync_chunks', {
  ordinal: column(),
  report: column(),
  feed: column(),
  bucketWidth: column(),
  startMicros: column('starts_at'),
  endMicros: column('ends_at'),
  status: column(),
  restarts: column(),
  result: column(),
  errorCode: column(),
  errorMessage: column(),
});

type NewSyncChunk = Pick<SyncChunk, 'report' | 'feed' | 'bucketWidth' | 'startMicros' | 'endMicros'>;

/** Stores an open sync's chunks in order; a repeat changes nothing. Returns their number. */
export async function insertSyncChunks(
  inside: OrgDb,
  runId: string,
  chunks: readonly NewSyncChunk[],
  revisesOn: string | null,
): Promise<number> {
  if (!(await lockOpenRun(inside, runId))) return 0;
  await inside.run(
    `insert into sync_chunks (org_id, run_id, ordinal, report, feed, bucket_width, starts_at, ends_at)
       select $1::uuid, $2::uuid, ordinality - 1, report, feed, width, starts_at, ends_at
       from unnest($3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[])
         with ordinality as c(report, feed, width, starts_at, ends_at, ordinality)
       where not exists (select from sync_chunks where org_id = $1::uuid and run_id = $2::uuid)`,
    [
      inside.orgId,
      runId,
      chunks.map((chunk) => chunk.report),
      chunks.map((chunk) => chunk.feed),
      chunks.map((chunk) => chunk.bucketWidth),
      chunks.map((chunk) => isoFromMicros(chunk.startMicros)),
      chunks.map((chunk) => isoFromMicros(chunk.endMicros)),
    ],
  );
  const rows = await inside.rows<{ total_chunks: number }>(
    `update sync_runs set stage = 'fetching', heartbeat_at = now(), revises_on = coalesce(revises_on, $3),
         total_chunks = (select count(*) from sync_chunks c where c.org_id = $1 and c.run_id = $2)
       where org_id = $1 and id = $2 and status in ('queued', 'running') returning total_chunks`,
    [inside.orgId, runId, revisesOn],
  );
  return rows[0]?.total_chunks ?? 0;
}

export function findSyncChunk(orgDb: OrgDb, runId: string, ordinal: number): Promise<SyncChunk | undefined> {
  return findEntity(orgDb, CHUNK, { runId, ordinal });
}

export function listSyncChunks(orgDb: OrgDb, runId: string): Promise<SyncChunk[]> {
  return selectEntities(orgDb, CHUNK, { runId }, 'order by ordinal');
}

/**
 * Marks a chunk as read. false: another attempt has it, or the run has ended, in which case a later run may be newer.
 */
export async function finishSyncChunk(
  inside: OrgDb,
  runId: string,
  ordinal: number,
  sourceId: string | null,
  result: ChunkResult,
): Promise<boolean> {
  if (!(await lockOpenRun(inside, runId))) return false;
  const changed = await inside.run(
    `update sync_chunks set status = 'done', result = $4::jsonb, error_code = null, error_message = null
       where org_id = $1 and run_id = $2 and ordinal = $3 and status <> 'done' and ($5::uuid is null or source_id = $5)`,
    [inside.orgId, runId, ordinal, JSON.stringify(result), sourceId],
  );
  if (changed === 1) await countSyncChunks(inside, runId);
  return changed === 1;
}

export async function failSyncChunk(
  inside: OrgDb,
  runId: string,
  ordinal: number,
  error: { code: string; message: string },
): Promise<void> {
  if (!(await lockOpenRun(inside, runId))) return;
  await inside.run(
    `update sync_chunks set status = 'failed', error_code = $4, error_message = $5
       where org_id = $1 and run_id = $2 and ordinal = $3 and status <> 'done'`,
    [inside.orgId, runId, ordinal, error.code, error.message.slice(0, 1_000)],
  );
  await countSyncChunks(inside, runId);
}

/** Keeps the run from ending until the transaction ends; false: it has ended. */
async function lockOpenRun(inside: OrgDb, runId: string): Promise<boolean> {
  const rows = await inside.rows(
    `select from sync_runs where org_id = $1 and id = $2 and status in ('queued', 'running') for update`,
    [inside.orgId, runId],
  );
  return rows.length === 1;
}

/** Computes the run's progress from its chunks, so that repeated chunks do not distort it. */
async function countSyncChunks(orgDb: OrgDb, runId: string): Promise<void> {
  await orgDb.run(
    `update sync_runs set heartbeat_at = now(), stage = case when status = 'running' then 'fetching' else stage end,
       waiting_code = null, waiting_message = null, waiting_until = null,
       done_chunks = (select count(*) from sync_chunks c where c.org_id = $1 and c.run_id = $2 and c.status <> 'pending')
     where org_id = $1 and id = $2 and status in ('queued', 'running')`,
    [orgDb.orgId, runId],
  );
}

/** Restarts a chunk whose paging changed meanwhile. Returns the number of its restarts. */
export async function restartSyncChunk(inside: OrgDb, runId: string, ordinal: number): Promise<number> {
  await inside.run('delete from sync_pages where org_id = $1 and run_id = $2 and ordinal = $3', [
    inside.orgId,
    runId,
    ordinal,
  ]);
  const rows = await inside.rows<{ restarts: number }>(
    'update sync_chunks set restarts = restarts + 1 where org_id = $1 and run_id = $2 and ordinal = $3 returning restarts',
    [inside.orgId, runId, ordinal],
  );
  return rows[0]?.restarts ?? 0;
}
