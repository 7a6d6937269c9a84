import type { OrgDb } from '../../db/orgDb.js';
import { REPRICE_RUNS, repriceBatch, startRepriceRun } from '../../db/pricing/repriceRuns.js';
import { readUnpricedModels } from '../../db/pricing/unpriced.js';
import { findRun } from '../../db/runs/runTable.js';
import { RUN_TERMINAL_STATUSES } from '../../domain/runs/runKinds.js';
import { endRun } from '../runs/endRun.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';
import type { Prices } from './priceBookHolder.js';

interface RepriceDeps extends UseCaseDeps {
  prices: Prices;
  /** Duration of one pass, milliseconds; absent: the product's default. */
  repricePassMs?: number;
}

/** Duration of one pass, milliseconds: long enough for few history entries, short enough for cancellation. */
const PASS_MS = 10_000;

const PRICES_CHANGED = {
  code: 'prices_changed',
  message:
    'the prices changed while the run was at work; start it again, so that one state of them holds for all calls',
};

/**
 * Re-prices batches of calls for one pass. All passes of a run use the same prices, those stored at its start; a run
 * that finds other prices ends as partial. Returns whether the run is complete. `checkpoint` throws when the run was
 * cancelled meanwhile.
 */
export async function repriceCalls(
  deps: RepriceDeps,
  { orgId, runId }: { orgId: string; runId: string },
  checkpoint: () => void,
): Promise<{ done: boolean }> {
  const orgDb = orgDbOf(deps, orgId);
  const found = await findRun(orgDb, REPRICE_RUNS, runId);
  if (!found || RUN_TERMINAL_STATUSES.has(found.status)) return { done: true };
  const book = await deps.prices.freshOf(orgId);
  const run = await startRepriceRun(orgDb, runId, book.version);
  if (!run) {
    // A run that was asked to stop also ends here, in case its workflow missed the request; an ended run does not
    // change.
    await endRun(orgDb, 'reprice', runId, { status: 'cancelled' });
    return { done: true };
  }
  if (run.priceVersion !== book.version) {
    await endRun(orgDb, 'reprice', runId, { status: 'partial', error: PRICES_CHANGED });
    return { done: true };
  }
  const untilMs = performance.now() + (deps.repricePassMs ?? PASS_MS);
  for (;;) {
    const step = await orgDb.transaction((inside) => repriceBatch(inside, runId, book));
    if (step === 'over') return { done: true };
    if (step === 'done') break;
    checkpoint();
    if (performance.now() >= untilMs) return { done: false };
  }
  const after = await deps.prices.freshOf(orgId);
  const same = after.version === book.version;
  await endRun(
    orgDb,
    'reprice',
    runId,
    same ? { status: 'succeeded' } : { status: 'partial', error: PRICES_CHANGED },
  );
  return { done: true };
}

/** Models in the hours of a window whose calls lack a price, or have an assumed one, in one snapshot. */
export function listUnpricedModels(orgDb: OrgDb, window: { fromMicros: bigint; toMicros: bigint }) {
  return orgDb.transaction((inside) => readUnpricedModels(inside, window), 'repeatable read');
}
