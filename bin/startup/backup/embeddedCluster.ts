import type { Config } from '../../../platform/config.js';
import { openDataDir } from '../../../platform/embedded/dataDir.js';
import { startPostgres } from '../../../platform/embedded/postgres.js';
import { StartError } from '../../../platform/startError.js';
import { runningDatabaseUrl } from '../toolDatabase.js';

/** @throws StartError for an installation whose database is somebody else's to look after. */
export function refuseOwnDatabase(config: Config, what: string): void {
  if (config.databaseUrl === undefined) return;
  throw new StartError(
    `DATABASE_URL names a database of your own, whose backups are yours to make (pg_basebackup, or what its provider offers): ${what} is for the embedded Postgres.`,
  );
}

/**
 * Runs `work` on the embedded Postgres of the data directory: that of the start which is running, else one that is
 * started for as long as the work takes, with the data directory for itself.
 */
export async function withEmbeddedCluster<T>(
  config: Config,
  work: (url: string, isRunning: boolean) => Promise<T>,
): Promise<T> {
  const url = runningDatabaseUrl(config.dataDir);
  if (url !== undefined) return work(url, true);
  const dataDir = openDataDir(config.dataDir);
  try {
    const server = await startPostgres({ dataDir: config.dataDir, cacheDir: config.cacheDir });
    try {
      return await work(server.url, false);
    } finally {
      await server.stop();
    }
  } finally {
    dataDir.release();
  }
}
