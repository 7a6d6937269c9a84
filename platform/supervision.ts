import { type ChildProcess, fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { PeerMessage } from './apiPeers.js';
import type { Environment } from './config.js';
import { STOP_MESSAGE } from './shutdown.js';
import { StartError } from './startError.js';

/** Our programs that serve: the API, and the worker. */
export type ServerName = 'api' | 'worker';

/**
 * A request's objects live for milliseconds; with the default young generation of 16 MiB a loaded API spends a fifth of
 * its time on garbage collection, with 64 MiB a third of that. What lives longer is collected once it has doubled: by
 * default it may grow to four times, 250 MiB in a storm of repeats.
 */
const MEMORY_FLAGS = ['--max-semi-space-size=64', '--heap-growing-percent=100'] as const;

/**
 * Node flags of our servers. V8 compiles a function together with those that it calls, up to a limit, 920 bytes by default:
 * compiling took a third of a worker's CPU in its first gap run; with 100 bytes it takes a fifth, and later runs are as
 * fast. The API, which runs the same code for days, would be 5 % slower with it.
 */
export const NODE_FLAGS: Readonly<Record<ServerName, readonly string[]>> = {
  api: MEMORY_FLAGS,
  worker: [...MEMORY_FLAGS, '--max-inlined-bytecode-size-cumulative=100'],
};

/** State of a part of the service, as `./trueup status` shows it. */
export type PartStatus = 'starting' | 'building' | 'up' | 'degraded' | 'down';

/** Messages of a supervised process to its supervisor. */
export type ChildMessage =
  | { type: 'ready'; port?: number }
  | { type: 'waiting'; detail: string }
  | { type: 'failed'; sentence: string }
  | { type: 'outbox' }
  | PeerMessage;

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
/** A part that ran this long had recovered: its next restart is immediate again, milliseconds. */
const STABLE_MS = 30_000;

/** The pause before a restart: short at first, doubled while restarts follow each other closely. */
export class RestartPause {
  #pauseMs = FIRST_PAUSE_MS;
  #startedAt = 0;

  started(nowMs: number): void {
    this.#startedAt = nowMs;
  }

  next(nowMs: number): number {
    if (nowMs - this.#startedAt > STABLE_MS) this.#pauseMs = FIRST_PAUSE_MS;
    const pause = this.#pauseMs;
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    return pause;
  }
}

/** Starts a server program of ours as a child that shares our output. */
export function forkServer(name: ServerName, script: string, environment: Environment): ChildProcess {
  return fork(script, [], {
    execArgv: [...process.execArgv, ...NODE_FLAGS[name]],
    env: environment as NodeJS.ProcessEnv,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

export interface SupervisedOptions {
  name: string;
  /** Starts it, with an IPC channel to us. */
  start: () => ChildProcess;
  logger: Logger;
  onStatus: (status: PartStatus, detail?: string) => void;
  onMessage?: (message: ChildMessage) => void;
}

/**
 * A child process that is restarted when it dies. It shares our process group and output, and ends when the channel to
 * us closes.
 */
export class SupervisedProcess {
  readonly #options: SupervisedOptions;
  readonly #pause = new RestartPause();
  #child: ChildProcess | undefined;
  #restart: NodeJS.Timeout | undefined;
  #isStopping = false;
  #isRestarting = false;
  /** Settles with the first start: rejected when the process reports why it cannot run. */
  readonly firstReady: Promise<{ port?: number }>;
  #settleFirst!: { resolve: (ready: { port?: number }) => void; reject: (error: Error) => void };

  constructor(options: SupervisedOptions) {
    this.#options = options;
    this.firstReady = new Promise((resolve, reject) => {
      this.#settleFirst = { resolve, reject };
    });
    // An unawaited rejection must not end the process.
    this.firstReady.catch(() => undefined);
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  start(): void {
    if (this.#isStopping) return;
    const { name, start, logger, onStatus } = this.#options;
    onStatus('starting');
    this.#pause.started(performance.now());
    const child = start();
    this.#child = child;
    child.on('message', (message) => this.#hear(message as ChildMessage));
    child.once('error', (error) => logger.error({ err: error, part: name }, 'a part cannot be started'));
    child.once('exit', (code, signal) => {
      this.#child = undefined;
      onStatus('down');
      if (this.#isRestarting) {
        this.#isRestarting = false;
        this.start();
        return;
      }
      this.#settleFirst.reject(
        new StartError(`The ${name} ended at once (${signal ?? `exit code ${code}`}).`),
      );
      if (this.#isStopping) return;
      const pauseMs = this.#pause.next(performance.now());
      logger.error({ part: name, code, signal, pauseMs }, 'a part died; starting it again');
      this.#restart = setTimeout(() => this.start(), pauseMs);
    });
  }

  /** Sends a message to the process if it runs. */
  tell(message: string | PeerMessage): void {
    if (this.#child?.connected) this.#child.send(message);
  }

  /** Shuts it down in order and starts it again, because its environment has changed. */
  restart(): void {
    const child = this.#child;
    if (!child || this.#isStopping || this.#isRestarting) return;
    this.#isRestarting = true;
    if (child.connected) child.send(STOP_MESSAGE);
    else child.kill('SIGTERM');
  }

  /** Shuts it down in order; after `limitMs`, or when `hurry` aborts, kills it. */
  async stop(limitMs: number, hurry: AbortSignal): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#restart);
    const child = this.#child;
    if (!child) return;
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    const kill = () => child.kill('SIGKILL');
    const timer = setTimeout(kill, limitMs);
    if (hurry.aborted) kill();
    hurry.addEventListener('abort', kill, { once: true });
    if (child.connected) child.send(STOP_MESSAGE);
    else child.kill('SIGTERM');
    await gone;
    clearTimeout(timer);
  }

  #hear(message: ChildMessage): void {
    if (message.type === 'ready') {
      this.#options.onStatus('up');
      this.#settleFirst.resolve(message);
    }
    if (message.type === 'waiting') this.#options.onStatus('degraded', message.detail);
    if (message.type === 'failed') this.#settleFirst.reject(new StartError(message.sentence));
    this.#options.onMessage?.(message);
  }
}

/** A server program that is restarted when it dies. */
interface RunningServer {
  exited: Promise<string>;
  stop(): Promise<void>;
}

export interface KeptServerOptions<S extends RunningServer> {
  name: string;
  start: () => Promise<S>;
  logger: Logger;
  /** `detail`: why it does not start, in words. */
  onStatus: (status: PartStatus, server?: S, detail?: string) => void;
}

export class KeptServer<S extends RunningServer> {
  readonly #options: KeptServerOptions<S>;
  readonly #pause = new RestartPause();
  #current: S | undefined;
  #starting: Promise<S> | undefined;
  #isStopping = false;

  constructor(options: KeptServerOptions<S>) {
    this.#options = options;
  }

  /** The first start; the caller handles its failure. */
  async start(): Promise<S> {
    this.#options.onStatus('starting');
    this.#pause.started(performance.now());
    this.#starting = this.#options.start();
    try {
      const server = await this.#starting;
      this.#current = server;
      this.#options.onStatus('up', server);
      void server.exited.then((how) => this.#onExit(how));
      return server;
    } catch (error) {
      this.#options.onStatus('down', undefined, error instanceof StartError ? error.message : undefined);
      throw error;
    } finally {
      this.#starting = undefined;
    }
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#starting?.catch(() => undefined);
    await this.#current?.stop();
  }

  async #onExit(how: string): Promise<void> {
    this.#current = undefined;
    this.#options.onStatus('down');
    while (!this.#isStopping) {
      const pauseMs = this.#pause.next(performance.now());
      this.#options.logger.error(
        { part: this.#options.name, how, pauseMs },
        'a server died; starting it again',
      );
      await sleep(pauseMs);
      if (this.#isStopping) return;
      try {
        await this.start();
        return;
      } catch (error) {
        this.#options.logger.error({ err: error, part: this.#options.name }, 'a server does not start');
      }
    }
  }
}
