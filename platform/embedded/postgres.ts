import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { StartError } from '../startError.js';
import { freeBytes, readPorts, rememberPorts, WAL_SEGMENT_BYTES } from './dataDir.js';
import { type PostgresBinaries, preparePostgresBinaries } from './postgresBinaries.js';
import {
  type ClusterPlace,
  checkDataVersion,
  DATABASE_NAME,
  findEmbeddedUrl,
  giveTo,
  makeServerDir,
  OWNER_NAME,
  type PostgresLogin,
  placeCluster,
  readOrMakePassword,
} from './postgresPlace.js';
import { commandLine, isAlive, waitUntilGone } from './processTable.js';
import { findFreePort, ServerProcess } from './serverProcess.js';

/** A Postgres server that this process started. */
export interface EmbeddedPostgres {
  /** Connection string of the database `trueup` for its owner, a superuser, password included. */
  url: string;
  /** Connection string for the login of the API and the worker, which `makeLogin` creates. */
  loginUrl: string;
  port: number;
  pid: number;
  /** Folder of its files. */
  directory: string;
  version: string;
  /** Resolves with the reason when the server has ended for any cause. */
  exited: Promise<string>;
  /** Stops it: rolls its transactions back and leaves its files clean. */
  stop(): Promise<void>;
}

export interface PostgresOptions {
  dataDir: string;
  cacheDir: string;
  /** Server settings that override ours, for tests. */
  settings?: Readonly<Record<string, string>>;
  /** Place of the cluster, where it differs from the data directory's: a restore tests the cluster there first. */
  place?: ClusterPlace;
}

/**
 * Full durability, because the data are records of money; the other values were measured to suffice for a machine of 2
 * cores.
 */
const SERVER_SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '256MB',
  max_wal_size: '4GB',
  checkpoint_timeout: '15min',
  maintenance_work_mem: '128MB',
  random_page_cost: '1.1',
  max_connections: '100',
  log_min_messages: 'warning',
  log_timezone: 'UTC',
};

/** Longest wait for readiness, milliseconds: crash recovery replays up to max_wal_size. */
const READY_LIMIT_MS = 180_000;
/** Longest time for which the remains of a dead server may use its files, milliseconds. */
const TAKEOVER_LIMIT_MS = 15_000;
const POLL_MS = 10;
const STOP_SIGNALS: readonly [NodeJS.Signals, number][] = [
  ['SIGINT', 8_000],
  ['SIGQUIT', 1_500],
  ['SIGKILL', 500],
];

/**
 * Starts the embedded Postgres of a data directory, and creates the cluster and the database `trueup` where they are
 * missing. Stops a server that a killed start left running. The caller holds the data directory's lock.
 * @throws StartError with one sentence for causes that the user can fix.
 */
export async function startPostgres(options: PostgresOptions): Promise<EmbeddedPostgres> {
  const place = options.place ?? placeCluster(options.dataDir);
  const binaries = preparePostgresBinaries(options.cacheDir, place.runAs?.uid);
  const password = readOrMakePassword(options.dataDir, 'owner');
  readOrMakePassword(options.dataDir, 'login');
  if (!existsSync(join(place.directory, 'PG_VERSION'))) await initCluster(options, place, binaries, password);
  checkDataVersion(place.directory, binaries.version);
  await endOrphan(place.directory);
  const { server, port } = await launch(options, place, binaries);
  const urlOf = (login: PostgresLogin) =>
    findEmbeddedUrl(options.dataDir, `127.0.0.1:${port}`, login) as string;
  const url = urlOf('owner');
  try {
    rememberPorts(options.dataDir, { postgres: port });
    await createDatabase(url);
  } catch (error) {
    await server.stop(STOP_SIGNALS);
    throw error;
  }
  return {
    url,
    loginUrl: urlOf('login'),
    port,
    pid: server.pid,
    directory: place.directory,
    version: binaries.version.split('.').slice(0, 2).join('.'),
    exited: server.exited,
    stop: () => server.stop(STOP_SIGNALS),
  };
}

function logFile(dataDir: string): string {
  return join(dataDir, 'logs', 'postgres.log');
}

/** Runs initdb in a draft folder and renames it when complete, so that a killed start leaves no partial cluster. */
async function initCluster(
  options: PostgresOptions,
  place: ClusterPlace,
  binaries: PostgresBinaries,
  password: string,
): Promise<void> {
  const draft = `${place.directory}.new`;
  const passwordFile = join(dirname(place.directory), `.pg-password-${process.pid}`);
  rmSync(draft, { recursive: true, force: true });
  makeServerDir(draft, place.runAs);
  writeFileSync(passwordFile, password, { mode: 0o600 });
  giveTo(passwordFile, place.runAs);
  try {
    const initdb = new ServerProcess({
      program: binaries.initdb,
      args: [
        ...['-D', draft, '-U', OWNER_NAME, '--auth=scram-sha-256', `--pwfile=${passwordFile}`],
        ...['--encoding=UTF8', '--locale=C', '--data-checksums', '--no-instructions'],
      ],
      runAs: place.runAs,
      deathSignal: 'TERM',
      logFile: logFile(options.dataDir),
      environment: serverEnvironment(),
    });
    const end = await initdb.exited;
    if (end !== 'exit code 0')
      throw explainFailure({
        program: 'initdb',
        end,
        output: initdb.output(),
        dataDir: options.dataDir,
        directory: draft,
      });
  } finally {
    rmSync(passwordFile, { force: true });
  }
  renameSync(draft, place.directory);
}

/**
 * Starts the server; retries on another port if ours was taken meanwhile, and while the remains of a dead server end.
 */
async function launch(
  options: PostgresOptions,
  place: ClusterPlace,
  binaries: PostgresBinaries,
): Promise<{ server: ServerProcess; port: number }> {
  const settings = { ...SERVER_SETTINGS, ...options.settings };
  const deadline = performance.now() + TAKEOVER_LIMIT_MS;
  let preferred = readPorts(options.dataDir).postgres;
  for (;;) {
    const port = await findFreePort(preferred);
    const server = new ServerProcess({
      program: binaries.postgres,
      args: [
        ...['-D', place.directory, '-p', String(port)],
        ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ],
      runAs: place.runAs,
      deathSignal: 'INT',
      logFile: logFile(options.dataDir),
      environment: serverEnvironment(),
    });
    if (await isReady(server, place.directory)) return { server, port };
    const output = server.output();
    const again = /could not bind|still in use|lock file .* already exists/.test(output);
    if (!again || performance.now() > deadline) {
      const end = server.exit ?? 'not ready in time';
      const { directory } = place;
      throw explainFailure({ program: 'Postgres', end, output, dataDir: options.dataDir, directory });
    }
    if (output.includes('could not bind')) preferred = undefined;
    await sleep(100);
  }
}

/** false: the server ended before it was ready. postmaster.pid has the pid in line 1 and the state in line 8. */
async function isReady(server: ServerProcess, directory: string): Promise<boolean> {
  const deadline = performance.now() + READY_LIMIT_MS;
  while (server.exit === undefined && performance.now() < deadline) {
    const lines = readPidFile(directory);
    if (Number(lines[0]) === server.pid && lines[7]?.trim() === 'ready') return true;
    await sleep(POLL_MS);
  }
  await server.stop(STOP_SIGNALS);
  return false;
}

function readPidFile(directory: string): string[] {
  try {
    return readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n');
  } catch {
    return [];
  }
}

/**
 * Stops a Postgres that still runs on these files because its Node process was killed where the system could not signal
 * it. A pid file whose number now belongs to another program is removed, because Postgres would mistake that program
 * for itself.
 */
async function endOrphan(directory: string): Promise<void> {
  const pid = Number(readPidFile(directory)[0]);
  if (!Number.isInteger(pid) || pid <= 0 || !isAlive(pid)) return;
  if (!commandLine(pid).includes(directory)) {
    rmSync(join(directory, 'postmaster.pid'), { force: true });
    return;
  }
  for (const [signal, waitMs] of STOP_SIGNALS) {
    process.kill(pid, signal);
    if (await waitUntilGone(pid, waitMs)) return;
  }
}

async function createDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url.replace(/\/[^/]*$/, '/postgres') });
  try {
    await client.connect();
    const found = await client.query('select from pg_database where datname = $1', [DATABASE_NAME]);
    if (found.rowCount === 0) await client.query(`create database ${DATABASE_NAME}`);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new StartError(`The embedded Postgres started but refuses us: ${message}.`, { cause: error });
  } finally {
    await client.end();
  }
}

/** An environment without the user's variables: PGDATA or LC_ALL would change the server's behaviour. */
function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: '/usr/local/bin:/usr/bin:/bin', LANG: 'C', TZ: 'UTC' };
}

/** Exit and output of a server or initdb that ended too early. */
interface Failure {
  program: string;
  end: string;
  output: string;
  dataDir: string;
  directory: string;
}

function explainFailure({ program, end, output, dataDir, directory }: Failure): StartError {
  // A full disk also loses the log's last lines. Without space for a segment of its log Postgres does not start.
  if (/No space left on device/.test(output) || freeBytes(directory) < WAL_SEGMENT_BYTES) {
    return new StartError(
      `The disk of ${dirname(directory)} is full, so Postgres cannot start: free some space.`,
    );
  }
  if (/could not look up effective user ID/.test(output)) {
    return new StartError(
      'Postgres needs a user with a name, and this user id has no entry in /etc/passwd: start as another user, or set DATABASE_URL.',
    );
  }
  if (/ENOENT|not found|libc\.so/.test(end + output)) {
    return new StartError(
      `The embedded Postgres cannot run on this system (it needs glibc; ${end}): set DATABASE_URL to a Postgres 15 or newer.`,
    );
  }
  const lines = output.split('\n').filter((line) => /FATAL|PANIC|error:/.test(line));
  const why = lines.at(-1)?.replace(/^.*(?:FATAL|PANIC|error):\s*/, '') ?? end;
  return new StartError(`${program} did not start: ${why}. Its log is ${logFile(dataDir)}.`);
}
