import { createHash, randomBytes } from 'node:crypto';
import { CancelledFailure, Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { BillingConnector, FetchedPage, ReportChunk } from '../adapters/billing/connector.js';
import type { OrgDb } from '../db/orgDb.js';
import type { BillingConnection } from '../db/queries/billingConnections.js';
import { listSyncPages, recordFetchedPage, type SyncPage } from '../db/queries/fetchedPages.js';
import { findSyncChunk, listSyncChunks, restartSyncChunk, type SyncChunk } from '../db/queries/syncChunks.js';
import { noteSyncWaiting, type SyncRun } from '../db/queries/syncRuns.js';
import { checkCoverage } from '../domain/billing/coverage.js';
import { openCredentials } from '../domain/billing/credentials.js';
import { DomainError, type ErrorCode } from '../domain/errors.js';
import { uuidFromMicros } from '../domain/ids.js';
import { dayOf } from '../domain/period.js';
import type { ActivityDeps } from './deps.js';
import { SYNC_PACE, waitBeforeMs } from './syncPace.js';

/** How often a chunk may begin anew at once; then it waits like for any other failure. */
const RESTARTS_MAX = 3;
/** Pages of one chunk: a provider that never stops paging is not followed for ever. */
const PAGES_MAX = 2_000;
/** Pages that were fetched longer ago are not continued: a provider forgets its page tokens, and tells days anew. */
const CONTINUE_MICROS = 900_000_000n;

/** Failures that pass: the chunk is asked for again later. */
const PASSING: ReadonlySet<ErrorCode> = new Set([
  'provider_unavailable',
  'provider_rate_limited',
  'provider_paging_changed',
]);

export interface ChunkWork {
  deps: ActivityDeps;
  orgDb: OrgDb;
  run: SyncRun;
  connection: BillingConnection;
  connector: BillingConnector;
  chunk: SyncChunk;
}

/**
 * Fetches the pages of one chunk, each stored before the next is asked for, until they tell its window once and whole.
 * What passes is waited for: the run says what for and until when, and the engine repeats the activity at that time. A
 * failure that lasts, or outlasts the run's patience, is thrown for good.
 */
export async function fetchChunk(work: ChunkWork): Promise<void> {
  const { orgDb, run, chunk } = work;
  if (chunk.status === 'done') return;
  await refuseRepeat(work);
  let restarts = chunk.restarts;
  for (;;) {
    try {
      await fetchPages(work);
      return;
    } catch (error) {
      if (Context.current().cancellationSignal.aborted) throw new CancelledFailure('the sync was cancelled');
      if (!(error instanceof DomainError) || !PASSING.has(error.code)) throw error;
      if (error.code === 'provider_paging_changed') {
        const isAtOnce = restarts < RESTARTS_MAX;
        restarts = await restartSyncChunk(orgDb, run.id, chunk.ordinal);
        if (isAtOnce) continue;
      }
      throw await waitLater(work, error);
    }
  }
}

/** A report that the provider has just refused in this run is not asked for again chunk by chunk. */
async function refuseRepeat({ orgDb, run, chunk }: ChunkWork): Promise<void> {
  const chunks = await listSyncChunks(orgDb, run.id);
  const refused = chunks.find(
    (other) =>
      other.ordinal < chunk.ordinal &&
      other.report === chunk.report &&
      other.errorCode === 'credentials_refused',
  );
  if (refused) throw new DomainError('credentials_refused', refused.errorMessage ?? 'refused');
}

async function fetchPages(work: ChunkWork): Promise<void> {
  const { deps, orgDb, run, chunk, connector, connection } = work;
  const access = {
    credentials: openCredentials(deps.secretKeys, orgDb.orgId, connection),
    settings: connection.settings,
    signal: Context.current().cancellationSignal,
  };
  let pages = await continuedPages(work);
  while (pages.length === 0 || pages.at(-1)?.nextCursor !== null) {
    if (pages.length >= PAGES_MAX)
      throw new DomainError('provider_answer_unreadable', `${chunk.report} has more than ${PAGES_MAX} pages`);
    const cursor = pages.at(-1)?.nextCursor ?? null;
    const page = await connector.fetchPage(access, asked(chunk), cursor);
    const stored = storable(work, page, pages.length);
    await recordFetchedPage(orgDb, stored);
    pages = [...pages, { ...stored, pageId: stored.id, buckets: page.buckets }];
    await noteSyncWaiting(orgDb, run.id, null);
  }
  const buckets = pages.flatMap((page) => page.buckets);
  // Days that ended while the pages were fetched need not be whole.
  const coverage = checkCoverage(chunk, buckets, pages[0]?.fetchedAtMicros ?? deps.nowMicros());
  if (coverage.outcome === 'complete') return;
  const [span] = coverage.spans;
  throw new DomainError(
    'provider_paging_changed',
    `the pages of ${chunk.report} do not fit together (${coverage.outcome}: ${span ? dayOf(span.startMicros) : 'a day'}); the chunk is fetched from its beginning`,
  );
}

/** The pages that an earlier attempt has stored, where the fetch can go on behind them. */
async function continuedPages({ deps, orgDb, run, chunk }: ChunkWork): Promise<SyncPage[]> {
  const pages = await listSyncPages(orgDb, run.id, chunk.ordinal);
  const [first] = pages;
  if (!first || deps.nowMicros() - first.fetchedAtMicros <= CONTINUE_MICROS) return pages;
  // Pages stay where they are; those of the new beginning take their places.
  return pages.at(-1)?.nextCursor === null ? pages : [];
}

function asked(chunk: SyncChunk): ReportChunk {
  const { report, feed, bucketWidth, startMicros, endMicros } = chunk;
  return { report, feed, bucketWidth, startMicros, endMicros };
}

function storable(work: ChunkWork, page: FetchedPage, pageNo: number) {
  const { deps, run, chunk, connection } = work;
  return {
    id: uuidFromMicros(deps.nowMicros(), randomBytes(8).readBigUInt64BE()),
    connectionId: connection.id,
    runId: run.id,
    ordinal: chunk.ordinal,
    pageNo,
    report: chunk.report,
    requestKey: `${chunk.report} ${chunk.bucketWidth} ${chunk.startMicros}-${chunk.endMicros} ${connection.scope} page ${pageNo}`,
    requestPath: page.requestPath.slice(0, 8_192),
    sha256: createHash('sha256').update(page.body).digest('hex'),
    body: page.body,
    providerRequestId: page.providerRequestId?.slice(0, 256) ?? null,
    fetchedAtMicros: page.fetchedAtMicros,
    nextCursor: page.nextCursor,
    buckets: page.buckets,
  };
}

/** Tells on the run what it waits for; the failure that makes the engine repeat at that time, or give up. */
async function waitLater({ deps, orgDb, run, chunk }: ChunkWork, error: DomainError): Promise<Error> {
  const pace = deps.syncPace ?? SYNC_PACE;
  const now = deps.nowMicros();
  const waitMs = waitBeforeMs(pace, Context.current().info.attempt, {
    isLimit: error.code === 'provider_rate_limited',
    retryAfterSeconds: error.retryAfterSeconds,
  });
  const untilMicros = now + BigInt(waitMs) * 1_000n;
  const patienceEnds = (run.startedAtMicros ?? run.createdAtMicros) + BigInt(pace.giveUpAfterMs) * 1_000n;
  if (untilMicros > patienceEnds) return ApplicationFailure.nonRetryable(error.message, error.code);
  await noteSyncWaiting(orgDb, run.id, { code: error.code, message: error.message, untilMicros });
  deps.logger.info(
    { runId: run.id, report: chunk.report, code: error.code, waitMs },
    'a sync waits for its provider',
  );
  return ApplicationFailure.create({
    message: error.message,
    type: error.code,
    nextRetryDelay: waitMs,
    cause: error,
  });
}

/** The chunk of a run. Error not_found. */
export async function loadChunk(orgDb: OrgDb, runId: string, ordinal: number): Promise<SyncChunk> {
  const chunk = await findSyncChunk(orgDb, runId, ordinal);
  if (!chunk) throw new DomainError('not_found', `sync ${runId} has no chunk ${ordinal}`);
  return chunk;
}
