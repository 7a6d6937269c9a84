import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { BlobStore } from '../../adapters/blobs/blobStore.js';
import { listCallRepairs, type RepairState } from '../../db/events/callRepairs.js';
import { listRetentionState, type RetentionState } from '../../db/installation/retentionRuns.js';
import { listExcessiveRights, loginOf } from '../../db/login.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import { isoFromMicros, MICROS_PER_DAY, microsFromDate } from '../../domain/period.js';
import type { Config } from '../../platform/config.js';
import { freeBytes } from '../../platform/embedded/dataDir.js';
import { findEmbeddedUrl } from '../../platform/embedded/postgresPlace.js';
import { secretKeyFile } from '../../platform/embedded/secretKeyFile.js';
import { isPortTaken } from '../../platform/embedded/serverProcess.js';
import { findGo, findTemporalProgram } from '../../platform/embedded/temporalProgram.js';
import { embeddedDatabaseUrl } from '../../platform/runtimeFile.js';
import { StartError } from '../../platform/startError.js';
import { blobStoreOf } from '../wiring/outside.js';
import { findMissingKeySentence, findSecretKeys } from '../wiring/requirements.js';
import { type Inspection, inspectService } from './inspect.js';
import { useToolDatabase } from './prepareDatabase.js';

/** Result of one check: fine, or the remedy. */
export interface Finding {
  what: string;
  ok: boolean;
  text: string;
}

const FREE_BYTES_MIN = 2 * 1024 ** 3;
const CLOCK_SKEW_MS_MAX = 5_000;

/** Checks the usual causes of problems. */
export async function diagnose(config: Config): Promise<Finding[]> {
  const inspection = await inspectService(config);
  const url = findDatabaseUrl(config, inspection);
  return [
    checkNode(),
    await checkPort(config, inspection),
    checkDisk(config, inspection),
    await checkBlobs(blobStoreOf(config)),
    checkPostgres(inspection),
    await checkTemporal(config, inspection),
    checkWorker(inspection),
    checkClock(inspection),
    checkKey(config, inspection),
    await checkSecretKey(config, inspection),
    await checkLogin(config, inspection),
    await checkRetention(url),
    await checkCalls(url),
  ];
}

function checkNode(): Finding {
  return { what: 'Node.js', ok: true, text: process.versions.node };
}

async function checkPort(config: Config, { running, parts }: Inspection): Promise<Finding> {
  const what = 'port';
  if (running) {
    const { status, address, detail } = parts.api;
    if (status === 'up') return { what, ok: true, text: `${address} answers` };
    if (status === 'degraded') return { what, ok: false, text: `${address}: ${detail}` };
    return { what, ok: false, text: `the API at ${address} does not answer: look at its log` };
  }
  const taken = await isPortTaken(config.port, config.host).catch(
    (error: NodeJS.ErrnoException) => error.code ?? true,
  );
  if (taken === false) return { what, ok: true, text: `${config.host}:${config.port} is free` };
  const reason = taken === true ? 'is taken by another program' : `cannot be used (${taken})`;
  return { what, ok: false, text: `${config.host}:${config.port} ${reason}: set PORT to a free one` };
}

function checkDisk(config: Config, { parts }: Inspection): Finding {
  const what = 'disk';
  let folder = config.dataDir;
  while (!existsSync(folder)) folder = dirname(folder);
  try {
    accessSync(folder, constants.W_OK);
  } catch {
    return { what, ok: false, text: `${folder} cannot be written: set DATA_DIR to a folder that you own` };
  }
  // The cluster may be on another disk.
  const folders = [config.dataDir, parts.postgres.directory ?? config.dataDir];
  const [[fullest, free] = [config.dataDir, 0]] = folders
    .map((each): [string, number] => [each, freeBytes(each)])
    .sort(([, a], [, b]) => a - b);
  const text = `${fullest}: ${(free / 1024 ** 3).toFixed(1)} GB free`;
  return free >= FREE_BYTES_MIN
    ? { what, ok: true, text }
    : { what, ok: false, text: `${text}: free some space, 2 GB at least` };
}

/** Whether uploaded files can be stored. */
async function checkBlobs(store: BlobStore): Promise<Finding> {
  const what = 'files';
  try {
    await store.check();
    return { what, ok: true, text: store.place };
  } catch (error) {
    const remedy = store.kind === 's3' ? ' Correct the settings S3_…, or what the key may do.' : '';
    return { what, ok: false, text: `${(error as Error).message}${remedy}` };
  }
}

function checkPostgres({ running, parts }: Inspection): Finding {
  const { status, address, version, detail, embedded } = parts.postgres;
  const what = 'Postgres';
  if (status === 'degraded') return { what, ok: false, text: `${address}: ${detail}` };
  if (status === 'up') return { what, ok: true, text: `${address}, version ${version}` };
  if (!running && embedded) return { what, ok: true, text: 'embedded, not running: npm start starts it' };
  const remedy = embedded ? 'look at logs/postgres.log in DATA_DIR' : 'start it, or correct DATABASE_URL';
  return {
    what,
    ok: false,
    text: `${address ?? 'embedded'} does not answer (${detail ?? status}): ${remedy}`,
  };
}

async function checkTemporal(config: Config, { parts }: Inspection): Promise<Finding> {
  const what = 'Temporal';
  const { status, address, version, detail, embedded } = parts.temporal;
  if (status === 'up') return { what, ok: true, text: `${address}${version ? `, version ${version}` : ''}` };
  if (!embedded)
    return { what, ok: false, text: `${address} does not answer: start it, or correct TEMPORAL_ADDRESS` };
  if (status === 'building' || status === 'starting') return { what, ok: true, text: detail ?? 'starting' };
  const program = await findTemporalProgram(config);
  if (program)
    return {
      what,
      ok: true,
      text: `${program.program} (server ${program.serverVersion}), not running: npm start starts it`,
    };
  if (findGo()) return { what, ok: true, text: 'no program yet: the first npm start fetches or builds it' };
  return {
    what,
    ok: false,
    text: 'no program and no Go to build one: put temporal 1.5 or newer on PATH, install Go, or set TEMPORAL_ADDRESS',
  };
}

function checkWorker({ running, parts }: Inspection): Finding {
  const { status, detail } = parts.worker;
  const ok = !running || status !== 'down';
  return {
    what: 'worker',
    ok,
    text: running ? `${status}${detail ? `: ${detail}` : ''}` : 'not running: npm start starts it',
  };
}

function checkClock({ parts }: Inspection): Finding {
  const what = 'clock';
  const { clockSkewMs } = parts.postgres;
  if (clockSkewMs === undefined) return { what, ok: true, text: new Date().toISOString() };
  const ok = Math.abs(clockSkewMs) <= CLOCK_SKEW_MS_MAX;
  const text = `${Math.round(clockSkewMs)} ms from the clock of Postgres`;
  return { what, ok, text: ok ? text : `${text}: set the clocks by NTP, or events land on wrong days` };
}

function checkKey(config: Config, { running }: Inspection): Finding {
  const what = 'admin key';
  const file = join(config.dataDir, 'admin-key');
  if (!existsSync(file)) {
    const text = `${file} is not there: `;
    return running
      ? { what, ok: false, text: `${text}make one with ./trueup keys create --role admin --name NAME` }
      : { what, ok: true, text: `${text}the first npm start makes it` };
  }
  const isPrivate = (statSync(file).mode & 0o077) === 0;
  return { what, ok: isPrivate, text: isPrivate ? file : `${file} can be read by others: chmod 600 ${file}` };
}

const WHAT = 'calls';
/** Repairing ten million events takes minutes; a longer repair is reported. */
const REPAIR_DAYS_MAX = 1n;

/** Checks that each call counts once: the results of repairing calls that an earlier version counted more than once. */
async function checkCalls(url: string | undefined): Promise<Finding> {
  if (url === undefined) return { what: WHAT, ok: true, text: 'Postgres does not answer: nothing is known' };
  try {
    return describeRepairs(await useToolDatabase(url, listCallRepairs), microsFromDate(new Date()));
  } catch {
    // No start of this version has prepared the database.
    return { what: WHAT, ok: true, text: 'npm start looks for calls that were counted more than once' };
  }
}

/** One line about all organizations. */
export function describeRepairs(repairs: readonly RepairState[], nowMicros: bigint): Finding {
  const sum = (of: (repair: RepairState) => bigint) =>
    repairs.reduce((total, repair) => total + of(repair), 0n);
  const calls = sum((repair) => BigInt(repair.calls));
  const events = sum((repair) => BigInt(repair.events));
  const cost: Pico = sum(({ costPico }) => costPico);
  const open = repairs.filter(({ finishedMicros }) => finishedMicros === null);
  if (open.length > 0) {
    const text = `the worker looks for calls that were counted more than once; ${events} events count no more so far`;
    const first = open.reduce(
      (least, { startedMicros }) => (startedMicros < least ? startedMicros : least),
      nowMicros,
    );
    if (nowMicros - first <= REPAIR_DAYS_MAX * MICROS_PER_DAY) return { what: WHAT, ok: true, text };
    const since = `since ${isoFromMicros(first).slice(0, 16)}Z`;
    return { what: WHAT, ok: false, text: `${text}, ${since}: look at the worker's log` };
  }
  if (events === 0n) return { what: WHAT, ok: true, text: 'each counts once' };
  const last = repairs
    .flatMap(({ finishedMicros }) => finishedMicros ?? [])
    .reduce((most, at) => (at > most ? at : most));
  const when = isoFromMicros(last).slice(0, 16);
  const text = `each counts once; at ${when}Z ${calls} that were counted more than once were repaired: ${events} events, $${decimalFromPico(cost)}, count no more`;
  return { what: WHAT, ok: true, text };
}

/** Checks whether the login of the API and the worker has more rights than it needs, which a bug could abuse. */
async function checkLogin(config: Config, { parts }: Inspection): Promise<Finding> {
  const what = 'login';
  const url = findLoginUrl(config, parts.postgres);
  if (url === undefined) return { what, ok: true, text: 'Postgres does not answer: nothing is known' };
  const { name } = loginOf(url);
  try {
    const rights = await listExcessiveRights(url);
    if (rights.length === 0)
      return { what, ok: true, text: `${name} owns nothing and is bound by row-level security` };
    return {
      what,
      ok: false,
      text: `${name} ${rights.join(', ')}: name a login of its own in DATABASE_URL and the owner in DATABASE_DIRECT_URL (docs/configuration.md)`,
    };
  } catch (error) {
    return {
      what,
      ok: false,
      text: `${name} cannot connect (${(error as Error).message}): start this version once`,
    };
  }
}

function findLoginUrl(config: Config, { status, embedded, address }: Inspection['parts']['postgres']) {
  if (status !== 'up' && status !== 'degraded') return undefined;
  if (config.databaseUrl !== undefined) return config.databaseUrl;
  return embedded && address !== undefined ? findEmbeddedUrl(config.dataDir, address, 'login') : undefined;
}

/** The interval of a day, and one missed run. */
const QUIET_DAYS_MAX = 3n;

/** Checks the retention: the last success of each step, and the reason of a failure. */
async function checkRetention(url: string | undefined): Promise<Finding> {
  const what = 'retention';
  if (url === undefined) return { what, ok: true, text: 'Postgres does not answer: nothing is known' };
  try {
    return describeRetention(await useToolDatabase(url, listRetentionState), microsFromDate(new Date()));
  } catch {
    // No start has prepared the database.
    return { what, ok: true, text: 'has not run yet' };
  }
}

/** One line about the state of the steps. */
export function describeRetention(states: readonly RetentionState[], nowMicros: bigint): Finding {
  const what = 'retention';
  if (states.length === 0) return { what, ok: true, text: 'has not run yet: it runs at 03:00 UTC' };
  const failing = states.find(({ failures }) => failures > 1);
  if (failing) {
    const { step, failures, errorMessage } = failing;
    return {
      what,
      ok: false,
      text: `${step} failed ${failures} times (${errorMessage}): what is too old there is not removed`,
    };
  }
  const successes = states.map(({ lastSuccessMicros }) => lastSuccessMicros ?? 0n);
  const oldest = successes.reduce((least, at) => (at < least ? at : least));
  if (oldest === 0n) return { what, ok: true, text: 'its first run is under way or failed once' };
  const isQuiet = nowMicros - oldest > QUIET_DAYS_MAX * MICROS_PER_DAY;
  const rows = states.reduce((sum, { removedRows }) => sum + removedRows, 0);
  const months = states.reduce((sum, { droppedPartitions }) => sum + droppedPartitions.length, 0);
  const when = isoFromMicros(oldest).slice(0, 16);
  return isQuiet
    ? { what, ok: false, text: `last done at ${when}Z: look whether the worker and Temporal run` }
    : { what, ok: true, text: `done at ${when}Z; ${rows} rows and ${months} months went` };
}

/** Checks that the key of the providers' credentials is available and decrypts the stored ones. */
async function checkSecretKey(config: Config, inspection: Inspection): Promise<Finding> {
  const what = 'secret key';
  try {
    const keys = findSecretKeys(config);
    const file = config.secretKeyFile ?? secretKeyFile(config.dataDir);
    if (!keys) return { what, ok: true, text: `${file} is not there: the first npm start makes it` };
    const url = findDatabaseUrl(config, inspection);
    const problem = url === undefined ? undefined : await findProblem(url, keys);
    if (problem !== undefined) return { what, ok: false, text: problem };
    return { what, ok: true, text: config.secretKey === undefined ? file : 'in TRUEUP_SECRET_KEY' };
  } catch (error) {
    if (error instanceof StartError) return { what, ok: false, text: error.message };
    throw error;
  }
}

/** The database's address, if it answers. */
function findDatabaseUrl(config: Config, { parts }: Inspection): string | undefined {
  const { status, embedded, address } = parts.postgres;
  if (status !== 'up') return undefined;
  if (config.databaseUrl !== undefined) return config.databaseUrl;
  return embedded && address !== undefined ? embeddedDatabaseUrl(config.dataDir, address) : undefined;
}

async function findProblem(
  url: string,
  keys: Parameters<typeof findMissingKeySentence>[1],
): Promise<string | undefined> {
  // A database that no start has prepared has no credentials.
  return useToolDatabase(url, (database) => findMissingKeySentence(database, keys).catch(() => undefined));
}
