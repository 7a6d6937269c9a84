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

/** The effects of a sync. Each may be repeated: see the first comment of each. */
export function createBillingSyncActivities(deps: ActivityDeps) {
  return {
    /** Begins a sync of a connection whose time has come, unless one is open. */
    requestScheduledSync: ({ orgId, connectionId }: { orgId: string; connectionId: string }): Promise<void> =>
      // While the run that it made is open a repeat finds that one.
      withFailures(() => requestScheduledSync(deps, orgDbOf(deps, orgId), connectionId)),

    /** Numbers what the sync asks for; null when it is over. */
    planBillingSync: ({ orgId, runId }: RunRef): Promise<{ chunks: number } | null> =>
      // The chunks are stored once: a repeat finds them and counts them.
      withFailures(() => withHeartbeat(() => planSyncRun(deps, orgDbOf(deps, orgId), runId))),

    /** Fetches one chunk, page by page, reads it and makes it count; false when the sync is over. */
    takeSyncChunk: ({ orgId, ...ref }: RunRef & { ordinal: number }): Promise<boolean> =>
      // Pages are stored as they come: a repeat continues behind the last one, or finds all of them. Rows belong to the
      // attempt that stored them, and count with the chunk's end, once.
      withFailures(() =>
        withProviderWaits(() => takeSyncChunk(deps, orgDbOf(deps, orgId), ref, thisAttempt()), ref),
      ),

    failSyncChunk: ({
      orgId,
      code,
      message,
      ...ref
    }: RunRef & { ordinal: number; code: string; message: string }) =>
      // A repeat writes the same failure again; a chunk that is done stays done.
      withFailures(() => leaveSyncChunk(orgDbOf(deps, orgId), ref, { code, message })),

    /** Ends the sync with what it found and the gap run that follows; whether what counts has changed. */
    finishBillingSync: ({ orgId, runId }: RunRef): Promise<{ changed: boolean }> =>
      // It ends once; a repeat returns what the chunks say.
      withFailures(async () => {
        await analyzeAfterBulk(deps);
        return finishSync(deps, orgDbOf(deps, orgId), runId);
      }),

    /**
     * Starts the gap run over what has changed, if anything has; `wait` while an older one is at work that may have missed
     * it.
     */
    startGapRunOfSync: ({ orgId, runId }: RunRef): Promise<'started' | 'wait'> =>
      // The run is noted on the sync in the transaction that stores it: a repeat finds it.
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

/** Has the engine repeat the activity when its provider is to be asked again, or give it up. */
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
