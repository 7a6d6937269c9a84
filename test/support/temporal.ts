import { rmSync } from 'node:fs';
import { loadConfig } from '../../platform/config.js';
import { startTemporal } from '../../platform/embedded/temporal.js';
import { acquireTemporalProgram, findTemporalProgram } from '../../platform/embedded/temporalProgram.js';
import { makeTestFolder } from './testFolder.js';

/** The namespace of the suite's server. */
export const TEST_NAMESPACE = 'trueup';

export interface TestTemporal {
  address: string;
  /** The `temporal` program, for tests that run a separate server. */
  program: string;
  stop(): Promise<void>;
}

/** A Temporal server in a separate folder; builds the program first where the machine has none (once). */
export async function startTestTemporal(): Promise<TestTemporal> {
  const config = loadConfig();
  const found = await findTemporalProgram(config);
  const program =
    found ??
    (await acquireTemporalProgram(config, (step) => {
      process.stderr.write(
        `Temporal server for the tests: ${step} (about 3 minutes when built, once per machine)\n`,
      );
    }));
  const dataDir = makeTestFolder('temporal');
  const server = await startTemporal({ program, dataDir, namespace: TEST_NAMESPACE });
  return {
    address: server.address,
    program: program.program,
    stop: async () => {
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
