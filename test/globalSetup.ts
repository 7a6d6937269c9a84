import { rmSync } from 'node:fs';
import type { TestProject } from 'vitest/node';
import { startPooler } from './support/pooler.js';
import { startTestPostgres } from './support/postgres.js';
import { startTestTemporal } from './support/temporal.js';
import { makeTestFolder } from './support/testFolder.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Connection string of the suite's Postgres, as the superuser; each test file creates separate databases. */
    postgresUrl: string;
    /** Connection string through PgBouncer, in the run of the suite that uses one; else null. */
    poolerUrl: string | null;
    /** `127.0.0.1:<port>` of the suite's Temporal server; each test file has separate task queues. */
    temporalAddress: string;
    /** The `temporal` program that the suite's server was started from. */
    temporalProgram: string;
    /** Folder in which the processes of the run share results (test/support/makeOnce.ts). */
    runFolder: string;
  }
}

/** Sessions of each database that the pooler has for all clients: fewer than these have connections to it. */
const POOLER_SESSIONS = 6;

/**
 * One Postgres and one Temporal server for the whole run, and one PgBouncer with TEST_POOLER (`npm run test:pooler`).
 * When one is missing the run fails, with instructions to get it.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Vite puts its own BASE_URL into the environment, and the service would take it for its setting.
  if (process.env.BASE_URL === '/') delete process.env.BASE_URL;
  const [postgres, temporal] = await Promise.allSettled([startTestPostgres(), startTestTemporal()]);
  const started: { stop(): Promise<void> }[] = [postgres, temporal].flatMap((server) =>
    server.status === 'fulfilled' ? [server.value] : [],
  );
  const folder = makeTestFolder('run');
  const stop = async () => {
    rmSync(folder, { recursive: true, force: true });
    for (const server of started.toReversed()) await server.stop();
  };
  if (postgres.status === 'rejected' || temporal.status === 'rejected') {
    await stop();
    throw postgres.status === 'rejected' ? postgres.reason : (temporal as PromiseRejectedResult).reason;
  }
  const { url } = postgres.value;
  const isPooled = process.env.TEST_POOLER === '1';
  const pooler = isPooled
    ? await startPooler(url, POOLER_SESSIONS).catch(async (error: unknown) => {
        await stop();
        throw error;
      })
    : undefined;
  if (pooler) started.push(pooler);
  project.provide('postgresUrl', url);
  project.provide('poolerUrl', pooler?.urlOf(url) ?? null);
  project.provide('temporalAddress', temporal.value.address);
  project.provide('temporalProgram', temporal.value.program);
  project.provide('runFolder', folder);
  return stop;
}
