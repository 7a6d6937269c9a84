import type { Feed } from '../../domain/billing/billedRow.js';
import { isoFromMicros } from '../../domain/period.js';
import type { OrgDb } from '../orgDb.js';
import type { ChunkResult } from './syncRuns.js';

/** A request series of a sync. */
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

interface SyncChunkRow {
  ordinal: number;
  report: string;
  feed: Feed;
  bucket_width: '1d' | '1h';
  starts_at: bigint;
  ends_at: bigint;
  status: SyncChunk['status'];
  restarts: number;
  result: ChunkResult | null;
  error_code: string | null;
  error_message: string | null;
}

const CHUNK_COLUMNS =
  'ordinal, report, feed, bucket_width, starts_at, ends_at, status, restarts, result, error_code, error_message';

function fromSyncChunkRow(row: SyncChunkRow): SyncChunk {
  return {
    ordinal: row.ordinal,
    report: row.report,
    feed: row.feed,
    bucketWidth: row.bucket_width,
    startMicros: row.starts_at,
    endMicros: row.ends_at,
    status: row.status,
    restarts: row.restarts,
    result: row.result,
    errorCode: row.error_code,
    errorMessage: row.error_message,
  };
}

export type NewSyncChunk = Pick<SyncChunk, 'report' | 'feed' | 'bucketWidth' | 'startMicros' | 'endMicros'>;

/**
 * Stores what an open sync asks for, in its order; a repeat changes nothing. `revisesOn` is the day on which it asks for all
 * days that may still be restated. Returns how many chunks it has.
 */
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

export async function findSyncChunk(
  orgDb: OrgDb,
  runId: string,
  ordinal: number,
): Promise<SyncChunk | undefined> {
  const rows = await orgDb.rows<SyncChunkRow>(
    `select ${CHUNK_COLUMNS} from sync_chunks where org_id = $1 and run_id = $2 and ordinal = $3`,
    [orgDb.orgId, runId, ordinal],
  );
  return rows[0] && fromSyncChunkRow(rows[0]);
}

export async function listSyncChunks(orgDb: OrgDb, runId: string): Promise<SyncChunk[]> {
  const rows = await orgDb.rows<SyncChunkRow>(
    `select ${CHUNK_COLUMNS} from sync_chunks where org_id = $1 and run_id = $2 order by ordinal`,
    [orgDb.orgId, runId],
  );
  return rows.map(fromSyncChunkRow);
}

/**
 * Notes that a chunk is read, and on the run how many are; call it in the transaction that makes it count. False when
 * another attempt has read it or is at work on it (`sourceId` is that of this attempt, null where it stored nothing),
 * and when the run has ended: a later one may have fetched the same days since, and what it found is newer.
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

/** Notes that a chunk is left to the next sync. */
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

/** Keeps the run from ending until the transaction does; false when it has ended. */
async function lockOpenRun(inside: OrgDb, runId: string): Promise<boolean> {
  const rows = await inside.rows(
    `select from sync_runs where org_id = $1 and id = $2 and status in ('queued', 'running') for update`,
    [inside.orgId, runId],
  );
  return rows.length === 1;
}

/** The run's progress from its chunks, so that it is right however often one was repeated. */
async function countSyncChunks(orgDb: OrgDb, runId: string): Promise<void> {
  await orgDb.run(
    `update sync_runs set heartbeat_at = now(), stage = case when status = 'running' then 'fetching' else stage end,
       waiting_code = null, waiting_message = null, waiting_until = null,
       done_chunks = (select count(*) from sync_chunks c where c.org_id = $1 and c.run_id = $2 and c.status <> 'pending')
     where org_id = $1 and id = $2 and status in ('queued', 'running')`,
    [orgDb.orgId, runId],
  );
}

/** A chunk begins anew: its paging changed under way. Returns how often it has. */
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
