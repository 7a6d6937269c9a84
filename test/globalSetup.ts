import type { TestProject } from 'vitest/node';
import { startTestPostgres } from './support/postgres.js';
import { startTestTemporal } from './support/temporal.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Connection string of the suite's Postgres, as the superuser; each test file makes databases of its own. */
    postgresUrl: string;
    /** `127.0.0.1:<port>` of the suite's Temporal server; each test file has task queues of its own. */
    temporalAddress: string;
    /** The `temporal` program that the suite's server was started from. */
    temporalProgram: string;
  }
}

/** One Postgres and one Temporal server for the whole run. Without either the run fails, and says how to get one. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const [postgres, temporal] = await Promise.allSettled([startTestPostgres(), startTestTemporal()]);
  const started = [postgres, temporal].flatMap((server) =>
    server.status === 'fulfilled' ? [server.value] : [],
  );
  const stop = async () => {
    for (const server of started.toReversed()) await server.stop();
  };
  if (postgres.status === 'rejected' || temporal.status === 'rejected') {
    await stop();
    throw postgres.status === 'rejected' ? postgres.reason : (temporal as PromiseRejectedResult).reason;
  }
  project.provide('postgresUrl', postgres.value.url);
  project.provide('temporalAddress', temporal.value.address);
  project.provide('temporalProgram', temporal.value.program);
  return stop;
}
