import type { Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Logger } from 'pino';
import { onEndSignals, outliveReaders } from './processMain.js';

/** Longest times for the parts of a process to end, milliseconds. */
export interface StopLimits {
  /** Requests in progress. */
  httpDrainMs: number;
  /** Activities, until they are cancelled. */
  workerGraceMs: number;
  /** Activities, until they are aborted. */
  workerForceMs: number;
  /** The whole process, which then exits, finished or not. */
  processMs: number;
}

/** Under `npm start` everything ends within 30 s; an orchestrator should wait 45 s. */
const SUPERVISED: StopLimits = {
  httpDrainMs: 10_000,
  workerGraceMs: 10_000,
  workerForceMs: 15_000,
  processMs: 17_000,
};
const ALONE: StopLimits = {
  httpDrainMs: 25_000,
  workerGraceMs: 25_000,
  workerForceMs: 40_000,
  processMs: 43_000,
};

/** Argument of API processes whose supervisor itself has none. */
export const WITHOUT_SERVICE = '--without-service';

/** A supervised process has an IPC channel to its supervisor. */
export const STOP_LIMITS: StopLimits =
  process.channel === undefined || process.argv.includes(WITHOUT_SERVICE) ? ALONE : SUPERVISED;

/** Milliseconds between two sweeps that close idle connections while the others drain. */
const IDLE_SWEEP_MS = 50;

/** Waits for connections when a server closes, milliseconds. */
const CLOSING = {
  /** A kept-alive connection may still deliver a request that its client has just sent. */
  idleGraceMs: 500,
  /** Established connections are still accepted; an endless stream of new ones is not waited for. */
  acceptLimitMs: 250,
};

/** Sent by a supervisor over IPC instead of a signal, which not every platform delivers. */
export const STOP_MESSAGE = 'stop';

interface Step {
  name: string;
  close: () => Promise<unknown> | unknown;
}

/**
 * The order of a process's shutdown: what was registered last closes first, so that each part still has its
 * dependencies. A failing step is logged and the rest continues.
 */
export class Shutdown {
  readonly #steps: Step[] = [];
  readonly #logger: Logger;
  readonly #limitMs: number;
  #running: Promise<void> | undefined;

  constructor(logger: Logger, limitMs = STOP_LIMITS.processMs) {
    this.#logger = logger;
    this.#limitMs = limitMs;
  }

  /** Registers how to close a part that was just opened. */
  add(name: string, close: Step['close']): void {
    this.#steps.push({ name, close });
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Closes everything once; later calls wait for the same end. */
  run(reason: string): Promise<void> {
    this.#running ??= this.#closeAll(reason);
    return this.#running;
  }

  async #closeAll(reason: string): Promise<void> {
    this.#logger.info({ reason }, 'stopping');
    for (const step of this.#steps.toReversed()) {
      try {
        await step.close();
      } catch (error) {
        this.#logger.error({ err: error, step: step.name }, 'a part did not close cleanly');
      }
    }
    this.#logger.info('stopped');
  }

  /**
   * Shuts the process down in order on SIGTERM, on the supervisor's message, and when the supervisor has ended. Ctrl-C
   * and a closed terminal signal every process of the group at once: a supervised process ignores them, since its
   * supervisor shuts it down in order.
   */
  listen(): void {
    const end = (reason: string) => void this.#endProcess(reason);
    const isSupervised = process.channel !== undefined;
    outliveReaders();
    onEndSignals((signal) => {
      if (signal === 'SIGTERM' || !isSupervised) end(signal);
    });
    if (!isSupervised) return;
    process.on('message', (message) => {
      if (message === STOP_MESSAGE) end('asked by the supervisor');
    });
    process.on('disconnect', () => end('the supervisor is gone'));
  }

  async #endProcess(reason: string): Promise<void> {
    if (this.#running) return;
    setTimeout(() => {
      this.#logger.error({ limitMs: this.#limitMs }, 'not closed in time; ending all the same');
      process.exit(1);
    }, this.#limitMs).unref();
    await this.run(reason);
    process.exit(0);
  }
}

/**
 * Accepts no new connection, lets requests in progress finish for `drainMs`, then aborts the rest. Kept-alive
 * connections close with their next answer, idle ones after a moment: http.Server closes them immediately and would
 * lose a request in transit.
 */
export async function closeHttpServer(
  server: Server,
  drainMs = STOP_LIMITS.httpDrainMs,
  { idleGraceMs, acceptLimitMs } = CLOSING,
): Promise<void> {
  server.prependListener('request', (_request, response) => response.setHeader('Connection', 'close'));
  await acceptWaiting(server, acceptLimitMs);
  const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  const begun = performance.now();
  const sweep = setInterval(() => {
    if (performance.now() - begun < idleGraceMs) return;
    // Timers run before arrived data is read: after a blocked event loop a request may be waiting there.
    setImmediate(() => closeIdle(server));
  }, IDLE_SWEEP_MS);
  const cut = setTimeout(() => server.closeAllConnections(), drainMs);
  await closed;
  clearInterval(sweep);
  clearTimeout(cut);
}

const openSockets = new WeakMap<Server, Set<Socket>>();

/** Tracks connections: Node does not count a connection that has never sent anything as idle. */
export function rememberConnections(server: Server): void {
  const sockets = new Set<Socket>();
  openSockets.set(server, sockets);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
}

function closeIdle(server: Server): void {
  server.closeIdleConnections();
  for (const socket of openSockets.get(server) ?? []) if (socket.bytesRead === 0) socket.destroy();
}

/**
 * Accepts the connections that the system has established and the process has not accepted: closing the port would
 * reset them and lose their data. The event loop accepts one a turn; the queue is empty when a turn brings none.
 */
async function acceptWaiting(server: Server, limitMs: number): Promise<void> {
  let taken = 0;
  const count = () => {
    taken += 1;
  };
  server.on('connection', count);
  const begun = performance.now();
  let before: number;
  do {
    before = taken;
    await new Promise((resolve) => setImmediate(resolve));
    // The arrivals of the first turn may have been read before.
    await new Promise((resolve) => setImmediate(resolve));
  } while (taken > before && performance.now() - begun < limitMs);
  server.off('connection', count);
}
