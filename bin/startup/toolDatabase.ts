import type { Database } from '../../db/client.js';
import type { Config } from '../../platform/config.js';
import { openDataDir } from '../../platform/embedded/dataDir.js';
import { startPostgres } from '../../platform/embedded/postgres.js';
import { embeddedDatabaseUrl, readRunningState } from '../../platform/runtimeFile.js';
import { StartError } from '../../platform/startError.js';
import { explainDatabaseError, openToolDatabase } from './firstStart.js';
import { requireCurrentSchema } from './schema.js';

/**
 * Runs a command's work on the service's database: the one that the settings name, else the embedded one of the start
 * that is running, else the embedded one, started for as long as the work takes.
 * @throws StartError when the database cannot be had or no service has prepared it.
 */
export async function withToolDatabase<T>(
  config: Config,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const url = config.databaseUrl ?? runningDatabaseUrl(config.dataDir);
  if (url !== undefined) return useDatabase(url, config.databaseDirectUrl ?? url, work);
  const dataDir = openDataDir(config.dataDir);
  try {
    const server = await startPostgres({ dataDir: config.dataDir, cacheDir: config.cacheDir });
    try {
      return await useDatabase(server.url, server.url, work);
    } finally {
      await server.stop();
    }
  } finally {
    dataDir.release();
  }
}

/** The embedded database of a start that is running on this data directory. */
export function runningDatabaseUrl(dataDir: string): string | undefined {
  const postgres = readRunningState(dataDir)?.parts.postgres;
  if (postgres?.address === undefined) return undefined;
  if (!postgres.embedded) {
    throw new StartError(
      'The running service uses a database that DATABASE_URL named: set DATABASE_URL here too.',
    );
  }
  return embeddedDatabaseUrl(dataDir, postgres.address);
}

async function useDatabase<T>(
  url: string,
  directUrl: string,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  await requireCurrentSchema(directUrl);
  const database = openToolDatabase(url);
  try {
    return await work(database);
  } catch (error) {
    throw explainDatabaseError(error, url);
  } finally {
    await database.close();
  }
}
