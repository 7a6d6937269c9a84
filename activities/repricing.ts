import { CancelledFailure, Context } from '@temporalio/activity';
import { OrgDb } from '../db/orgDb.js';
import { repriceBatch } from '../db/pricing/repriceBatch.js';
import { REPRICE_RUNS, startRepriceRun } from '../db/pricing/repriceRuns.js';
import { findRun } from '../db/runs/runTable.js';
import { RUN_TERMINAL_STATUSES } from '../domain/runs/runs.js';
import { endRun } from '../usecases/runs/endRun.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';
import { runEndings } from './runEndings.js';

interface RunRef {
  orgId: string;
  runId: string;
}

/** How long one effect goes on with batch after batch: few entries in the history, and a cancellation is soon heard. */
const PASS_MS = 10_000;

const PRICES_CHANGED = {
  code: 'prices_changed',
  message:
    'the prices changed while the run was at work; start it again, so that one state of them holds for all calls',
};

/** The effects of a re-pricing. */
export function createRepricingActivities(deps: ActivityDeps) {
  const orgDbOf = (orgId: string) => new OrgDb(deps.database, orgId);
  const endings = runEndings(deps, 'reprice');
  return {
    /** Prices the next events of a run; says whether that was all. */
    repriceEvents: ({ orgId, runId }: RunRef): Promise<{ done: boolean }> =>
      // Each batch commits with the run's place: a repeat goes on behind what was done.
      withFailures(() => withHeartbeat(() => repricePass(deps, orgDbOf(orgId), runId))),

    endRepricingCancelled: endings.cancelled,
    endRepricingFailed: endings.failed,
  };
}

/**
 * Batch after batch for a while. The prices are those stored now, and the same for all of the run: a run that meets
 * others ends, and says so.
 */
async function repricePass(deps: ActivityDeps, orgDb: OrgDb, runId: string): Promise<{ done: boolean }> {
  const found = await findRun(orgDb, REPRICE_RUNS, runId);
  if (!found || RUN_TERMINAL_STATUSES.has(found.status)) return { done: true };
  const book = await deps.prices.freshOf(orgDb.orgId);
  const run = await startRepriceRun(orgDb, runId, book.version);
  if (!run) {
    // A run that was asked to stop ends here too, where its workflow did not hear of it; one that has ended stays as it is.
    await endRun(orgDb, 'reprice', runId, { status: 'cancelled' });
    return { done: true };
  }
  if (run.priceVersion !== book.version) {
    await endRun(orgDb, 'reprice', runId, { status: 'partial', error: PRICES_CHANGED });
    return { done: true };
  }
  const { cancellationSignal } = Context.current();
  const untilMs = performance.now() + (deps.repricePassMs ?? PASS_MS);
  for (;;) {
    const step = await repriceBatch(orgDb, runId, book);
    if (step === 'over') return { done: true };
    if (step === 'done') break;
    if (cancellationSignal.aborted) throw new CancelledFailure('the run was cancelled');
    if (performance.now() >= untilMs) return { done: false };
  }
  const after = await deps.prices.freshOf(orgDb.orgId);
  const same = after.version === book.version;
  await endRun(
    orgDb,
    'reprice',
    runId,
    same ? { status: 'succeeded' } : { status: 'partial', error: PRICES_CHANGED },
  );
  return { done: true };
}
