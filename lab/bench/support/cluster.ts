import { chmodSync, existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { type Database, openDatabase } from '../../../db/client.js';
import { migrate } from '../../../db/migrate.js';
import { loadConfig } from '../../../platform/config.js';
import { startPostgres } from '../../../platform/embedded/postgres.js';
import { seedPrices } from '../../../usecases/pricing/priceSeed.js';

/** A separate Postgres with the product's settings in a temporary folder. */
export interface BenchCluster {
  folder: string;
  version: string;
  /** Creates a migrated database with prices; returns the connection string of its owner, the superuser. */
  makeDatabase(name: string): Promise<string>;
  stop(): Promise<void>;
}

/** @param keep a folder that outlives the bench, so that the next run can use its rows. */
export async function startBenchCluster(keep?: string): Promise<BenchCluster> {
  const folder = keep ?? realpathSync(mkdtempSync(join(tmpdir(), 'trueup-bench-')));
  if (existsSync(folder)) chmodSync(folder, 0o711);
  const server = await startPostgres({ dataDir: folder, cacheDir: loadConfig().cacheDir });
  return {
    folder,
    version: server.version,
    makeDatabase: (name) => makeDatabase(server.url, name),
    stop: async () => {
      await server.stop();
      if (keep !== undefined) return;
      rmSync(folder, { recursive: true, force: true });
      // A cluster that root starts is elsewhere if other users cannot access the folder.
      if (server.directory !== join(folder, 'pg'))
        rmSync(dirname(server.directory), { recursive: true, force: true });
    },
  };
}

async function makeDatabase(serverUrl: string, name: string): Promise<string> {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  const found = await client.query('select from pg_database where datname = $1', [name]);
  if (found.rowCount === 0) await client.query(`create database ${name}`);
  await client.end();
  await migrate(url.toString());
  const database = openBenchDatabase(url.toString(), 1);
  await seedPrices(database);
  await database.close();
  return url.toString();
}

/** Statements of a bench may take minutes. */
const STATEMENT_TIMEOUT_MS = 1_800_000;

/** The name of a bench's own connections. */
export const BENCH_APPLICATION = 'trueup-bench';

export function openBenchDatabase(url: string, poolMax: number): Database {
  return openDatabase({
    url,
    poolMax,
    applicationName: BENCH_APPLICATION,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
}

/** The work that autovacuum does in its own time. */
export async function vacuum(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('vacuum (analyze)');
  await client.end();
}
