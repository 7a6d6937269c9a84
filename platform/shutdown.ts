import type { Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Logger } from 'pino';
import { onEndSignals, outliveReaders } from './processMain.js';

/** How long the parts of a process may take to end, milliseconds. */
export interface StopLimits {
  /** Requests under way. */
  httpDrainMs: number;
  /** Activities, until they are cancelled. */
  workerGraceMs: number;
  /** Activities, until they are cut. */
  workerForceMs: number;
  /** The whole process, after which it ends, finished or not. */
  processMs: number;
}

/** Under `npm start` everything is to be gone within 30 s; an orchestrator should wait 45 s. */
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

/** A supervised process has a channel to the one that started it. */
export const STOP_LIMITS: StopLimits = process.channel === undefined ? ALONE : SUPERVISED;

/** How often connections that have become idle are closed while the others drain. */
const IDLE_SWEEP_MS = 50;

/** How long connections are waited for where a server closes, milliseconds. */
const CLOSING = {
  /** One that is kept alive may still bring the request that its client has just sent. */
  idleGraceMs: 500,
  /** Those that had been made before are still taken; those that come without end are not waited for. */
  acceptLimitMs: 250,
};

/** What a supervisor sends over IPC instead of a signal, which not every platform delivers. */
export const STOP_MESSAGE = 'stop';

interface Step {
  name: string;
  close: () => Promise<unknown> | unknown;
}

/**
 * The order in which a process ends: what was registered last closes first, so each part still finds what it was
 * built on. A failing step is logged and the rest continues.
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

  /** Registers how to close something that has just been opened. */
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
   * Ends the process in order on SIGTERM, on the supervisor's message, and when the supervisor is gone. Ctrl-C and a
   * closed terminal reach every process of the group at once: a supervised process leaves them to its supervisor,
   * which knows the order.
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
 * Takes no new connection, lets requests under way finish for `drainMs`, then cuts what is left. Connections that
 * are kept alive close with their next answer, the idle ones after a moment: cut at once, as http.Server does by
 * itself, they would lose a request that is on its way.
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
    // Timers come before what has arrived is read: of a process that was held up, a request may be waiting there.
    setImmediate(() => closeIdle(server));
  }, IDLE_SWEEP_MS);
  const cut = setTimeout(() => server.closeAllConnections(), drainMs);
  await closed;
  clearInterval(sweep);
  clearTimeout(cut);
}

const openSockets = new WeakMap<Server, Set<Socket>>();

/** Keeps in mind who is connected: Node does not count a connection that has never sent anything among the idle ones. */
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
 * Takes the connections that the system has made and the process has not taken yet: closing the port would reset them,
 * whatever they have sent. The loop takes one a turn; the port is empty when a turn brings none.
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
    // The first turn may be one whose arrivals were read before.
    await new Promise((resolve) => setImmediate(resolve));
  } while (taken > before && performance.now() - begun < limitMs);
  server.off('connection', count);
}
