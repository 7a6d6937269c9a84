import { openDataDir } from '../../platform/embedded/dataDir.js';
import { startPostgres } from '../../platform/embedded/postgres.js';

/** A process that starts an embedded Postgres on a data directory and holds it, for tests that kill it. */
const [dataDir = '', cacheDir = ''] = process.argv.slice(2);
openDataDir(dataDir);
const server = await startPostgres({ dataDir, cacheDir });
process.stdout.write(`${JSON.stringify({ pid: server.pid, url: server.url })}\n`);
await server.exited;
