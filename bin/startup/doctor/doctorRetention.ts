import { listRetentionState, type RetentionState } from '../../../db/installation/retentionRuns.js';
import { isoFromMicros, MICROS_PER_DAY, microsFromDate } from '../../../domain/period.js';
import { openToolDatabase } from '../firstStart.js';
import type { Finding } from './doctorChecks.js';

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
