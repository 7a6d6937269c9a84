import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { processEnvironment } from '../../../platform/config.js';
import { type ChildMessage, NODE_FLAGS, type ServerName } from '../../../platform/supervision.js';
import type { LoadPlan, LoadResult } from './loadClient.js';

const STOP_LIMIT_MS = 20_000;
/** Nothing listens there: the worker folds totals and waits for Temporal, which these benches do not need. */
const NO_ENGINE = '127.0.0.1:9';
/** Benches seal nothing, but every process with a database requires a key. */
const BENCH_SECRET_KEY = Buffer.alloc(32, 'bench').toString('base64');
const EXTENSION = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const PAUSE_MONITOR = new URL(`./worstRequests/pauseMonitor.${EXTENSION}`, import.meta.url).href;

/** A program of the product, started like `npm start`, with its log in a file. */
export interface BenchProgram {
  pid: number;
  port: number;
  /** Sends a message like the supervisor does. */
  tell(word: string): void;
  stop(): Promise<void>;
}

export interface ProgramOptions {
  name: ServerName;
  url: string;
  folder: string;
  /** The folder for a CPU profile. */
  profileDir?: string | undefined;
  /** Temporal's address; absent: none. */
  engineAddress?: string;
  /** The file for pauses of the event loop (pauseMonitor.ts). */
  pauseFile?: string;
  /** Called when a message waits in the outbox. */
  onOutbox?: () => void;
  /** Runs the sources, for callers without a loader that child processes inherit. */
  fromSources?: boolean;
}

export async function startProgram(options: ProgramOptions): Promise<BenchProgram> {
  const log = openSync(`${options.folder}/${options.name}.log`, 'a');
  const child = fork(
    fileURLToPath(new URL(`../../../bin/${options.name}.${EXTENSION}`, import.meta.url)),
    [],
    {
      stdio: ['ignore', log, log, 'ipc'],
      execArgv: [
        ...(options.fromSources ? ['--import', 'tsx'] : process.execArgv),
        ...NODE_FLAGS[options.name],
        ...(options.pauseFile ? ['--import', PAUSE_MONITOR] : []),
        ...(options.profileDir ? ['--cpu-prof', `--cpu-prof-dir=${options.profileDir}`] : []),
      ],
      env: processEnvironment({
        DATABASE_URL: options.url,
        DATABASE_DIRECT_URL: options.url,
        TRUEUP_SECRET_KEY: BENCH_SECRET_KEY,
        DATA_DIR: options.folder,
        HOST: '127.0.0.1',
        PORT: '0',
        TEMPORAL_ADDRESS: options.engineAddress ?? NO_ENGINE,
        LOG_LEVEL: 'info',
        // One client represents many.
        RATE_LIMITS: 'off',
        // Test runners set a variable of this name.
        BASE_URL: '',
        ...(options.pauseFile ? { PAUSE_FILE: options.pauseFile } : {}),
      }) as NodeJS.ProcessEnv,
    },
  );
  closeSync(log);
  const { port } = await firstWord(child, options);
  child.on('message', (message: ChildMessage) => {
    if (message.type === 'outbox') options.onOutbox?.();
  });
  const tell = (word: string) => {
    if (child.connected) child.send(word);
  };
  return { pid: child.pid as number, port, tell, stop: () => stopChild(child) };
}

/** Resolves when the API listens, or when the worker has started. */
function firstWord(
  child: ChildProcess,
  { name, folder, engineAddress }: ProgramOptions,
): Promise<{ port: number }> {
  return new Promise((resolve, reject) => {
    child.on('message', (message: ChildMessage) => {
      if (message.type === 'ready') resolve({ port: message.port ?? 0 });
      // With Temporal, the worker sends another message once it is connected.
      if (message.type === 'waiting' && engineAddress === undefined) resolve({ port: 0 });
      if (message.type === 'failed') reject(new Error(message.sentence));
    });
    child.once('exit', (code) => reject(new Error(`${name} ended with ${code}: see ${folder}/${name}.log`)));
  });
}

/**
 * Runs a bench again in a process with the Node flags of the worker, for benches that do its work themselves. Returns
 * its exit code; undefined: this process has the flags.
 */
export async function runAsWorker(moduleUrl: string): Promise<number | undefined> {
  if (NODE_FLAGS.worker.every((flag) => process.execArgv.includes(flag))) return undefined;
  const child = fork(fileURLToPath(moduleUrl), process.argv.slice(2), {
    execArgv: [...process.execArgv, ...NODE_FLAGS.worker],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const hurry = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
  await ended;
  clearTimeout(hurry);
}

/** The load client in a separate process. */
export class LoadProcess {
  readonly #child: ChildProcess;

  constructor() {
    this.#child = fork(fileURLToPath(new URL(`./loadProgram.${EXTENSION}`, import.meta.url)), []);
  }

  run(plan: LoadPlan): Promise<LoadResult> {
    return new Promise((resolve, reject) => {
      const onExit = () => reject(new Error('the load client ended'));
      this.#child.once('exit', onExit);
      this.#child.once('message', (result: LoadResult) => {
        this.#child.off('exit', onExit);
        resolve(result);
      });
      this.#child.send(plan);
    });
  }

  stop(): Promise<void> {
    return stopChild(this.#child);
  }
}

/** The API's own process metrics at /metrics. */
export async function readProcessMetrics(port: number): Promise<{ rssBytes: number; cpuSeconds: number }> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const read = (name: string) => {
    const value = Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
    if (Number.isNaN(value)) throw new Error(`/metrics has no ${name}`);
    return value;
  };
  return {
    rssBytes: read('trueup_process_resident_memory_bytes'),
    cpuSeconds: read('trueup_process_cpu_seconds_total'),
  };
}
