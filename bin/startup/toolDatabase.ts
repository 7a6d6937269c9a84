import type { Database } from '../../db/client.js';
import type { Config } from '../../platform/config.js';
import { withEmbeddedCluster } from './embeddedCluster.js';
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
  const { databaseUrl, databaseDirectUrl } = config;
  if (databaseUrl !== undefined) {
    await requireCurrentSchema(databaseDirectUrl ?? databaseUrl);
    return useDatabase(databaseUrl, work);
  }
  return withEmbeddedCluster(config, async (url) => {
    await requireCurrentSchema(url, 'start this version once with npm start');
    return useDatabase(url, work);
  });
}

async function useDatabase<T>(url: string, work: (database: Database) => Promise<T>): Promise<T> {
  const database = openToolDatabase(url);
  try {
    return await work(database);
  } catch (error) {
    throw explainDatabaseError(error, url);
  } finally {
    await database.close();
  }
}
