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

/** What the steps of a gap run need of the process. */
export interface RunDeps extends UseCaseDeps {
  prices: Prices;
  /** The time now, microseconds since 1970. */
  nowMicros(): bigint;
  logger: Logger;
}

/** A step of a gap run. */
export interface RunWork {
  deps: RunDeps;
  orgDb: OrgDb;
  runId: string;
  /** Throws when the run was cancelled meanwhile: asked between pieces of work. */
  checkpoint(): void;
}

export function runWork(
  deps: RunDeps,
  ref: { orgId: string; runId: string },
  checkpoint: () => void = () => undefined,
): RunWork {
  return { deps, orgDb: orgDbOf(deps, ref.orgId), runId: ref.runId, checkpoint };
}

/** Days back from a run's end that a series is explained over. */
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

/** The days over which the series are explained that the run finds changed. */
export function explainedWindowOf(run: GapRun): RunWindow {
  return { ...windowOf(run), fromDay: dayOf(run.windowEndMicros - EXPLAINED_DAYS * MICROS_PER_DAY) };
}

/** First event of each account of a provider, as the run found it when it was planned. */
export function observedSinceOf(run: Pick<GapRun, 'observedSince'>, provider: string): Map<string, bigint> {
  const entries = Object.entries(run.observedSince[provider] ?? {});
  return new Map(
    entries.flatMap(([account, iso]): [string, bigint][] => {
      const micros = parseInstant(iso)?.micros;
      return micros === undefined ? [] : [[account, micros]];
    }),
  );
}

/** Hex digest of a text, as marks are kept. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

const digests = new WeakMap<PriceBook, Map<Provider, string>>();

/** Digest of all that a book says of a provider's prices, agreed and listed: reckoned once for each book. */
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
 * Looks for the answers to filed claims on the bills that a run has compared. A run that has published nothing, or has
 * ended, looks for none.
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

/** What was withheld, as far as a run's result lists it. */
const LISTED_MAX = 200;

/**
 * Drafts claims over what people have confirmed of the bills that a run has compared, and adds to its result what came of
 * it. A run that has published nothing, or has ended, drafts nothing. Returns how many claims could not be drafted.
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
 * Whether a run may go on now, has to wait for others of its organization, or is over. `published`: its findings are
 * published, and what is left is what follows from them.
 */
export type RunTurn = 'go' | 'wait' | 'published' | 'over';

/**
 * Marks a run as taken up by its workflow, when fewer than `runningMax` others of the organization are at work. A run
 * that has ended, also one that was cancelled before it began, stays ended; one that was asked to stop ends here.
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
