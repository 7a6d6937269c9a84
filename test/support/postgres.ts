import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { loadConfig } from '../../platform/config.js';
import { startPostgres } from '../../platform/embedded/postgres.js';
import { makeTestFolder } from './testFolder.js';

/** As durable as in earnest, with a footprint for many small databases. */
const TEST_SETTINGS = { shared_buffers: '128MB', max_wal_size: '1GB', max_connections: '200' };

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
