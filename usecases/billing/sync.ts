import type { BillingConnector } from '../../adapters/billing/connector.js';
import { pruneSupersededCopies } from '../../db/billing/apiCopies.js';
import {
  type BillingConnection,
  findBillingConnection,
  giveToFirstConnection,
  recordNextSync,
} from '../../db/billing/billingConnections.js';
import { pruneFetchedPages } from '../../db/billing/fetchedPages.js';
import {
  failSyncChunk,
  insertSyncChunks,
  listSyncChunks,
  type NewSyncRun,
  noteSyncWaitsForGapRun,
  recordGapRunOfSync,
  SYNC_RUNS,
  type SyncRun,
} from '../../db/billing/syncRuns.js';
import type { OrgDb } from '../../db/orgDb.js';
import { GAP_RUNS } from '../../db/reconciliation/gapRuns.js';
import { findOpenRun, findRun, markRunStarted } from '../../db/runs/runTable.js';
import { openCredentials, type SyncTrigger } from '../../domain/billing/connections.js';
import { restatableOf } from '../../domain/billing/sources.js';
import { DomainError } from '../../domain/errors.js';
import { newUuid } from '../../domain/ids.js';
import { GAP_PERIODS, gapWindow, isoFromMicros, microsOfDay } from '../../domain/period.js';
import { RUN_TERMINAL_STATUSES } from '../../domain/runs/runKinds.js';
import { rematchInvoicesOf } from '../invoices/rematchInvoices.js';
import { endRun } from '../runs/endRun.js';
import { openRun, queueRun, type RunOpening } from '../runs/openRun.js';
import { recordSyncOutcome } from './connectionTurns.js';
import { type ChunkAttempt, type ChunkWork, fetchChunk, loadChunk, type SyncDeps } from './fetchChunk.js';
import { changedDays, outcomeOf, planSync } from './planSync.js';
import { readChunk } from './readChunk.js';

/** Days for which replaced copies of open days are kept, for investigations. */
const REPLACED_DAYS = 7;
/** Days for which unreferenced pages are kept. */
const PAGES_DAYS = 30;

function connectorOf(deps: SyncDeps, connection: BillingConnection): BillingConnector {
  const byName: Readonly<Record<string, BillingConnector | undefined>> = deps.connectors;
  const connector = byName[connection.provider];
  if (!connector)
    throw new DomainError('not_found', `no connector fetches the bills of ${connection.provider}`);
  return connector;
}

/** Starts the scheduled sync of a connection, unless one is open. */
export async function requestScheduledSync(
  deps: SyncDeps,
  orgDb: OrgDb,
  connectionId: string,
): Promise<void> {
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
  // A connection that ended while this sync was being inserted cancelled its other syncs and could not see this one.
  const error = { code: 'connection_ended', message: 'the connection was ended' };
  await endRun(orgDb, 'billing_sync', runId, { status: 'cancelled', error });
  return undefined;
}

/** Stores what the sync fetches; null: the sync is over. */
export async function planSyncRun(
  deps: SyncDeps,
  orgDb: OrgDb,
  runId: string,
): Promise<{ chunks: number } | null> {
  await markRunStarted(orgDb, 'billing_sync', runId, 'planning');
  const work = await openWork(orgDb, runId);
  if (!work) return null;
  const { run, connection } = work;
  // Credentials that cannot be decrypted fail the sync once here, instead of each part.
  openCredentials(deps.secretKeys, orgDb.orgId, connection);
  // Rows without an account move to the first connection before the provider reports the same days.
  await giveToFirstConnection(deps.database, orgDb.orgId, connection.provider);
  const { chunks, revisesOn } = await planSync(
    orgDb,
    connectorOf(deps, connection),
    connection,
    run,
    deps.nowMicros(),
  );
  return {
    chunks: await orgDb.transaction((inside) => insertSyncChunks(inside, runId, chunks, revisesOn)),
  };
}

/** Fetches and reads one chunk and makes it count; false: the sync is over. Error: ProviderWait. */
export async function takeSyncChunk(
  deps: SyncDeps,
  orgDb: OrgDb,
  { runId, ordinal }: { runId: string; ordinal: number },
  attempt: ChunkAttempt,
): Promise<boolean> {
  const open = await openWork(orgDb, runId);
  if (!open) return false;
  const connector = connectorOf(deps, open.connection);
  const chunk = await loadChunk(orgDb, runId, ordinal);
  const work: ChunkWork = { deps, attempt, orgDb, ...open, connector, chunk };
  if (chunk.status === 'done') return true;
  const fetched = await fetchChunk(work);
  if (fetched) await readChunk(work, fetched);
  return fetched !== null;
}

/** Leaves a chunk to the next sync. */
export async function leaveSyncChunk(
  orgDb: OrgDb,
  { runId, ordinal }: { runId: string; ordinal: number },
  error: { code: string; message: string },
): Promise<void> {
  await orgDb.transaction((inside) => failSyncChunk(inside, runId, ordinal, error));
}

/** Ends the sync with its result; returns whether counted copies have changed. */
export async function finishSync(deps: SyncDeps, orgDb: OrgDb, runId: string): Promise<{ changed: boolean }> {
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
    const { period_start: fromDay, period_end: toDay } = found;
    if (connection && fromDay !== null && toDay !== null)
      await rematchInvoicesOf(inside, { provider: connection.provider, fromDay, toDay });
    await recordSyncOutcome(inside, run.connectionId, {
      error: error ?? null,
      revisedOn: error ? null : run.revisesOn,
    });
    // A change of the connection during the sync returned this run, which used the former settings.
    if (connection && connection.updatedAtMicros > (run.startedAtMicros ?? run.createdAtMicros)) {
      const id = newUuid(deps.nowMicros());
      await queueRun(inside, SYNC_RUNS, { id, connectionId: connection.id, trigger: 'settings' });
    }
  });
  if (error) deps.logger.warn({ runId, code: error.code }, 'a sync ended without all of its days');
  if (connection) {
    const kept = { restatable: restatableOf(connection.provider), keptDays: REPLACED_DAYS };
    await orgDb.transaction((inside) => pruneSupersededCopies(inside, connection.id, kept));
    // All restatable days are fetched once a day only.
    if (run.revisesOn !== null) {
      const { orgId } = orgDb;
      await pruneFetchedPages(deps.database, { orgId, id: connection.id }, PAGES_DAYS);
    }
  }
  return { changed };
}

/** Starts the gap run over the changed days; `wait` while an older run works that may have missed the changes. */
export async function startGapRunOfSync(
  deps: SyncDeps,
  orgDb: OrgDb,
  runId: string,
): Promise<'started' | 'wait'> {
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
    // A queued gap run reads the stored days; a running one may have read the days before.
    const gapRun = made ?? (await findOpenRun(inside, GAP_RUNS, { period, provider: connection.provider }));
    if (!gapRun || (!made && gapRun.status !== 'queued')) {
      await noteSyncWaitsForGapRun(inside, runId);
      return 'wait';
    }
    await recordGapRunOfSync(inside, runId, gapRun.id);
    return 'started';
  });
}

/** Ends an open sync as failed. */
export async function failSync(
  deps: SyncDeps,
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

/** A new sync of a connection. Error: not_found when the connection has ended. */
export function syncOpening(connectionId: string, trigger: SyncTrigger): RunOpening<NewSyncRun> {
  return {
    wanted: { connectionId, trigger },
    open: { connectionId },
    async assertOpenable(orgDb) {
      if (!(await findBillingConnection(orgDb, connectionId)))
        throw new DomainError('not_found', 'there is no billing connection with this id');
    },
  };
}

/** The sync that follows changed settings, or the open one. Errors: not_found, service_unavailable. */
export async function openSettingsSync(
  orgDb: OrgDb,
  connectionId: string,
  nowMicros: bigint,
): Promise<SyncRun> {
  return (await openRun(orgDb, SYNC_RUNS, syncOpening(connectionId, 'settings'), { nowMicros })).run;
}
