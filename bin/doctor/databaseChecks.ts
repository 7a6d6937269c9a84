import { listRetentionState, type RetentionState } from '../../db/installation/retentionRuns.js';
import { listExcessiveRights, loginOf } from '../../db/login.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import { isoFromMicros, MICROS_PER_DAY, microsFromDate } from '../../domain/period.js';
import type { Config } from '../../platform/config.js';
import { findEmbeddedUrl } from '../../platform/embedded/postgresLogins.js';
import { secretKeyFile } from '../../platform/embedded/secretKeyFile.js';
import { embeddedDatabaseUrl } from '../../platform/runtimeFile.js';
import { StartError } from '../../platform/startError.js';
import { listCallRepairs, type RepairState } from '../../usecases/events/callRepairs.js';
import { openToolDatabase } from '../service/firstStart.js';
import type { Inspection } from '../service/inspect.js';
import { findMissingKeySentence, findSecretKeys } from '../wiring/requirements.js';
import type { Finding } from './systemChecks.js';

const WHAT = 'calls';
/** Ten million events take minutes. */
const REPAIR_DAYS_MAX = 1n;

/** Whether each call counts once: what the repair of calls that an earlier version counted more than once has found. */
export async function checkCalls(url: string | undefined): Promise<Finding> {
  if (url === undefined) return { what: WHAT, ok: true, text: 'Postgres does not answer: nothing is known' };
  const database = openToolDatabase(url);
  try {
    return describeRepairs(await listCallRepairs(database), microsFromDate(new Date()));
  } catch {
    // A database that no start of this version has prepared.
    return { what: WHAT, ok: true, text: 'npm start looks for calls that were counted more than once' };
  } finally {
    await database.close();
  }
}

/** One line on all organizations. */
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

/** Whether the login of the API and the worker may do more than they need, so that a fault in them could. */
export async function checkLogin(config: Config, { parts }: Inspection): Promise<Finding> {
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

/** A run a day, and one that may have been missed. */
const QUIET_DAYS_MAX = 3n;

/** Whether what is too old is removed: when each step last succeeded, and why one did not. */
export async function checkRetention(url: string | undefined): Promise<Finding> {
  const what = 'retention';
  if (url === undefined) return { what, ok: true, text: 'Postgres does not answer: nothing is known' };
  const database = openToolDatabase(url);
  try {
    return describeRetention(await listRetentionState(database), microsFromDate(new Date()));
  } catch {
    // A database that no start has prepared.
    return { what, ok: true, text: 'has not run yet' };
  } finally {
    await database.close();
  }
}

/** One line on how the steps stand. */
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

/** Whether the key that seals the providers' credentials is at hand, and opens what is stored. */
export async function checkSecretKey(config: Config, inspection: Inspection): Promise<Finding> {
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

/** The database, where it answers. */
export function findDatabaseUrl(config: Config, { parts }: Inspection): string | undefined {
  const { status, embedded, address } = parts.postgres;
  if (status !== 'up') return undefined;
  if (config.databaseUrl !== undefined) return config.databaseUrl;
  return embedded && address !== undefined ? embeddedDatabaseUrl(config.dataDir, address) : undefined;
}

async function findProblem(
  url: string,
  keys: Parameters<typeof findMissingKeySentence>[1],
): Promise<string | undefined> {
  const database = openToolDatabase(url);
  try {
    // A database that no start has prepared holds no credentials.
    return await findMissingKeySentence(database, keys).catch(() => undefined);
  } finally {
    await database.close();
  }
}
