import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Client, Connection, WithStartWorkflowOperation } from '@temporalio/client';
import { processEnvironment } from '../../../platform/config.js';

export interface BareSettings {
  address: string;
  namespace: string;
  taskQueue: string;
}

const EXTENSION = import.meta.url.endsWith('.ts') ? 'ts' : 'js';

/** Measures updates of a workflow that does nothing: the ceiling of everything that is done by updates. */
export class BareEngine {
  readonly #worker: ChildProcess;
  readonly #connection: Connection;
  readonly #client: Client;
  readonly #taskQueue: string;

  private constructor(worker: ChildProcess, connection: Connection, settings: BareSettings) {
    this.#worker = worker;
    this.#connection = connection;
    this.#client = new Client({ connection, namespace: settings.namespace });
    this.#taskQueue = settings.taskQueue;
  }

  static async start(settings: BareSettings): Promise<BareEngine> {
    const worker = fork(fileURLToPath(new URL(`./bareWorker.${EXTENSION}`, import.meta.url)), [], {
      env: processEnvironment({ BENCH_BARE: JSON.stringify(settings) }) as NodeJS.ProcessEnv,
    });
    await new Promise<void>((resolve, reject) => {
      worker.once('message', () => resolve());
      worker.once('exit', (code) => reject(new Error(`the bare worker ended with ${code}`)));
    });
    return new BareEngine(worker, await Connection.connect({ address: settings.address }), settings);
  }

  get pid(): number {
    return this.#worker.pid as number;
  }

  /**
   * A workflow's life with this number of consecutive updates, each with an update-with-start; `took` receives the
   * time of each.
   */
  async live(updates: number, took: (milliseconds: number) => void): Promise<void> {
    const workflowId = `bare:${randomUUID()}`;
    for (let at = 0; at < updates; at += 1) {
      const started = performance.now();
      await this.#client.workflow.executeUpdateWithStart('bare', {
        startWorkflowOperation: new WithStartWorkflowOperation('bareUpdates', {
          workflowId,
          taskQueue: this.#taskQueue,
          args: [{ updates }],
          workflowIdConflictPolicy: 'USE_EXISTING',
        }),
        args: [{}],
      });
      took(performance.now() - started);
    }
  }

  async stop(): Promise<void> {
    await this.#connection.close();
    const ended = once(this.#worker, 'exit');
    this.#worker.kill('SIGKILL');
    await ended;
  }
}
