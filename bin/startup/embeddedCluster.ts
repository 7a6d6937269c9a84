import type { Config } from '../../platform/config.js';
import { openDataDir } from '../../platform/embedded/dataDir.js';
import { startPostgres } from '../../platform/embedded/postgres.js';
import { hasCluster } from '../../platform/embedded/postgresPlace.js';
import { embeddedDatabaseUrl, readRunningState } from '../../platform/runtimeFile.js';
import { StartError } from '../../platform/startError.js';

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
 * @throws StartError where no service has left data: a command makes none, a slip in DATA_DIR must not look like an
 * empty service.
 */
export async function withEmbeddedCluster<T>(config: Config, work: (url: string) => Promise<T>): Promise<T> {
  const url = runningDatabaseUrl(config.dataDir);
  if (url !== undefined) return work(url);
  if (!hasCluster(config.dataDir))
    throw new StartError(
      `There is no data in DATA_DIR ${config.dataDir}: run npm start first, or set DATA_DIR to the folder of the service.`,
    );
  const dataDir = openDataDir(config.dataDir);
  try {
    const server = await startPostgres({ dataDir: config.dataDir, cacheDir: config.cacheDir });
    try {
      return await work(server.url);
    } finally {
      await server.stop();
    }
  } finally {
    dataDir.release();
  }
}

/** The embedded database of a start that is running on this data directory. */
function runningDatabaseUrl(dataDir: string): string | undefined {
  const postgres = readRunningState(dataDir)?.parts.postgres;
  if (postgres?.address === undefined) return undefined;
  if (!postgres.embedded) {
    throw new StartError(
      'The running service uses a database that DATABASE_URL named: set DATABASE_URL here too.',
    );
  }
  return embeddedDatabaseUrl(dataDir, postgres.address);
}
