import type { Database } from '../../db/client.js';
import { listOrganizations } from '../../db/installation/organizations.js';
import { findUuid, publicId } from '../../domain/ids.js';
import type { Config } from '../../platform/config.js';
import { openDataDir } from '../../platform/embedded/dataDir.js';
import { startPostgres } from '../../platform/embedded/postgres.js';
import { hasCluster } from '../../platform/embedded/postgresPlace.js';
import { embeddedDatabaseUrl, readRunningState } from '../../platform/runtimeFile.js';
import { StartError } from '../../platform/startError.js';
import { explainDatabaseError, requireCurrentSchema, useToolDatabase } from './prepareDatabase.js';

/**
 * Runs a command on the service's database: the one that the settings name, else the embedded one of the running start,
 * else the embedded one, started for the duration of the work.
 * @throws StartError when the database is unavailable or no service has prepared it.
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
  return useToolDatabase(url, work).catch((error: unknown) => {
    throw explainDatabaseError(error, url);
  });
}

/** @throws StartError for an installation with an external database. */
export function refuseOwnDatabase(config: Config, what: string): void {
  if (config.databaseUrl === undefined) return;
  throw new StartError(
    `DATABASE_URL names a database of your own, whose backups are yours to make (pg_basebackup, or what its provider offers): ${what} is for the embedded Postgres.`,
  );
}

/**
 * Runs `work` on the embedded Postgres of the data directory: the running start's, else one that is started for the
 * duration of the work, with the data directory locked.
 * @throws StartError where no service has left data: a command creates none, so that a typing error in DATA_DIR does
 * not look like an empty service.
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

/** The embedded database of a start that runs on this data directory. */
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

/**
 * The organization of a command: the one that `--org` names by id or by name, else the only one besides the demo.
 * @throws StartError listing them when there is a choice.
 */
export async function chooseOrganization(database: Database, wanted: string | undefined): Promise<string> {
  const organizations = await listOrganizations(database);
  const id = wanted === undefined ? undefined : findUuid('org', wanted);
  const own = organizations.filter((organization) => !organization.isDemo);
  const named = organizations.filter(({ id: uuid, name }) => uuid === id || name === wanted);
  const chosen = wanted === undefined ? own[0] : named.length === 1 ? named[0] : undefined;
  if (chosen && (wanted !== undefined || own.length === 1)) return chosen.id;
  if (organizations.length === 0) throw new StartError('There is no organization yet: run npm start once.');
  const list = organizations.map(({ id: uuid, name }) => `  ${publicId('org', uuid)}  ${name}`).join('\n');
  const why =
    wanted === undefined || named.length > 1 ? 'Which organization?' : `There is no organization ${wanted}.`;
  throw new StartError(`${why} Give --org with one of these:\n${list}`);
}
