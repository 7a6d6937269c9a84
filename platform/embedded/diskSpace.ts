import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';

/** One segment of Postgres' write-ahead log; a server that cannot make one stops. */
export const WAL_SEGMENT_BYTES = 16 * 1_048_576;

/** Whether a failed write found no room. */
export function isDiskFull(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/** What an ordinary user can still write where a folder lies, or will lie. */
export function freeBytes(folder: string): number {
  let found = folder;
  while (!existsSync(found)) found = dirname(found);
  const { bavail, bsize } = statfsSync(found);
  return bavail * bsize;
}
