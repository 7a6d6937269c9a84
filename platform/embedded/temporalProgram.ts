import { accessSync, constants, mkdirSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { type Config, processEnvironment } from '../config.js';
import { StartError } from '../startError.js';
import { type FileLock, takeFileLock } from './fileLock.js';
import { delay } from './serverProcess.js';
import { buildTemporal } from './temporalBuild.js';
import { downloadTemporal } from './temporalDownload.js';
import {
  cachedTemporal,
  isRecentEnough,
  readTemporalVersion,
  TEMPORAL_CLI_VERSION,
  TEMPORAL_SERVER_VERSION,
} from './temporalRelease.js';

/** A `temporal` program that can serve. */
export interface TemporalProgram {
  program: string;
  /** Version of the server inside it; names the file of its data. */
  serverVersion: string;
  origin: 'TEMPORAL_CLI_PATH' | 'PATH' | 'cache' | 'download' | 'build';
}

export type AcquireStep = 'downloading' | 'building' | 'waiting for another start that builds';

const WAIT_POLL_MS = 500;

/**
 * A program that is there already: TEMPORAL_CLI_PATH, else `temporal` on PATH when it is new enough, else the
 * machine's cache. Undefined when there is none.
 * @throws StartError when TEMPORAL_CLI_PATH names something else.
 */
export async function findTemporalProgram(
  config: Pick<Config, 'temporalCliPath' | 'cacheDir'>,
  searchPath = processEnvironment().PATH ?? '',
): Promise<TemporalProgram | undefined> {
  if (config.temporalCliPath !== undefined) return requireProgram(config.temporalCliPath);
  const onPath = findOnPath('temporal', searchPath);
  const version = onPath === undefined ? undefined : await readTemporalVersion(onPath);
  if (onPath && version && isRecentEnough(version)) {
    return { program: onPath, serverVersion: version.server, origin: 'PATH' };
  }
  return fromCache(config.cacheDir, 'cache');
}

/**
 * Makes a program where none is there: the official download, else a build from source. Once per machine: a second
 * start waits for the first one's.
 * @throws StartError that says what was tried and what to do.
 */
export async function acquireTemporalProgram(
  config: Pick<Config, 'cacheDir'>,
  report: (step: AcquireStep) => void,
  signal?: AbortSignal,
): Promise<TemporalProgram> {
  const target = cachedTemporal(config.cacheDir);
  mkdirSync(config.cacheDir, { recursive: true });
  const lock = await waitForLock(`${dirname(target)}.lock`, report, signal);
  try {
    const made = fromCache(config.cacheDir, 'cache');
    if (made) return made;
    const reasons: string[] = [];
    for (const [step, origin, make] of ways(target, signal)) {
      report(step);
      try {
        await make();
        return { program: target, serverVersion: TEMPORAL_SERVER_VERSION, origin };
      } catch (error) {
        signal?.throwIfAborted();
        reasons.push(`${origin}: ${describe(error)}`);
      }
    }
    throw new StartError(
      `No Temporal server can be had (${reasons.join('; ')}): put the temporal program ${TEMPORAL_CLI_VERSION} or newer on PATH or name it in TEMPORAL_CLI_PATH, or install Go, or set TEMPORAL_ADDRESS to a server.`,
    );
  } finally {
    lock.release();
  }
}

function ways(
  target: string,
  signal: AbortSignal | undefined,
): [AcquireStep, 'download' | 'build', () => Promise<void>][] {
  return [
    ['downloading', 'download', () => downloadTemporal({ target, signal })],
    ['building', 'build', () => buildTemporal(target, signal)],
  ];
}

/** fetch says only "fetch failed"; the cause knows why. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}

async function waitForLock(
  path: string,
  report: (step: AcquireStep) => void,
  signal: AbortSignal | undefined,
): Promise<FileLock> {
  for (let hasReported = false; ; hasReported = true) {
    signal?.throwIfAborted();
    const lock = takeFileLock(path);
    if ('release' in lock) return lock;
    if (!hasReported) report('waiting for another start that builds');
    await delay(WAIT_POLL_MS);
  }
}

function fromCache(cacheDir: string, origin: 'cache'): TemporalProgram | undefined {
  const program = cachedTemporal(cacheDir);
  return isExecutable(program) ? { program, serverVersion: TEMPORAL_SERVER_VERSION, origin } : undefined;
}

async function requireProgram(path: string): Promise<TemporalProgram> {
  const version = await readTemporalVersion(path);
  if (version && isRecentEnough(version)) {
    return { program: path, serverVersion: version.server, origin: 'TEMPORAL_CLI_PATH' };
  }
  const found = version
    ? `is temporal ${version.cli} with server ${version.server}`
    : 'is not a temporal program that runs';
  throw new StartError(
    `TEMPORAL_CLI_PATH is "${path}", which ${found}: give the path of temporal 1.5 or newer.`,
  );
}

function findOnPath(name: string, searchPath: string): string | undefined {
  return searchPath
    .split(delimiter)
    .filter(Boolean)
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
