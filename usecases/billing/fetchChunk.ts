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

/** Immediate restarts of a chunk; after that it waits as after any other failure. */
const RESTARTS_MAX = 3;
/** Most pages of one chunk: stops at a provider that never ends its paging. */
const PAGES_MAX = 2_000;
/**
 * Fetched pages older than this are not continued, microseconds: a provider drops its page tokens, and restates days.
 */
const CONTINUE_MICROS = 900_000_000n;

/** Temporary failures: the chunk is requested again later. */
const PASSING: ReadonlySet<ErrorCode> = new Set([
  'provider_unavailable',
  'provider_rate_limited',
  'provider_paging_changed',
]);

/** Dependencies of a sync. */
export interface SyncDeps extends UseCaseDeps {
  connectors: BillingConnectors;
  /** Reads bills: adapters/billing/file.ts. */
  readBillingFile: BillingFileReader;
  /** Decrypts stored credentials. */
  secretKeys: Sealer;
  /** Waits of a sync for a provider; absent: the product's default. */
  syncPace?: SyncPace;
  nowMicros(): bigint;
  logger: Logger;
}

export interface ChunkAttempt {
  /** From 1. */
  number: number;
  signal: AbortSignal;
}

/** A temporary failure of a provider: retry after `waitMs`; null: the run is over and does not wait. */
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

/** The checked pages of a chunk; no other pages are read. */
export interface FetchedChunk {
  pages: readonly SyncPage[];
  /** Days that the provider left out, wholly or partly: the sync changes nothing about them. */
  leftOut: ReadonlySet<string>;
}

/**
 * Fetches the pages of one chunk until they cover its window completely and without overlap; each page is stored before
 * the next is requested. A temporary failure throws ProviderWait, and the run shows the reason and the end of the wait.
 * A lasting failure, or one that exceeds the run's patience, is thrown as final. null: the run ended meanwhile, and the
 * provider is not asked again.
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

/** Throws for a report that the provider has refused in this run, instead of requesting it again for each chunk. */
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
  // Days that ended while the pages were fetched may be incomplete.
  const coverage = checkCoverage(chunk, buckets, pages[0]?.fetchedAtMicros ?? deps.nowMicros());
  if (coverage.outcome === 'complete') return { pages, leftOut: new Set() };
  const [span] = coverage.spans;
  // When a provider leaves out a day in every attempt, the other days of its report still count.
  if (coverage.outcome === 'missing' && restarts >= RESTARTS_MAX)
    return { pages, leftOut: new Set(coverage.spans.flatMap(daysOf)) };
  throw new DomainError(
    'provider_paging_changed',
    `the pages of ${chunk.report} do not fit together (${coverage.outcome}: ${span ? dayOf(span.startMicros) : 'a day'}); the chunk is fetched from its beginning`,
  );
}

/** The pages of an earlier attempt, where the fetch can continue after them. */
async function continuedPages(work: ChunkWork): Promise<SyncPage[]> {
  const { deps, orgDb, run, chunk } = work;
  const pages = await listSyncPages(orgDb, run.id, chunk.ordinal);
  const [first] = pages;
  // The connection's scope has changed since, so the stored pages are of another part of the account.
  if (pages.some(({ requestKey, pageNo }) => requestKey !== requestKeyOf(work, pageNo))) return [];
  if (!first || deps.nowMicros() - first.fetchedAtMicros <= CONTINUE_MICROS) return pages;
  // Old pages are not deleted; the pages of the restart overwrite them.
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

/** Identifies a request without its page tokens, which differ each time. */
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

/** Records on the run what it waits for, and until when. */
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

/** The time that a sync waits for its provider, milliseconds. Shorter in tests. */
export interface SyncPace {
  /** Wait before the first retry; doubled for each further one. */
  firstWaitMs: number;
  /** Longest wait between two checks whether an outage is over. */
  longestWaitMs: number;
  /** After failing for this long the provider is left to the next sync. */
  giveUpAfterMs: number;
}

/** The patience is three times an outage of one hour. */
export const SYNC_PACE: SyncPace = {
  firstWaitMs: 2_000,
  longestWaitMs: 600_000,
  giveUpAfterMs: 3 * 3_600_000,
};

/**
 * The wait before the next attempt. For a request limit it is the time that the provider names. For an outage it is
 * twice the last wait, at least the time that the provider names, at most the longest wait.
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
