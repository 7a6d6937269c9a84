import { findFreePort } from '../../../platform/embedded/serverProcess.js';
import { type ChildProgram, startTypeScript } from '../../support/childProgram.js';
import { TEST_SECRET_KEY } from '../../support/connectors.js';
import type { TestDatabase } from '../../support/database.js';
import { pause } from './loadClient.js';

export interface ApiProcess {
  program: ChildProgram;
  baseUrl: string;
}

/** The API as separate processes, from the production program. */
export class ApiProcesses {
  readonly #started: ChildProgram[] = [];
  readonly #database: TestDatabase;
  readonly #engineAddress: string;

  /** Without an address, nothing listens where they expect Temporal. */
  constructor(database: TestDatabase, engineAddress = '127.0.0.1:1') {
    this.#database = database;
    this.#engineAddress = engineAddress;
  }

  /** Starts another one and waits until it is ready; `port`: that of an ended one, or 0; `more`: settings. */
  async start(port?: number, more: Record<string, string> = {}): Promise<ApiProcess> {
    const own = port ?? (await findFreePort(undefined));
    const program = startTypeScript('bin/api.ts', [], {
      ...this.#database.environment,
      TRUEUP_SECRET_KEY: TEST_SECRET_KEY,
      PORT: String(own),
      TEMPORAL_ADDRESS: this.#engineAddress,
      LOG_LEVEL: 'warn',
      API_PROCESSES: '1',
      ...more,
    });
    this.#started.push(program);
    for (;;) {
      // The port that 0 takes is in the line that reports it.
      const taken = own === 0 ? /"port":(\d+)/.exec(program.output())?.[1] : own;
      const baseUrl = `http://127.0.0.1:${taken}`;
      const answer = taken ? await fetch(`${baseUrl}/readyz`).catch(() => undefined) : undefined;
      if (answer?.status === 200) return { program, baseUrl };
      if (program.child.exitCode !== null) throw new Error(`the API ended: ${program.output()}`);
      await pause(20);
    }
  }

  /** Ends those that still run. */
  async close(): Promise<void> {
    for (const program of this.#started) if (program.child.exitCode === null) program.child.kill('SIGKILL');
    await Promise.all(this.#started.map((program) => program.ended()));
  }
}
