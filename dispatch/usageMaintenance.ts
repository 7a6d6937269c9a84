import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import { TRACE_SPANS_MAX } from '../domain/events/event.js';
import { repairCalls } from '../usecases/events/callRepairs.js';
import { reportDoubleInstrumentation } from '../usecases/events/ingestHealth.js';
import { sweepTraces } from '../usecases/events/traceSweep.js';
import { analyzeGrownTables, makePartitions, pruneCallSpans } from '../usecases/installation/maintenance.js';
import { openDueSavings } from '../usecases/policies/savings.js';
import type { Prices } from '../usecases/pricing/priceBookHolder.js';
import { foldAll } from '../usecases/usage/usage.js';
import type { UseCaseDeps } from '../usecases/useCaseDeps.js';
import { Pace } from './pace.js';

/**
 * Pause between two rounds of each duty, milliseconds. Reads sum unfolded rows, so a fold may wait for more rows: in a
 * fold of 5,000 each costs a third of what each costs in one of 200 (docs/decisions/0006).
 */
const FOLD_PAUSE_MS = 10_000;
const SWEEP_PAUSE_MS = 5_000;
const PRUNE_PAUSE_MS = 3_600_000;
const PARTITION_PAUSE_MS = 6 * 3_600_000;
const DOUBLES_PAUSE_MS = 3_600_000;
const REPAIR_PAUSE_MS = 3_600_000;
/** Longest delay of an hourly run. */
const SAVINGS_PAUSE_MS = 60_000;

export interface UsageMaintenanceOptions extends UseCaseDeps {
  /** Connection string without a transaction pooler, for partitions. */
  directUrl: string;
  prices: Prices;
  logger: Logger;
  nowMicros(): bigint;
}

interface Duty {
  name: string;
  pauseMs: number;
  /** Runs one round, with a rest after each of its parts; true: more work is waiting, so the next round follows. */
  round(rest: () => Promise<void>): Promise<boolean>;
}

/**
 * Background maintenance of totals and calls: folds new events and analyzes grown tables, finds spans of one call that
 * came in different requests, repairs calls that an earlier version counted more than once, creates partitions in
 * advance, deletes old span identities, and reports services that are instrumented twice. Several processes may run it,
 * since every round is idempotent. Returns the function that stops it after the rounds in progress.
 */
export function startUsageMaintenance(options: UsageMaintenanceOptions): () => Promise<void> {
  const { database, directUrl, logger, nowMicros } = options;
  const duties: Duty[] = [
    {
      name: 'fold',
      pauseMs: FOLD_PAUSE_MS,
      round: async (rest) => {
        const more = await foldAll(options, { afterEach: rest });
        await analyzeGrownTables(options, rest);
        return more;
      },
    },
    {
      name: 'sweep',
      pauseMs: SWEEP_PAUSE_MS,
      round: () => sweep(options),
    },
    { name: 'repair', pauseMs: REPAIR_PAUSE_MS, round: () => repairCalls(options) },
    { name: 'prune', pauseMs: PRUNE_PAUSE_MS, round: async () => (await pruneCallSpans(options)) > 0 },
    {
      name: 'partitions',
      pauseMs: PARTITION_PAUSE_MS,
      round: () => makePartitions(directUrl).then(() => false),
    },
    {
      name: 'double instrumentation',
      pauseMs: DOUBLES_PAUSE_MS,
      round: () => reportDoubleInstrumentation(options, nowMicros()).then(() => false),
    },
    {
      name: 'savings',
      pauseMs: SAVINGS_PAUSE_MS,
      round: () => openDueSavings({ database }, nowMicros()).then(() => false),
    },
  ];
  const stopping = new AbortController();
  const loops = duties.map((duty) => runDuty(duty, stopping.signal, logger));
  return async () => {
    stopping.abort();
    await Promise.all(loops);
  };
}

async function sweep({ database, prices, logger }: UsageMaintenanceOptions): Promise<boolean> {
  const { more, longTraces } = await sweepTraces(database, prices);
  if (longTraces > 0)
    logger.info(
      { traces: longTraces, spans_max: TRACE_SPANS_MAX },
      'of long traces the last spans were compared',
    );
  return more;
}

async function runDuty(duty: Duty, signal: AbortSignal, logger: Logger): Promise<void> {
  const sleep = (ms: number) => setTimeout(ms, undefined, { signal }).catch(() => undefined);
  const pace = new Pace(sleep);
  while (!signal.aborted) {
    pace.start();
    const more = await duty
      .round(() => pace.rest())
      .catch((error: unknown) => {
        // The next round retries; only repeated warnings need attention.
        logger.warn({ err: error, duty: duty.name }, 'maintenance round failed; it is repeated');
        return false;
      });
    if (more) await pace.rest();
    else await sleep(duty.pauseMs);
  }
}
