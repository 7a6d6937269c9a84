import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { BillingConnector, FetchedPage, ReportChunk } from '../../adapters/billing/connector.js';
import type { BillingConnectors } from '../../adapters/billing/connectors.js';
import type { BillingFileReader } from '../../adapters/billing/file.js';
import type { BillingConnection } from '../../db/billing/billingConnections.js';
import { listSyncPages, recordFetchedPage, type SyncPage } from '../../db/billing/fetchedPages.js';
import {
  findSyncChunk,
  listSyncChunks,
  noteSyncWaiting,
  restartSyncChunk,
  type SyncChunk,
  type SyncRun,
} from '../../db/billing/syncRuns.js';
import type { OrgDb } from '../../db/orgDb.js';
import { openCredentials } from '../../domain/billing/connections.js';
import { checkCoverage, type Span } from '../../domain/billing/coverage.js';
import { DomainError, type ErrorCode } from '../../domain/errors.js';
import { newUuid } from '../../domain/ids.js';
import { dayOf, MICROS_PER_DAY, startOfDay } from '../../domain/period.js';
import type { Sealer } from '../../domain/sealer.js';
import type { UseCaseDeps } from '../useCaseDeps.js';

/** How often a chunk may begin again at once; then it waits like for any other failure. */
const RESTARTS_MAX = 3;
/** Pages of one chunk: a provider that never stops paging is not followed for ever. */
const PAGES_MAX = 2_000;
/** Pages that were fetched longer ago are not continued: a provider forgets its page tokens, and restates days. */
const CONTINUE_MICROS = 900_000_000n;

/** Failures that pass: the chunk is asked for again later. */
const PASSING: ReadonlySet<ErrorCode> = new Set([
  'provider_unavailable',
  'provider_rate_limited',
  'provider_paging_changed',
]);

/** What a sync needs of the process. */
export interface SyncDeps extends UseCaseDeps {
  connectors: BillingConnectors;
  /** Reads bills: adapters/billing/file.ts. */
  readBillingFile: BillingFileReader;
  /** Open stored credentials. */
  secretKeys: Sealer;
  /** How long a sync waits for a provider; the product's own where absent. */
  syncPace?: SyncPace;
  nowMicros(): bigint;
  logger: Logger;
}

export interface ChunkAttempt {
  /** From 1. */
  number: number;
  signal: AbortSignal;
}

/** A failure of a provider that passes: ask again after `waitMs`; null: its run waits no longer. */
export class ProviderWait extends Error {
  readonly code: ErrorCode;
  readonly waitMs: number | null;

  constructor(error: DomainError, waitMs: number | null) {
    super(error.message, { cause: error });
    this.code = error.code;
    this.waitMs = waitMs;
  }
}

export interface ChunkWork {
  deps: SyncDeps;
  attempt: ChunkAttempt;
  orgDb: OrgDb;
  run: SyncRun;
  connection: BillingConnection;
  connector: BillingConnector;
  chunk: SyncChunk;
}

/** What a chunk's pages say, as it was checked: these pages are read and no others. */
export interface FetchedChunk {
  pages: readonly SyncPage[];
  /** Days that the provider left out, in whole or in part: nothing is said of them. */
  leftOut: ReadonlySet<string>;
}

/**
 * Fetches the pages of one chunk, each stored before the next is asked for, until they cover its window once and
 * completely. A failure that passes is a ProviderWait, and the run shows what it waits for and until when. A failure
 * that lasts, or that outlasts the run's patience, is thrown for good. Null when the run ended meanwhile: then nobody
 * is asked any more.
 */
export async function fetchChunk(work: ChunkWork): Promise<FetchedChunk | null> {
  const { orgDb, run, chunk } = work;
  await refuseRepeat(work);
  let restarts = chunk.restarts;
  for (;;) {
    try {
      return await fetchPages(work, restarts);
    } catch (error) {
      work.attempt.signal.throwIfAborted();
      if (!(error instanceof DomainError) || !PASSING.has(error.code)) throw error;
      if (error.code === 'provider_paging_changed') {
        const isAtOnce = restarts < RESTARTS_MAX;
        restarts = await orgDb.transaction((inside) => restartSyncChunk(inside, run.id, chunk.ordinal));
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

async function fetchPages(work: ChunkWork, restarts: number): Promise<FetchedChunk | null> {
  const { deps, attempt, orgDb, run, chunk, connector, connection } = work;
  const access = {
    credentials: openCredentials(deps.secretKeys, orgDb.orgId, connection),
    settings: connection.settings,
    signal: attempt.signal,
  };
  let pages = await continuedPages(work);
  while (pages.length === 0 || pages.at(-1)?.nextCursor !== null) {
    if (pages.length >= PAGES_MAX)
      throw new DomainError('provider_answer_unreadable', `${chunk.report} has more than ${PAGES_MAX} pages`);
    const cursor = pages.at(-1)?.nextCursor ?? null;
    const page = await connector.fetchPage(access, asked(chunk), cursor);
    const stored = storable(work, page, pages.length);
    pages = [
      ...pages,
      { ...stored, pageId: await orgDb.transaction((inside) => recordFetchedPage(inside, stored)) },
    ];
    if (!(await noteSyncWaiting(orgDb, run.id, null))) return null;
  }
  const buckets = pages.flatMap((page) => page.buckets);
  // Days that ended while the pages were fetched need not be whole.
  const coverage = checkCoverage(chunk, buckets, pages[0]?.fetchedAtMicros ?? deps.nowMicros());
  if (coverage.outcome === 'complete') return { pages, leftOut: new Set() };
  const [span] = coverage.spans;
  // A provider that leaves out a day however often it is asked reports the others all the same: those count.
  if (coverage.outcome === 'missing' && restarts >= RESTARTS_MAX)
    return { pages, leftOut: new Set(coverage.spans.flatMap(daysOf)) };
  throw new DomainError(
    'provider_paging_changed',
    `the pages of ${chunk.report} do not fit together (${coverage.outcome}: ${span ? dayOf(span.startMicros) : 'a day'}); the chunk is fetched from its beginning`,
  );
}

/** The pages that an earlier attempt has stored, where the fetch can go on behind them. */
async function continuedPages(work: ChunkWork): Promise<SyncPage[]> {
  const { deps, orgDb, run, chunk } = work;
  const pages = await listSyncPages(orgDb, run.id, chunk.ordinal);
  const [first] = pages;
  // Another part of the account was asked for before the connection's scope changed.
  if (pages.some(({ requestKey, pageNo }) => requestKey !== requestKeyOf(work, pageNo))) return [];
  if (!first || deps.nowMicros() - first.fetchedAtMicros <= CONTINUE_MICROS) return pages;
  // Pages stay where they are; those of the new beginning take their places.
  return pages.at(-1)?.nextCursor === null ? pages : [];
}

function daysOf({ startMicros, endMicros }: Span): string[] {
  const days: string[] = [];
  for (let at = startOfDay(startMicros); at < endMicros; at += MICROS_PER_DAY) days.push(dayOf(at));
  return days;
}

function asked(chunk: SyncChunk): ReportChunk {
  const { report, feed, bucketWidth, startMicros, endMicros } = chunk;
  return { report, feed, bucketWidth, startMicros, endMicros };
}

/** Names what was asked, without the page tokens, which differ from one time to the next. */
function requestKeyOf({ chunk, connection }: ChunkWork, pageNo: number): string {
  return `${chunk.report} ${chunk.bucketWidth} ${chunk.startMicros}-${chunk.endMicros} ${connection.scope} page ${pageNo}`;
}

function storable(work: ChunkWork, page: FetchedPage, pageNo: number) {
  const { deps, run, chunk, connection } = work;
  return {
    id: newUuid(deps.nowMicros()),
    connectionId: connection.id,
    runId: run.id,
    ordinal: chunk.ordinal,
    pageNo,
    report: chunk.report,
    requestKey: requestKeyOf(work, pageNo),
    requestPath: page.requestPath.slice(0, 8_192),
    sha256: createHash('sha256').update(page.body).digest('hex'),
    body: page.body,
    providerRequestId: page.providerRequestId?.slice(0, 256) ?? null,
    fetchedAtMicros: page.fetchedAtMicros,
    nextCursor: page.nextCursor,
    buckets: page.buckets,
  };
}

/** Shows on the run what it waits for, and until when. */
async function waitLater(
  { deps, attempt, orgDb, run, chunk }: ChunkWork,
  error: DomainError,
): Promise<ProviderWait> {
  const pace = deps.syncPace ?? SYNC_PACE;
  const now = deps.nowMicros();
  const waitMs = waitBeforeMs(pace, attempt.number, {
    isLimit: error.code === 'provider_rate_limited',
    retryAfterSeconds: error.retryAfterSeconds,
  });
  const untilMicros = now + BigInt(waitMs) * 1_000n;
  const patienceEnds = (run.startedAtMicros ?? run.createdAtMicros) + BigInt(pace.giveUpAfterMs) * 1_000n;
  if (untilMicros > patienceEnds) return new ProviderWait(error, null);
  const { code, message } = error;
  await noteSyncWaiting(orgDb, run.id, { code, message, untilMicros });
  deps.logger.info({ runId: run.id, report: chunk.report, code, waitMs }, 'a sync waits for its provider');
  return new ProviderWait(error, waitMs);
}

/** The chunk of a run. Error not_found. */
export async function loadChunk(orgDb: OrgDb, runId: string, ordinal: number): Promise<SyncChunk> {
  const chunk = await findSyncChunk(orgDb, runId, ordinal);
  if (!chunk) throw new DomainError('not_found', `sync ${runId} has no chunk ${ordinal}`);
  return chunk;
}

/** How long a sync waits for its provider, milliseconds. Shorter in tests. */
export interface SyncPace {
  /** Before the first repeat; doubled for each that follows. */
  firstWaitMs: number;
  /** Between two looks whether an outage is over. */
  longestWaitMs: number;
  /** A provider that fails for longer is left to the next sync. */
  giveUpAfterMs: number;
}

/** A provider that fails for an hour is outlasted three times over. */
export const SYNC_PACE: SyncPace = {
  firstWaitMs: 2_000,
  longestWaitMs: 600_000,
  giveUpAfterMs: 3 * 3_600_000,
};

/**
 * The wait before the next attempt. A limit of requests is waited for as long as the provider says. An outage is asked
 * after again sooner or later: twice as long as the last time, at least what the provider named, at most the longest.
 */
export function waitBeforeMs(
  pace: SyncPace,
  attempt: number,
  failure: { isLimit: boolean; retryAfterSeconds: number | undefined },
): number {
  const stated = (failure.retryAfterSeconds ?? 0) * 1_000;
  if (failure.isLimit && stated > 0) return Math.max(stated, pace.firstWaitMs);
  const doubled = pace.firstWaitMs * 2 ** Math.min(attempt - 1, 20);
  return Math.min(pace.longestWaitMs, Math.max(stated, doubled));
}
