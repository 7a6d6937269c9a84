import { execFile, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, createWriteStream, mkdirSync, renameSync } from 'node:fs';
import { chmod, mkdir, rename, rm } from 'node:fs/promises';
import { setPriority } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, processEnvironment } from '../config.js';
import { PROJECT_ROOT } from '../projectRoot.js';
import { StartError } from '../startError.js';
import { type FileLock, takeFileLock } from './fileLock.js';
import { ServerProcess } from './serverProcess.js';

/** A usable `temporal` program. */
export interface TemporalProgram {
  program: string;
  /** Version of its server; it names the data file. */
  serverVersion: string;
  origin: 'TEMPORAL_CLI_PATH' | 'PATH' | 'cache' | 'download' | 'build';
}

export type AcquireStep = 'downloading' | 'building' | 'waiting for another start that builds';

const WAIT_POLL_MS = 500;

/**
 * An existing program: TEMPORAL_CLI_PATH, else `temporal` on PATH if it is recent enough, else the machine's cache.
 * undefined: none.
 * @throws StartError when TEMPORAL_CLI_PATH names another program.
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
 * Installs a program where none exists: the official download, else a build from source. Once per machine: a second
 * start waits for the first one's.
 * @throws StartError with the attempts and the remedy.
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

/** fetch's message is only "fetch failed"; the cause has the reason. */
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
    await sleep(WAIT_POLL_MS);
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

export function findOnPath(name: string, searchPath: string): string | undefined {
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

/** The Go version in tools/temporal/go.mod; Go from 1.21 on downloads it, unless GOTOOLCHAIN forbids that. */
const GO_NEEDED = [1, 25] as const;
const GO_FETCHING = [1, 21] as const;

/** Priority below the service, which is already open while the compiler uses every core. */
const BUILD_PRIORITY = 10;

const PACKAGE = 'github.com/temporalio/cli/cmd/temporal';

/** The Go toolchain on PATH that can build the server; undefined: none. */
export function findGo(): { version: string; fetchesToolchain: boolean } | undefined {
  const run = spawnSync('go', ['env', 'GOVERSION'], {
    encoding: 'utf8',
    env: { ...processEnvironment(), GOTOOLCHAIN: 'local' },
  });
  const match = /^go(\d+)\.(\d+)/.exec(run.stdout ?? '');
  if (!match) return undefined;
  const [major, minor] = [Number(match[1]), Number(match[2])];
  const isAtLeast = ([wantedMajor, wantedMinor]: readonly [number, number]) =>
    major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
  if (!isAtLeast(GO_FETCHING)) return undefined;
  return { version: `${major}.${minor}`, fetchesToolchain: !isAtLeast(GO_NEEDED) };
}

/**
 * Builds the pinned server from source through the Go module proxy, with every module checked against
 * tools/temporal/go.sum. Its caches (6 GB) are separate, beside the target, and removed afterwards; those of an
 * interrupted build are used again. The caller holds the machine's lock for builds.
 * @throws Error with the end of the compiler's output.
 */
export async function buildTemporal(target: string, signal?: AbortSignal): Promise<void> {
  const go = findGo();
  if (!go) throw new Error('there is no Go 1.21 or newer on PATH');
  const work = `${dirname(target)}.build`;
  const draft = join(work, 'temporal');
  mkdirSync(work, { recursive: true });
  const compiler = new ServerProcess({
    program: 'go',
    args: [
      ...['-C', join(PROJECT_ROOT, 'tools/temporal'), 'build', '-trimpath', '-buildvcs=false'],
      ...['-ldflags', `-s -w -X github.com/temporalio/cli/temporalcli.Version=${TEMPORAL_CLI_VERSION}`],
      ...['-o', draft, PACKAGE],
    ],
    deathSignal: 'TERM',
    logFile: join(work, 'build.log'),
    environment: processEnvironment({
      CGO_ENABLED: '0',
      GOWORK: 'off',
      GOFLAGS: '-modcacherw',
      GOMODCACHE: join(work, 'mod'),
      GOCACHE: join(work, 'cache'),
      GOTOOLCHAIN: go.fetchesToolchain ? 'auto' : 'local',
    }),
  });
  lowerPriority(compiler.pid);
  const interrupt = () => void compiler.stopGroup();
  signal?.addEventListener('abort', interrupt, { once: true });
  const end = await compiler.exited;
  signal?.removeEventListener('abort', interrupt);
  if (signal?.aborted) throw new Error('interrupted');
  if (end === 'exit code 0') {
    mkdirSync(dirname(target), { recursive: true });
    renameSync(draft, target);
  }
  const output = compiler.output().trim().split('\n').slice(-3).join(' / ');
  await rm(work, { recursive: true, force: true });
  if (end !== 'exit code 0') throw new Error(`go build failed (${end}): ${output}`);
}

function lowerPriority(pid: number): void {
  try {
    setPriority(pid, BUILD_PRIORITY);
  } catch {
    // It has ended already, or the system does not permit it: the build then runs at normal priority.
  }
}

/** Milliseconds of silence after which a download is given up, so that a closed network does not delay the build. */
const SILENCE_LIMIT_MS = 10_000;

export interface DownloadOptions {
  /** Path of the program. */
  target: string;
  signal?: AbortSignal | undefined;
  /** Replaces the official release, for tests. */
  source?: { url: string; sha256: string };
  silenceLimitMs?: number;
}

/**
 * Downloads the official release of the pinned version, verifies its sha256 and unpacks the program to `target`.
 * @throws Error with the reason: no network, another checksum, no release for this platform.
 */
export async function downloadTemporal(options: DownloadOptions): Promise<void> {
  const source = options.source ?? officialArchive();
  const folder = `${options.target}.download-${process.pid}`;
  await mkdir(folder, { recursive: true });
  try {
    const archive = join(folder, 'archive.tar.gz');
    const sha256 = await fetchTo(archive, source.url, options);
    if (sha256 !== source.sha256) {
      throw new Error(
        `${source.url} has the sha256 ${sha256}, not the pinned ${source.sha256}: it was not used`,
      );
    }
    await unpack(archive, folder);
    await chmod(join(folder, 'temporal'), 0o755);
    await mkdir(dirname(options.target), { recursive: true });
    await rename(join(folder, 'temporal'), options.target);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function officialArchive(): { url: string; sha256: string } {
  const platform = `${process.platform}-${process.arch}`;
  const archive = TEMPORAL_ARCHIVES[platform];
  if (!archive) throw new Error(`there is no release for ${platform}`);
  return { url: TEMPORAL_RELEASE_URL + archive.name, sha256: archive.sha256 };
}

/** Streams an address into a file and returns its sha256. */
async function fetchTo(file: string, url: string, options: DownloadOptions): Promise<string> {
  const silence = new AbortController();
  const limitMs = options.silenceLimitMs ?? SILENCE_LIMIT_MS;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(new Error(`no answer for ${limitMs / 1000} s`)), limitMs);
  };
  let timer: NodeJS.Timeout | undefined;
  heard();
  const signal = options.signal ? AbortSignal.any([silence.signal, options.signal]) : silence.signal;
  try {
    const response = await fetch(url, { signal });
    if (!response.ok || !response.body) throw new Error(`${url} answered ${response.status}`);
    const hash = createHash('sha256');
    const body = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
    body.on('data', (chunk: Buffer) => {
      hash.update(chunk);
      heard();
    });
    await pipeline(body, createWriteStream(file), { signal });
    return hash.digest('hex');
  } catch (error) {
    throw silence.signal.aborted ? silence.signal.reason : error;
  } finally {
    clearTimeout(timer);
  }
}

function unpack(archive: string, folder: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const tar = spawn('tar', ['-xzf', archive, '-C', folder, 'temporal'], { stdio: 'ignore' });
    tar.once('error', reject);
    tar.once('exit', (code) =>
      code === 0 ? resolve() : reject(new Error('the archive cannot be unpacked with tar')),
    );
  });
}

/** The version that is downloaded or built, equal to the one in tools/temporal/go.mod. */
export const TEMPORAL_CLI_VERSION = '1.5.1';
/** The server inside that release. */
export const TEMPORAL_SERVER_VERSION = '1.29.1';

/** Address of the official release, to which an archive's name is appended. */
export const TEMPORAL_RELEASE_URL = `https://github.com/temporalio/cli/releases/download/v${TEMPORAL_CLI_VERSION}/`;

/** sha256 of the official archives, by platform and processor as Node names them (docs/decisions/0037). */
export const TEMPORAL_ARCHIVES: Readonly<Record<string, { name: string; sha256: string }>> = {
  'linux-x64': {
    name: `temporal_cli_${TEMPORAL_CLI_VERSION}_linux_amd64.tar.gz`,
    sha256: 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d',
  },
  'linux-arm64': {
    name: `temporal_cli_${TEMPORAL_CLI_VERSION}_linux_arm64.tar.gz`,
    sha256: 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5',
  },
  'darwin-x64': {
    name: `temporal_cli_${TEMPORAL_CLI_VERSION}_darwin_amd64.tar.gz`,
    sha256: 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9',
  },
  'darwin-arm64': {
    name: `temporal_cli_${TEMPORAL_CLI_VERSION}_darwin_arm64.tar.gz`,
    sha256: 'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415',
  },
};

/** Path of the pinned release's program in the machine's cache, existing or not. */
export function cachedTemporal(cacheDir: string): string {
  return join(cacheDir, `temporal-${TEMPORAL_CLI_VERSION}`, 'temporal');
}

const VERSION_LIMIT_MS = 10_000;

/** Versions that a `temporal` program reports; one built without a release number reports 0.0.0-DEV. */
export interface TemporalVersion {
  cli: string;
  server: string;
}

/** `temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)` → its versions; undefined for any other text. */
export function parseTemporalVersion(text: string): TemporalVersion | undefined {
  const match = /temporal version (\d+\.\d+\.\d+\S*) \(Server (\d+\.\d+\.\d+\S*?),/.exec(text);
  return match?.[1] && match[2] ? { cli: match[1], server: match[2] } : undefined;
}

/** CLI 1.5 brings server 1.29, the oldest that the workflows are written for. */
export function isRecentEnough(version: TemporalVersion): boolean {
  const [major = 0, minor = 0] = version.server.split('.').map(Number);
  return major > 1 || (major === 1 && minor >= 29);
}

/** The versions that a program reports; undefined: it does not run or is another program. */
export function readTemporalVersion(program: string): Promise<TemporalVersion | undefined> {
  return new Promise((resolve) => {
    execFile(program, ['--version'], { timeout: VERSION_LIMIT_MS }, (error, stdout) => {
      resolve(error ? undefined : parseTemporalVersion(stdout));
    });
  });
}
