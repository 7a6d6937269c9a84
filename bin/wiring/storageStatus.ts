import type { Database } from '../../db/client.js';
import { findFullStorage } from '../../db/health.js';
import { freeBytes, WAL_SEGMENT_BYTES } from '../../platform/embedded/dataDir.js';
import { readRunningState } from '../../platform/runtimeFile.js';

/** State of the database's disk; `reason` has the fault and the remedy, without a path. */
export interface StorageStatus {
  storage: 'ok' | 'low' | 'full';
  reason?: string;
}

/** Milliseconds for which the state is cached. */
const STORAGE_STATUS_MS = 2_000;
/** A refused write counts for as long as its client has to wait, milliseconds. */
const REFUSED_WRITE_MS = 30_000;
/** Postgres stops when it cannot create a segment of its log; below this an operator should act. */
const LOW_BYTES = 4 * WAL_SEGMENT_BYTES;

const FULL =
  'The disk of the database is full: calls cannot be stored and answer 503. Free some space; the service then goes on by itself.';
const LOW = 'The disk of the database has less than 64 MB left: free some space before Postgres has to stop.';

interface StorageDeps {
  database: Pick<Database, 'storageFullAtMs'>;
  findFull: () => Promise<'ok' | 'full' | 'unknown'>;
  /** Folder of the database's files; undefined: on another machine. */
  findDirectory: () => string | undefined;
  nowMs: () => number;
}

/** Queries Postgres and the file system, at most every two seconds, however often /readyz is read. */
export function storageStatus(deps: StorageDeps): () => Promise<StorageStatus> {
  let askedMs = Number.NEGATIVE_INFINITY;
  let answer: Promise<StorageStatus> = Promise.resolve({ storage: 'ok' });
  return () => {
    if (deps.nowMs() - askedMs > STORAGE_STATUS_MS) {
      askedMs = deps.nowMs();
      answer = inspectStorage(deps);
    }
    return answer;
  };
}

async function inspectStorage({
  database,
  findFull,
  findDirectory,
  nowMs,
}: StorageDeps): Promise<StorageStatus> {
  const probed = await findFull();
  const refusedMs = database.storageFullAtMs;
  const isRefused = refusedMs !== undefined && nowMs() - refusedMs < REFUSED_WRITE_MS;
  return judgeStorage({
    isFull: probed === 'full' || isRefused,
    freeBytes: findFreeBytes(findDirectory),
  });
}

/** The common rule of /readyz, `./trueup status` and `./trueup doctor`. */
export function judgeStorage({
  isFull,
  freeBytes,
}: {
  isFull: boolean;
  freeBytes?: number | undefined;
}): StorageStatus {
  if (isFull || freeBytes === 0) return { storage: 'full', reason: FULL };
  if (freeBytes !== undefined && freeBytes < LOW_BYTES) return { storage: 'low', reason: LOW };
  return { storage: 'ok' };
}

export function findFreeBytes(findDirectory: () => string | undefined): number | undefined {
  try {
    const directory = findDirectory();
    return directory === undefined ? undefined : freeBytes(directory);
  } catch {
    return undefined;
  }
}

/** For the API of an installation: its database's disk, on this machine where `npm start` runs the database. */
export function storageStatusOf(
  database: Database,
  dataDir: string | undefined,
): () => Promise<StorageStatus> {
  return storageStatus({
    database,
    findFull: () => findFullStorage(database),
    findDirectory: () =>
      dataDir === undefined ? undefined : readRunningState(dataDir)?.parts.postgres.directory,
    nowMs: () => performance.now(),
  });
}
