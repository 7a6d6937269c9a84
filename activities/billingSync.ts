import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { ProviderWait } from '../usecases/billing/fetchChunk.js';
import {
  failSync,
  finishSync,
  leaveSyncChunk,
  planSyncRun,
  requestScheduledSync,
  startGapRunOfSync,
  takeSyncChunk,
} from '../usecases/billing/sync.js';
import { analyzeAfterBulk } from '../usecases/installation/maintenance.js';
import { orgDbOf } from '../usecases/useCaseDeps.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';

interface RunRef {
  orgId: string;
  runId: string;
}

/** The activities of a sync. Each may be repeated; its first comment says why. */
export function createBillingSyncActivities(deps: ActivityDeps) {
  return {
    /** Starts the scheduled sync of a connection, unless one is open. */
    requestScheduledSync: ({ orgId, connectionId }: { orgId: string; connectionId: string }): Promise<void> =>
      // A repeat finds the open run that the first attempt created.
      withFailures(() => requestScheduledSync(deps, orgDbOf(deps, orgId), connectionId)),

    /** Plans the sync's chunks; null: the sync is over. */
    planBillingSync: ({ orgId, runId }: RunRef): Promise<{ chunks: number } | null> =>
      // The chunks are stored once: a repeat finds and counts them.
      withFailures(() => withHeartbeat(() => planSyncRun(deps, orgDbOf(deps, orgId), runId))),

    /** Fetches one chunk page by page, reads it and makes it count; false: the sync is over. */
    takeSyncChunk: ({ orgId, ...ref }: RunRef & { ordinal: number }): Promise<boolean> =>
      // Pages are stored as they arrive: a repeat continues after the last one, or finds all of them. Rows belong to
      // the attempt that stored them, and count once, with the chunk's end.
      withFailures(() =>
        withProviderWaits(() => takeSyncChunk(deps, orgDbOf(deps, orgId), ref, thisAttempt()), ref),
      ),

    failSyncChunk: ({
      orgId,
      code,
      message,
      ...ref
    }: RunRef & { ordinal: number; code: string; message: string }) =>
      // A repeat stores the same failure again; a finished chunk stays finished.
      withFailures(() => leaveSyncChunk(orgDbOf(deps, orgId), ref, { code, message })),

    /** Ends the sync with its result and the following gap run; returns whether counted copies have changed. */
    finishBillingSync: ({ orgId, runId }: RunRef): Promise<{ changed: boolean }> =>
      // It ends once; a repeat returns the result from the chunks.
      withFailures(async () => {
        await analyzeAfterBulk(deps);
        return finishSync(deps, orgDbOf(deps, orgId), runId);
      }),

    /**
     * Starts the gap run over the changed days, if any; `wait` while an older run works that may have missed the
     * changes.
     */
    startGapRunOfSync: ({ orgId, runId }: RunRef): Promise<'started' | 'wait'> =>
      // The sync stores the run's id in the transaction that stores the run: a repeat finds it.
      withFailures(() => startGapRunOfSync(deps, orgDbOf(deps, orgId), runId)),

    endBillingSyncFailed: ({
      orgId,
      runId,
      code = 'internal_error',
      message,
    }: RunRef & { code?: string; message: string }): Promise<void> =>
      // Only an open sync is ended.
      withFailures(() => failSync(deps, orgDbOf(deps, orgId), runId, { code, message })),
  };
}

function thisAttempt() {
  const { info, cancellationSignal } = Context.current();
  return { number: info.attempt, signal: cancellationSignal };
}

/** Makes Temporal retry the activity when its provider should be asked again, or give it up. */
async function withProviderWaits<T>(work: () => Promise<T>, { ordinal }: { ordinal: number }): Promise<T> {
  try {
    return await withHeartbeat(work, () => ({ ordinal }));
  } catch (error) {
    if (!(error instanceof ProviderWait)) throw error;
    const { message, code, waitMs, cause } = error;
    if (waitMs === null) throw ApplicationFailure.nonRetryable(message, code);
    throw ApplicationFailure.create({
      message,
      type: code,
      nextRetryDelay: waitMs,
      ...(cause instanceof Error ? { cause } : {}),
    });
  }
}
