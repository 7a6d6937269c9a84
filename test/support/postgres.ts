import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { loadConfig } from '../../platform/config.js';
import { startPostgres } from '../../platform/embedded/postgres.js';
import { makeTestFolder } from './testFolder.js';

/**
 * A footprint for many small databases. Nothing waits for the disk: tests kill processes, and what a killed process
 * has written stays; only a machine that loses its power would miss it, and that no test can arrange. Programs that
 * tests start with servers of their own keep the settings of the product.
 */
const TEST_SETTINGS = {
  shared_buffers: '128MB',
  max_wal_size: '1GB',
  max_connections: '200',
  fsync: 'off',
  full_page_writes: 'off',
};

/** A Postgres in a folder of its own, which goes with it. */
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

/** Removes a data directory, and its cluster where that had to lie elsewhere (root, in a folder closed to others). */
export function removeCluster(dataDir: string, clusterDirectory: string): void {
  rmSync(dataDir, { recursive: true, force: true });
  if (clusterDirectory !== join(dataDir, 'pg'))
    rmSync(dirname(clusterDirectory), { recursive: true, force: true });
}
