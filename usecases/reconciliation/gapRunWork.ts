import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { OrgDb } from '../../db/orgDb.js';
import {
  GAP_RUNS,
  type GapRun,
  keepPublishedRunOpen,
  lockGapRunTurn,
  type RunDrafts,
  recordGapRunTurn,
  recordRunDrafts,
} from '../../db/reconciliation/gapRuns.js';
import { findRun } from '../../db/runs/runTable.js';
import type { WithheldDraft } from '../../domain/claims/draft.js';
import { DomainError } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import { decimalFromPico } from '../../domain/money.js';
import { dayOf, MICROS_PER_DAY, parseInstant } from '../../domain/period.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Provider } from '../../domain/providers.js';
import { RUN_TERMINAL_STATUSES } from '../../domain/runs/runKinds.js';
import { type DraftDeps, draftConfirmed } from '../claims/draftClaims.js';
import { findCredits } from '../claims/findCredits.js';
import type { Prices } from '../pricing/priceBookHolder.js';
import { endRun } from '../runs/endRun.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';

/** Dependencies of a gap run's steps. */
export interface RunDeps extends UseCaseDeps {
  prices: Prices;
  /** The present time, microseconds since 1970. */
  nowMicros(): bigint;
  logger: Logger;
}

/** A step of a gap run. */
export interface RunWork {
  deps: RunDeps;
  orgDb: OrgDb;
  runId: string;
  /** Throws when the run was cancelled meanwhile; called between parts of work. */
  checkpoint(): void;
}

export function runWork(
  deps: RunDeps,
  ref: { orgId: string; runId: string },
  checkpoint: () => void = () => undefined,
): RunWork {
  return { deps, orgDb: orgDbOf(deps, ref.orgId), runId: ref.runId, checkpoint };
}

/** Days before a run's end over which a series is explained. */
const EXPLAINED_DAYS = 400n;

export async function loadRun({ orgDb, runId }: RunWork): Promise<GapRun> {
  const run = await findRun(orgDb, GAP_RUNS, runId);
  if (!run) throw new DomainError('not_found', 'there is no gap run with this id');
  return run;
}

/** Days of a run, half-open. */
export interface RunWindow {
  provider: string | null;
  fromDay: string;
  toDay: string;
}

export function windowOf(run: GapRun): RunWindow {
  return { provider: run.provider, fromDay: dayOf(run.windowStartMicros), toDay: dayOf(run.windowEndMicros) };
}

/** The days over which the run explains changed series. */
export function explainedWindowOf(run: GapRun): RunWindow {
  return { ...windowOf(run), fromDay: dayOf(run.windowEndMicros - EXPLAINED_DAYS * MICROS_PER_DAY) };
}

/** First event of each account of a provider, as recorded when the run was planned. */
export function observedSinceOf(run: Pick<GapRun, 'observedSince'>, provider: string): Map<string, bigint> {
  const entries = Object.entries(run.observedSince[provider] ?? {});
  return new Map(
    entries.flatMap(([account, iso]): [string, bigint][] => {
      const micros = parseInstant(iso)?.micros;
      return micros === undefined ? [] : [[account, micros]];
    }),
  );
}

/** Hex digest of a text, the form of stored input marks. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

const digests = new WeakMap<PriceBook, Map<Provider, string>>();

/** Digest of a provider's agreed and list prices in a book; computed once for each book. */
export function pricesDigest(book: PriceBook, provider: Provider): string {
  const known = digests.get(book) ?? new Map<Provider, string>();
  digests.set(book, known);
  const found = known.get(provider);
  if (found !== undefined) return found;
  const text = (of: PriceBook) =>
    JSON.stringify(of.entriesOf(provider), (_, part: unknown) =>
      typeof part === 'bigint' ? part.toString() : part,
    );
  const digest = digestOf(book.list === book ? text(book) : `${text(book)}\n${text(book.list)}`);
  known.set(provider, digest);
  return digest;
}

/**
 * Searches the bills that a run compared for answers to filed claims. A run that has published nothing, or has ended,
 * searches nothing.
 */
export async function findRunCredits(work: RunWork): Promise<void> {
  const { orgDb, runId, checkpoint } = work;
  const { provider } = await loadRun(work);
  await findCredits(orgDb, {
    provider,
    checkpoint,
    holds: (inside) => keepPublishedRunOpen(inside, runId),
  });
}

/** Most withheld drafts that a run's result lists. */
const LISTED_MAX = 200;

/**
 * Drafts claims over the confirmed disputes of the bills that a run compared, and adds the outcome to its result. A run
 * that has published nothing, or has ended, drafts nothing. Returns the number of claims that could not be drafted.
 */
export async function draftRunClaims(work: RunWork, deps: DraftDeps): Promise<{ failed: number }> {
  const { orgDb, runId, checkpoint } = work;
  const run = await loadRun(work);
  const by = publicId('run', runId);
  const drafted = await draftConfirmed(
    orgDb,
    { provider: run.provider, by, checkpoint, holds: (inside) => keepPublishedRunOpen(inside, runId) },
    deps,
  );
  for (const { group, error } of drafted.failed)
    work.deps.logger.error(
      { err: error, orgId: orgDb.orgId, runId, disputes: group.disputes.map(({ id }) => id) },
      'a claim could not be drafted; the next run of the provider tries again',
    );
  const withheld = drafted.withheld.slice(0, LISTED_MAX).map(presentWithheld);
  await recordRunDrafts(orgDb, runId, { by, withheld });
  return { failed: drafted.failed.length };
}

function presentWithheld({ group, underchargedPico }: WithheldDraft): RunDrafts['withheld'][number] {
  return {
    provider: group.provider,
    provider_account_id: group.accountId,
    kind: group.kind,
    month: group.month,
    dispute_ids: group.disputes.map(({ id }) => id).sort(),
    disputed_usd: decimalFromPico(group.disputedPico),
    undercharged_usd: decimalFromPico(underchargedPico),
  };
}

/**
 * Whether a run may continue, has to wait for other runs of its organization, or is over. `published`: its findings are
 * published, and only the steps after publication are left.
 */
export type RunTurn = 'go' | 'wait' | 'published' | 'over';

/**
 * Marks a run as running when fewer than `runningMax` others of the organization run. An ended run, also one that was
 * cancelled before it began, stays ended; a run that was asked to stop ends here.
 */
export async function takeGapRunTurn(orgDb: OrgDb, id: string, runningMax: number): Promise<RunTurn> {
  return orgDb.transaction(async (inside) => {
    const run = await lockGapRunTurn(inside, id);
    if (!run || RUN_TERMINAL_STATUSES.has(run.status)) return 'over';
    if (run.isCancelRequested && !run.isPublished) {
      await endRun(inside, 'gap_run', id, { status: 'cancelled' });
      return 'over';
    }
    const goes = run.isPublished || run.status === 'running' || run.others < runningMax;
    await recordGapRunTurn(inside, id, goes);
    if (run.isPublished) return 'published';
    return goes ? 'go' : 'wait';
  });
}
