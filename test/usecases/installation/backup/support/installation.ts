import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { type Database, openDatabase } from '../../../../../db/client.js';
import { migrate } from '../../../../../db/migrate.js';
import { loadConfig } from '../../../../../platform/config.js';
import { openDataDir } from '../../../../../platform/embedded/dataDir.js';
import { startPostgres } from '../../../../../platform/embedded/postgres.js';
import { RuntimeFile } from '../../../../../platform/runtimeFile.js';
import { seedPrices } from '../../../../../usecases/pricing/priceSeed.js';
import { startTypeScript } from '../../../../support/childProgram.js';
import { environmentOf, type TestDatabase } from '../../../../support/database.js';
import { removeCluster } from '../../../../support/postgres.js';
import { makeTestFolder } from '../../../../support/testFolder.js';

/** As durable as in production, with a small footprint. */
const SETTINGS = { shared_buffers: '32MB', max_wal_size: '512MB' };

/** A data directory with an embedded Postgres that runs as under `npm start`: the commands find it by its files. */
export interface TestInstallation extends TestDatabase {
  dataDir: string;
  /** Folder of the cluster. */
  directory: string;
  /** Stops Postgres and releases the data directory; the files stay. */
  stop(): Promise<void>;
}

/** Starts Postgres on a data directory, new or restored, and records it as a start would. */
export async function startInstallation(dataDir = makeTestFolder('backup')): Promise<TestInstallation> {
  const held = openDataDir(dataDir);
  const server = await startPostgres({ dataDir, cacheDir: loadConfig().cacheDir, settings: SETTINGS });
  const runtime = new RuntimeFile(dataDir, 'test');
  runtime.set('postgres', { status: 'up', embedded: true, address: `127.0.0.1:${server.port}` });
  await migrate(server.url);
  const database: Database = openDatabase({
    url: server.url,
    poolMax: 8,
    applicationName: 'test',
    statementTimeoutMs: 20_000,
  });
  await seedPrices(database);
  const superuser = new pg.Pool({ connectionString: server.url, max: 2 });
  superuser.on('error', () => undefined);
  const stop = async () => {
    await database.close();
    await superuser.end();
    runtime.remove();
    await server.stop();
    held.release();
  };
  const { url, directory } = server;
  const environment = environmentOf(url);
  return { dataDir, directory, url, environment, database, superuser, stop, close: stop };
}

/** Deletes a data directory and its cluster in any place. */
export function removeDataDir(dataDir: string): void {
  const location = join(dataDir, 'pg-location');
  if (existsSync(location)) removeCluster(dataDir, readFileSync(location, 'utf8').trim());
  rmSync(dataDir, { recursive: true, force: true });
}

/** Exit code and output of a command. */
export interface CommandEnd {
  exit: number | string;
  output: string;
}

/** Runs a command of ./trueup, such as `export data`, as a separate process, to its end. */
export async function runCommand(
  command: string,
  args: readonly string[],
  environment: Record<string, string>,
): Promise<CommandEnd> {
  const program = startTypeScript('bin/trueup.ts', [...command.split(' '), ...args], environment);
  return { exit: await program.ended(), output: program.output() };
}
