import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';

/** The user that runs a server when we are root, because Postgres refuses to run as root. */
export interface RunAs {
  uid: number;
  gid: number;
}

export interface ServerCommand {
  program: string;
  args: readonly string[];
  runAs?: RunAs | undefined;
  /** The signal that the server gets when this process is killed. */
  deathSignal: 'INT' | 'TERM';
  logFile: string;
  environment: NodeJS.ProcessEnv;
}

/** Bytes after which a server's log file is rotated; one older file is kept. */
const LOG_BYTES_MAX = 10 * 1_048_576;
const OUTPUT_BYTES = 16_384;

/**
 * A server that this process started. It runs in a separate session, so that Ctrl-C in the terminal reaches us and not
 * the database while requests are finished. Instead setpriv, or a shell that waits for our end, stops it when we end.
 */
export class ServerProcess {
  readonly pid: number;
  readonly exited: Promise<string>;
  #exit: string | undefined;
  readonly #child: ChildProcess;
  readonly #logFile: string;
  readonly #logStart: number;

  constructor(command: ServerCommand) {
    this.#logFile = command.logFile;
    const log = openLog(command.logFile);
    this.#logStart = statSync(command.logFile).size;
    const [program, args] = leash(command);
    // Servers write data that only their owner may read; the child process inherits the mask.
    const umask = process.umask(0o077);
    try {
      this.#child = spawn(program, args, {
        detached: true,
        stdio: ['ignore', log, log],
        cwd: '/',
        env: command.environment,
        ...(program === command.program && command.runAs ? command.runAs : {}),
      });
    } finally {
      process.umask(umask);
      closeSync(log);
    }
    this.pid = this.#child.pid ?? -1;
    this.exited = new Promise((resolve) => {
      const end = (how: string) => {
        this.#exit ??= how;
        resolve(this.#exit);
      };
      this.#child.once('exit', (code, signal) => end(signal ?? `exit code ${code}`));
      this.#child.once('error', (error) => end(error.message));
    });
    if (program === command.program) endWithUs(this.#child, command.deathSignal);
  }

  /** The reason of its end; undefined: it runs. */
  get exit(): string | undefined {
    return this.#exit;
  }

  /** Its output since its start; of more than 32 KB the first and the last 16. */
  output(): string {
    const written = readFileSync(this.#logFile).subarray(this.#logStart);
    if (written.length <= 2 * OUTPUT_BYTES) return written.toString('utf8');
    const [opening, end] = [written.subarray(0, OUTPUT_BYTES), written.subarray(-OUTPUT_BYTES)];
    return `${opening.toString('utf8')}\n…\n${end.toString('utf8')}`;
  }

  /** Sends each signal in turn and waits its time, until the server has ended. */
  async stop(signals: readonly [NodeJS.Signals, number][]): Promise<void> {
    for (const [signal, waitMs] of signals) {
      if (this.#exit !== undefined) return;
      this.#child.kill(signal);
      await this.#exitedWithin(waitMs);
    }
  }

  /** Stops it with all processes that it has started. */
  async stopGroup(): Promise<void> {
    if (this.#exit !== undefined) return;
    try {
      process.kill(-this.pid, 'SIGTERM');
    } catch {
      this.#child.kill('SIGTERM');
    }
    await this.exited;
  }

  async #exitedWithin(milliseconds: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, milliseconds);
    });
    await Promise.race([this.exited, late]);
    clearTimeout(timer);
  }
}

function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    if (statSync(path).size > LOG_BYTES_MAX) renameSync(path, `${path}.1`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  return openSync(path, 'a', 0o600);
}

/** Wraps the command in setpriv where that exists: it runs as the other user, and ends when we are killed. */
export function leash(
  command: Pick<ServerCommand, 'program' | 'args' | 'runAs' | 'deathSignal'>,
): [string, string[]] {
  if (!hasSetpriv()) return [command.program, [...command.args]];
  const { runAs } = command;
  const user = runAs ? [`--reuid=${runAs.uid}`, `--regid=${runAs.gid}`, '--clear-groups'] : [];
  const options = [...user, '--no-new-privs', `--pdeathsig=${command.deathSignal}`];
  return ['setpriv', [...options, command.program, ...command.args]];
}

/**
 * Replaces setpriv where it is missing, as on macOS: a shell reads a pipe that closes when we end in any way, and then
 * signals the server. The shell ends with the server.
 */
function endWithUs(server: ChildProcess, signal: ServerCommand['deathSignal']): void {
  if (server.pid === undefined) return;
  const script = 'read -r _; kill -s "$0" "$1"';
  const watcher = spawn('/bin/sh', ['-c', script, signal, String(server.pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
  });
  watcher.on('error', () => undefined);
  watcher.unref();
  server.once('exit', () => watcher.kill('SIGKILL'));
}

let setprivFound: boolean | undefined;

/** Whether setpriv is of util-linux 2.33 or newer; BusyBox's lacks the option. */
function hasSetpriv(): boolean {
  setprivFound ??=
    process.platform === 'linux' && spawnSync('setpriv', ['--pdeathsig=INT', 'true']).status === 0;
  return setprivFound;
}

/** `preferred` if it is free on 127.0.0.1, else a port that the system chooses. */
export async function findFreePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && (await tryListen(preferred)) !== undefined) return preferred;
  const port = await tryListen(0);
  if (port === undefined) throw new Error('no free port on 127.0.0.1');
  return port;
}

/** Whether something on this machine already listens at an address. */
export async function isPortTaken(port: number, host: string): Promise<boolean> {
  return port !== 0 && (await tryListen(port, host)) === undefined;
}

function tryListen(port: number, host = '127.0.0.1'): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    probe.listen(port, host, () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : undefined));
    });
  });
}
