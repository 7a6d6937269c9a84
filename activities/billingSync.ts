import type { BillingConnector } from '../adapters/billing/connector.js';
import { giveToFirstConnection } from '../db/billing/adoptAccount.js';
import { pruneSupersededCopies } from '../db/billing/apiCopies.js';
import {
  type BillingConnection,
  findBillingConnection,
  recordNextSync,
} from '../db/billing/billingConnections.js';
import { pruneFetchedPages } from '../db/billing/prunePages.js';
import { failSyncChunk, insertSyncChunks, listSyncChunks } from '../db/billing/syncChunks.js';
import {
  noteSyncWaitsForGapRun,
  recordGapRunOfSync,
  SYNC_RUNS,
  type SyncRun,
} from '../db/billing/syncRuns.js';
import { OrgDb } from '../db/orgDb.js';
import { GAP_RUNS } from '../db/reconciliation/gapRuns.js';
import { markRunStarted } from '../db/runs/runStates.js';
import { findOpenRun, findRun } from '../db/runs/runTable.js';
import { openCredentials } from '../domain/billing/credentials.js';
import { DomainError } from '../domain/errors.js';
import { newUuid } from '../domain/ids.js';
import { GAP_PERIODS, gapWindow, isoFromMicros, microsOfDay } from '../domain/period.js';
import { RUN_TERMINAL_STATUSES } from '../domain/runs/runs.js';
import { recordSyncOutcome } from '../usecases/billing/connectionTurns.js';
import { analyzeAfterBulk } from '../usecases/installation/maintenance.js';
import { endRun } from '../usecases/runs/endRun.js';
import { queueRun } from '../usecases/runs/openRun.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';
import { type ChunkWork, fetchChunk, loadChunk } from './syncFetch.js';
import { changedDays, outcomeOf } from './syncOutcome.js';
import { planSync } from './syncPlan.js';
import { readChunk } from './syncRead.js';

interface RunRef {
  orgId: string;
  runId: string;
}

/** Copies of open days that were replaced are kept this long for whoever looks into them. */
const REPLACED_DAYS = 7;
/** Pages that nothing rests on are kept this long. */
const PAGES_DAYS = 30;

/** The effects of a sync. Each may be repeated: see the first comment of each. */
export function createBillingSyncActivities(deps: ActivityDeps) {
  const orgDbOf = (orgId: string) => new OrgDb(deps.database, orgId);
  return {
    /** Begins a sync of a connection whose time has come, unless one is open. */
    requestScheduledSync: ({ orgId, connectionId }: { orgId: string; connectionId: string }): Promise<void> =>
      // While the run that it made is open a repeat finds that one.
      withFailures(() => requestSync(deps, orgDbOf(orgId), connectionId)),

    /** Numbers what the sync asks for; null when it is over. */
    planBillingSync: ({ orgId, runId }: RunRef): Promise<{ chunks: number } | null> =>
      // The chunks are stored once: a repeat finds them and counts them.
      withFailures(() => withHeartbeat(() => plan(deps, orgDbOf(orgId), runId))),

    /** Fetches one chunk, page by page, reads it and makes it count; false when the sync is over. */
    takeSyncChunk: ({ orgId, runId, ordinal }: RunRef & { ordinal: number }): Promise<boolean> =>
      // Pages are stored as they come: a repeat goes on behind the last one, or finds all of them. Rows belong to the
      // attempt that stored them, and count with the chunk's end, once.
      withFailures(() => takeChunk(deps, orgDbOf(orgId), runId, ordinal)),

    failSyncChunk: ({
      orgId,
      runId,
      ordinal,
      code,
      message,
    }: RunRef & { ordinal: number; code: string; message: string }): Promise<void> =>
      // A repeat writes the same failure again; a chunk that is done stays done.
      withFailures(() => failSyncChunk(orgDbOf(orgId), runId, ordinal, { code, message })),

    /** Ends the sync with what it found and the gap run that follows; whether what counts has changed. */
    finishBillingSync: ({ orgId, runId }: RunRef): Promise<{ changed: boolean }> =>
      // It ends once; a repeat tells what the chunks say.
      withFailures(async () => {
        await analyzeAfterBulk(deps);
        return finish(deps, orgDbOf(orgId), runId);
      }),

    /**
     * Starts the gap run over what has changed, if anything has; `wait` while an older one is at work that may have missed
     * it.
     */
    startGapRunOfSync: ({ orgId, runId }: RunRef): Promise<'started' | 'wait'> =>
      // The run is noted on the sync in the transaction that stores it: a repeat finds it.
      withFailures(() => startGapRun(deps, orgDbOf(orgId), runId)),

    endBillingSyncFailed: ({
      orgId,
      runId,
      code = 'internal_error',
      message,
    }: RunRef & { code?: string; message: string }): Promise<void> =>
      // Only an open sync is ended.
      withFailures(() => fail(deps, orgDbOf(orgId), runId, { code, message })),
  };
}

function connectorOf(deps: ActivityDeps, connection: BillingConnection): BillingConnector {
  const byName: Readonly<Record<string, BillingConnector | undefined>> = deps.connectors;
  const connector = byName[connection.provider];
  if (!connector)
    throw new DomainError('not_found', `no connector fetches the bills of ${connection.provider}`);
  return connector;
}

async function requestSync(deps: ActivityDeps, orgDb: OrgDb, connectionId: string): Promise<void> {
  const connection = await findBillingConnection(orgDb, connectionId);
  if (!connection || connection.status === 'paused') return;
  const everySeconds = connectorOf(deps, connection).facts.pollIntervalSeconds;
  await orgDb.transaction(async (inside) => {
    const id = newUuid(deps.nowMicros());
    await queueRun(inside, SYNC_RUNS, { id, connectionId, trigger: 'schedule' });
    await recordNextSync(inside, connectionId, deps.nowMicros() + BigInt(everySeconds) * 1_000_000n);
  });
}

/** The run and its connection, while both are open. */
async function openWork(
  orgDb: OrgDb,
  runId: string,
): Promise<{ run: SyncRun; connection: BillingConnection } | undefined> {
  const run = await findRun(orgDb, SYNC_RUNS, runId);
  if (!run) throw new DomainError('not_found', `there is no sync ${runId}`);
  if (RUN_TERMINAL_STATUSES.has(run.status)) return undefined;
  const connection = await findBillingConnection(orgDb, run.connectionId);
  if (connection) return { run, connection };
  // A connection that ended while the sync was being inserted has cancelled the others, and could not see this one.
  const error = { code: 'connection_ended', message: 'the connection was ended' };
  await endRun(orgDb, 'billing_sync', runId, { status: 'cancelled', error });
  return undefined;
}

async function plan(deps: ActivityDeps, orgDb: OrgDb, runId: string): Promise<{ chunks: number } | null> {
  await markRunStarted(orgDb, 'billing_sync', runId, 'planning');
  const work = await openWork(orgDb, runId);
  if (!work) return null;
  const { run, connection } = work;
  // Credentials that do not open fail the sync once, here, and not part by part.
  openCredentials(deps.secretKeys, orgDb.orgId, connection);
  // Bills of nobody in particular become those of the first connection before the same days come from the provider.
  await giveToFirstConnection(deps.database, orgDb.orgId, connection.provider);
  const { chunks, revisesOn } = await planSync(
    orgDb,
    connectorOf(deps, connection),
    connection,
    run,
    deps.nowMicros(),
  );
  return { chunks: await insertSyncChunks(orgDb, runId, chunks, revisesOn) };
}

async function takeChunk(deps: ActivityDeps, orgDb: OrgDb, runId: string, ordinal: number): Promise<boolean> {
  return withHeartbeat(
    async () => {
      const open = await openWork(orgDb, runId);
      if (!open) return false;
      const connector = connectorOf(deps, open.connection);
      const chunk = await loadChunk(orgDb, runId, ordinal);
      const work: ChunkWork = { deps, orgDb, ...open, connector, chunk };
      if (chunk.status === 'done') return true;
      const fetched = await fetchChunk(work);
      if (fetched) await readChunk(work, fetched);
      return fetched !== null;
    },
    () => ({ ordinal }),
  );
}

async function finish(deps: ActivityDeps, orgDb: OrgDb, runId: string): Promise<{ changed: boolean }> {
  const run = await findRun(orgDb, SYNC_RUNS, runId);
  if (!run) throw new DomainError('not_found', `there is no sync ${runId}`);
  const chunks = await listSyncChunks(orgDb, runId);
  const changed = changedDays(chunks).length > 0;
  const { status, error, result: found } = outcomeOf(chunks);
  const result = { ...found, gap_run_id: run.gapRunId };
  const connection = await findBillingConnection(orgDb, run.connectionId);
  await orgDb.transaction(async (inside) => {
    if (!(await endRun(inside, 'billing_sync', runId, { status, result, ...(error ? { error } : {}) })))
      return;
    await recordSyncOutcome(inside, run.connectionId, {
      error: error ?? null,
      revisedOn: error ? null : run.revisesOn,
    });
    // Whoever changed the connection under way was given this run, which had asked by the former settings.
    if (connection && connection.updatedAtMicros > (run.startedAtMicros ?? run.createdAtMicros)) {
      const id = newUuid(deps.nowMicros());
      await queueRun(inside, SYNC_RUNS, { id, connectionId: connection.id, trigger: 'settings' });
    }
  });
  if (error) deps.logger.warn({ runId, code: error.code }, 'a sync ended without all of its days');
  if (connection) {
    const { provisionalDays } = connectorOf(deps, connection).facts;
    await pruneSupersededCopies(orgDb, connection.id, { provisionalDays, keptDays: REPLACED_DAYS });
    // Once a day is enough.
    if (run.revisesOn !== null) {
      const { orgId } = orgDb;
      await pruneFetchedPages(deps.database, { orgId, id: connection.id }, PAGES_DAYS);
    }
  }
  return { changed };
}

async function startGapRun(deps: ActivityDeps, orgDb: OrgDb, runId: string): Promise<'started' | 'wait'> {
  const run = await findRun(orgDb, SYNC_RUNS, runId);
  const connection = run && (await findBillingConnection(orgDb, run.connectionId));
  const [first] = changedDays(await listSyncChunks(orgDb, runId));
  if (!run || run.gapRunId !== null || !connection || first === undefined) return 'started';
  const now = deps.nowMicros();
  const period =
    GAP_PERIODS.find((one) => gapWindow(one, now).start <= microsOfDay(first)) ?? GAP_PERIODS.at(-1);
  if (period === undefined) return 'started';
  const window = gapWindow(period, now);
  return orgDb.transaction(async (inside) => {
    const made = await queueRun(inside, GAP_RUNS, {
      id: newUuid(deps.nowMicros()),
      period,
      provider: connection.provider,
      windowStartMicros: window.start,
      windowEndMicros: window.end,
    });
    // One that has not begun reads what has just been stored; one at work may have read the days before.
    const gapRun = made ?? (await findOpenRun(inside, GAP_RUNS, { period, provider: connection.provider }));
    if (!gapRun || (!made && gapRun.status !== 'queued')) {
      await noteSyncWaitsForGapRun(inside, runId);
      return 'wait';
    }
    await recordGapRunOfSync(inside, runId, gapRun.id);
    return 'started';
  });
}

async function fail(
  deps: ActivityDeps,
  orgDb: OrgDb,
  runId: string,
  error: { code: string; message: string },
): Promise<void> {
  const run = await findRun(orgDb, SYNC_RUNS, runId);
  const hasEnded = await orgDb.transaction(async (inside) => {
    if (!(await endRun(inside, 'billing_sync', runId, { status: 'failed', error })) || !run) return false;
    await recordSyncOutcome(inside, run.connectionId, { error, revisedOn: null });
    return true;
  });
  if (hasEnded) deps.logger.error({ runId, ...error, at: isoFromMicros(deps.nowMicros()) }, 'a sync failed');
}
