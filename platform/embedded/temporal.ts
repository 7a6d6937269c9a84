import { chmodSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { processEnvironment } from '../config.js';
import { StartError } from '../startError.js';
import { readPorts, rememberPorts, writePrivateFile } from './dataDir.js';
import { commandLine, isAlive, waitUntilGone } from './processTable.js';
import { findFreePort, ServerProcess } from './serverProcess.js';
import { isTemporalServing } from './temporalHealth.js';
import type { TemporalProgram } from './temporalProgram.js';

/** A Temporal development server that this process started, with its data in the data directory. */
export interface EmbeddedTemporal {
  /** `127.0.0.1:<port>` of its frontend. */
  address: string;
  pid: number;
  version: string;
  /** Resolves with the reason when the server has ended for any cause. */
  exited: Promise<string>;
  stop(): Promise<void>;
}

export interface TemporalOptions {
  program: TemporalProgram;
  dataDir: string;
  namespace: string;
}

const READY_LIMIT_MS = 60_000;
/** Longest wait for a server that is still closing its SQLite file, milliseconds. */
const BUSY_LIMIT_MS = 10_000;
/**
 * Attempts to start when another program takes a port first: each attempt chooses new ports, so a second failure is
 * rare and a fifth has another cause.
 */
const PORT_TRIES_MAX = 5;
const POLL_MS = 20;
const STOP_SIGNALS: readonly [NodeJS.Signals, number][] = [
  ['SIGTERM', 5_000],
  ['SIGKILL', 1_000],
];

/** The port of the data directory's server, determined before it runs so that clients can get it. */
export async function chooseTemporalPort(dataDir: string): Promise<number> {
  const port = await findFreePort(readPorts(dataDir).temporal);
  rememberPorts(dataDir, { temporal: port });
  return port;
}

/**
 * Starts the server and waits until it serves: on the port of `chooseTemporalPort`, unless another program took it
 * meanwhile; `address` is authoritative. Stops a server that a killed start left running. The caller holds the data
 * directory's lock.
 * The server chooses eight more ports for its services, releases them and binds them a moment later. Another program
 * may get one of them meanwhile; then the server ends, and is started again.
 * @throws StartError with the server's reason.
 */
export async function startTemporal(options: TemporalOptions): Promise<EmbeddedTemporal> {
  const folder = join(options.dataDir, 'temporal');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  makePrivate(folder);
  const database = join(folder, `temporal-${options.program.serverVersion}.db`);
  const pidFile = join(folder, 'temporal.pid');
  await endOrphan(pidFile, database);
  const deadline = performance.now() + BUSY_LIMIT_MS;
  for (let tries = 1; ; tries += 1) {
    const port = await chooseTemporalPort(options.dataDir);
    const server = launch(options, port, database);
    try {
      writePrivateFile(pidFile, `${server.pid}\n`);
    } catch (error) {
      await server.stop(STOP_SIGNALS);
      throw error;
    }
    const address = `127.0.0.1:${port}`;
    if (await isReady(server, address)) {
      return {
        address,
        pid: server.pid,
        version: options.program.serverVersion,
        exited: server.exited,
        stop: () => server.stop(STOP_SIGNALS),
      };
    }
    const output = server.output();
    const isBusy = /SQLITE_BUSY|database is locked/.test(output) && performance.now() <= deadline;
    const isPortLost = /address already in use/.test(output) && tries < PORT_TRIES_MAX;
    if (!isBusy && !isPortLost) {
      const why = findReason(output) ?? server.exit ?? 'not ready in time';
      throw new StartError(`Temporal did not start: ${why}. Its log is ${logFile(options.dataDir)}.`);
    }
    await sleep(200);
  }
}

/**
 * Removes the group's and others' rights from a folder and its files, because earlier versions left the database
 * readable.
 */
function makePrivate(folder: string): void {
  chmodSync(folder, 0o700);
  for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o600);
}

const REASON_LENGTH_MAX = 300;

/**
 * The reason of a server's end, from its output. The last line of a panic is a place in the stack: the first line has
 * the reason, and where that is only a nil pointer, the log line before it.
 */
export function findReason(output: string): string | undefined {
  const lines = output
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
  const panic = lines.findIndex((line) => /^(panic|fatal error): /.test(line));
  if (panic < 0) return lines.at(-1)?.slice(0, REASON_LENGTH_MAX);
  return lines
    .slice(Math.max(0, panic - 1), panic + 1)
    .map((line) => line.slice(0, REASON_LENGTH_MAX))
    .join(' / ');
}

function logFile(dataDir: string): string {
  return join(dataDir, 'logs', 'temporal.log');
}

function launch(options: TemporalOptions, port: number, database: string): ServerProcess {
  return new ServerProcess({
    program: options.program.program,
    args: [
      ...['server', 'start-dev', '--headless', '--ip', '127.0.0.1', '--port', String(port)],
      ...['--namespace', options.namespace, '--db-filename', database],
      ...['--sqlite-pragma', 'journal_mode=WAL', '--log-level', 'error'],
    ],
    deathSignal: 'TERM',
    logFile: logFile(options.dataDir),
    environment: processEnvironment(),
  });
}

async function isReady(server: ServerProcess, address: string): Promise<boolean> {
  const deadline = performance.now() + READY_LIMIT_MS;
  while (server.exit === undefined && performance.now() < deadline) {
    if (await isTemporalServing(address)) return true;
    await sleep(POLL_MS);
  }
  await server.stop(STOP_SIGNALS);
  return false;
}

async function endOrphan(pidFile: string, database: string): Promise<void> {
  const pid = readPid(pidFile);
  if (pid === undefined || !isAlive(pid) || !commandLine(pid).includes(database)) return;
  for (const [signal, waitMs] of STOP_SIGNALS) {
    process.kill(pid, signal);
    if (await waitUntilGone(pid, waitMs)) return;
  }
}

function readPid(pidFile: string): number | undefined {
  try {
    const pid = Number(readFileSync(pidFile, 'utf8'));
    return Number.isInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}
