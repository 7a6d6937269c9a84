import type { ChildProcess } from 'node:child_process';
import cluster from 'node:cluster';
import type { Logger } from 'pino';
import { AggregatorRegistry } from 'prom-client';
import type { PeerMessage } from '../../platform/apiPeers.js';
import { type Config, processEnvironment } from '../../platform/config.js';
import { findFreePort } from '../../platform/embedded/serverProcess.js';
import { createLogger } from '../../platform/logger.js';
import { notifySupervisor } from '../../platform/processMain.js';
import { Shutdown, STOP_LIMITS, STOP_MESSAGE, WITHOUT_SERVICE } from '../../platform/shutdown.js';
import { type ChildMessage, type PartStatus, SupervisedProcess } from '../../platform/supervision.js';
import { programFile } from '../wiring/programFile.js';
import { ENGINE_MESSAGE } from './service.js';

/** Milliseconds by which a process is killed before this one has to end. */
const KILL_AHEAD_MS = 1_000;

/**
 * Runs the API in `config.apiProcesses` processes that share its port, restarts one that dies, and passes messages
 * between them and the service. Connections go to them in turn. Returns once all are ready.
 * @throws StartError when the first one cannot start.
 */
export async function runApiProcesses(config: Config): Promise<void> {
  const logger = createLogger({ name: 'api', level: config.logLevel ?? 'info' });
  const shutdown = new Shutdown(logger);
  shutdown.listen();
  const group = new ApiProcesses(config, logger);
  shutdown.add('processes', () => group.stop());
  process.on('message', (message) => {
    if (typeof message === 'string' && message !== STOP_MESSAGE) group.pass(message);
  });
  const port = await group.start();
  logger.info({ host: config.host, port, processes: config.apiProcesses }, 'listening');
  notifySupervisor({ type: 'ready', port });
}

class ApiProcesses {
  readonly #all: SupervisedProcess[];
  readonly #up = new Set<SupervisedProcess>();
  readonly #metrics = new AggregatorRegistry();
  /** Their port; 0 until `start` has found a free one. */
  #port: number;
  #engineMessage: string | undefined;
  #isStarted = false;

  constructor(config: Config, logger: Logger) {
    this.#port = config.port;
    cluster.setupPrimary({
      exec: programFile('api'),
      args: process.channel === undefined ? [WITHOUT_SERVICE] : [],
      execArgv: process.execArgv,
    });
    this.#all = Array.from({ length: config.apiProcesses }, (_, index) => {
      const one: SupervisedProcess = new SupervisedProcess({
        name: `api ${index + 1}`,
        start: () =>
          closingLostConnections(cluster.fork(processEnvironment({ PORT: String(this.#port) })).process),
        logger,
        onStatus: (status) => this.#note(one, status),
        onMessage: (message) => this.#hear(one, message),
      });
      return one;
    });
  }

  /** Starts the first one, then the others; resolves with their port. */
  async start(): Promise<number> {
    // PORT=0: all of them need the port that one would take.
    if (this.#port === 0) this.#port = await findFreePort();
    const [first, ...others] = this.#all as [SupervisedProcess, ...SupervisedProcess[]];
    first.start();
    await first.firstReady;
    for (const one of others) one.start();
    await Promise.all(others.map(({ firstReady }) => firstReady));
    this.#isStarted = true;
    return this.#port;
  }

  async stop(): Promise<void> {
    const never = new AbortController().signal;
    await Promise.all(this.#all.map((one) => one.stop(STOP_LIMITS.processMs - KILL_AHEAD_MS, never)));
  }

  /** Passes a message of the service to each process, also to one that starts later. */
  pass(message: string): void {
    if (message.startsWith(ENGINE_MESSAGE)) this.#engineMessage = message;
    for (const one of this.#all) one.tell(message);
  }

  #note(one: SupervisedProcess, status: PartStatus): void {
    const wereUp = this.#up.size;
    if (status === 'up') this.#up.add(one);
    else this.#up.delete(one);
    if (status === 'up' && this.#engineMessage !== undefined) one.tell(this.#engineMessage);
    if (!this.#isStarted || wereUp === this.#up.size) return;
    if (this.#up.size === 0)
      notifySupervisor({ type: 'waiting', detail: 'every process of it is starting again' });
    else if (wereUp === 0) notifySupervisor({ type: 'ready', port: this.#port });
  }

  #hear(from: SupervisedProcess, message: ChildMessage): void {
    if (message.type === 'outbox') notifySupervisor(message);
    if (message.type === 'charge') for (const one of this.#all) if (one !== from) one.tell(message);
    if (message.type === 'metrics') void this.#answerMetrics(from, message.id);
  }

  async #answerMetrics(to: SupervisedProcess, id: number): Promise<void> {
    const text = await this.#metrics.clusterMetrics().catch(() => undefined);
    const answer: PeerMessage = text === undefined ? { type: 'metrics', id } : { type: 'metrics', id, text };
    to.tell(answer);
  }
}

/** Node's own messages of a cluster: a connection that is handed over, and the answer to it. */
interface ClusterMessage {
  act?: string;
  seq?: number;
  ack?: number;
}

/**
 * Closes, when the process dies, the connections that it was handed and has not taken. Node's cluster keeps them open,
 * and their clients would wait without end (measured: one for each kill under load).
 */
function closingLostConnections(child: ChildProcess): ChildProcess {
  const untaken = new Map<number, { close?: () => void }>();
  const send = child.send as (this: ChildProcess, ...all: unknown[]) => boolean;
  child.send = function (this: ChildProcess, ...all: unknown[]) {
    const [message, handle] = all as [ClusterMessage, { close?: () => void } | undefined];
    if (handle && message.act === 'newconn' && message.seq !== undefined) untaken.set(message.seq, handle);
    return send.apply(this, all);
  } as ChildProcess['send'];
  child.on('internalMessage', ({ ack }: ClusterMessage) => {
    if (ack !== undefined) untaken.delete(ack);
  });
  child.once('exit', () => {
    for (const handle of untaken.values()) handle.close?.();
  });
  return child;
}
