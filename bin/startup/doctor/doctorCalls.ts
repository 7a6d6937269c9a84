import { decimalFromPico, type Pico } from '../../../domain/money.js';
import { isoFromMicros, MICROS_PER_DAY, microsFromDate } from '../../../domain/period.js';
import { listCallRepairs, type RepairState } from '../../../usecases/events/callRepairs.js';
import { openToolDatabase } from '../firstStart.js';
import type { Finding } from './doctorChecks.js';

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
