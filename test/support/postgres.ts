import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { loadConfig } from '../../platform/config.js';
import { startPostgres } from '../../platform/embedded/postgres.js';
import { makeTestFolder } from './testFolder.js';

/**
 * A small footprint for many databases. Nothing waits for the disk: tests kill processes, whose written data stay; only
 * a power failure would lose them, which no test simulates. Programs that tests start with separate servers keep the
 * product's settings.
 */
const TEST_SETTINGS = {
  shared_buffers: '128MB',
  max_wal_size: '1GB',
  max_connections: '200',
  fsync: 'off',
  full_page_writes: 'off',
};

/** A Postgres in a temporary folder that is deleted with it. */
export interface TestPostgres {
  url: string;
  stop(): Promise<void>;
}

export async function startTestPostgres(): Promise<TestPostgres> {
  const dataDir = makeTestFolder('postgres');
  const server = await startPostgres({ dataDir, cacheDir: loadConfig().cacheDir, settings: TEST_SETTINGS });
  return {
    url: server.url,
    stop: async () => {
      await server.stop();
      removeCluster(dataDir, server.directory);
    },
  };
}

/** Deletes a data directory, and its cluster where that had to be elsewhere (root, in a folder closed to others). */
export function removeCluster(dataDir: string, clusterDirectory: string): void {
  rmSync(dataDir, { recursive: true, force: true });
  if (clusterDirectory !== join(dataDir, 'pg'))
    rmSync(dirname(clusterDirectory), { recursive: true, force: true });
}
