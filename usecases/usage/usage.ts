import { listPeriodClosings } from '../../db/billing/periods.js';
import type { Database } from '../../db/client.js';
import { readSources, type SourceHealth } from '../../db/events/ingestHealth.js';
import type { OrgDb } from '../../db/orgDb.js';
import { foldUsage, listUnfoldedOrganizations } from '../../db/usage/rollups.js';
import {
  countUnfolded,
  readBooks,
  readUsage,
  type UsageGroup,
  type UsageQuery,
  type UsageResult,
} from '../../db/usage/usage.js';
import { type AsOfQuestion, type UsageView, viewAsOf } from '../../domain/billing/periods.js';
import { DomainError } from '../../domain/errors.js';
import type { UseCaseDeps } from '../useCaseDeps.js';

/** Sums of calls by one dimension over a window, in one snapshot that includes every acknowledged call. */
export async function sumUsage(orgDb: OrgDb, query: UsageQuery): Promise<UsageResult> {
  await foldWhenBehind(orgDb);
  return orgDb.transaction(
    async (inside) => readUsage(inside, query, await readBooks(inside)),
    'repeatable read',
  );
}

/** Sums, with the part that came after its month was closed. */
export interface UsageBooks extends UsageResult {
  /** By the calls' own month; null: the window neither touches a closed month nor contains adjustments of one. */
  adjustments: UsageGroup[] | null;
}

/** Most months of one answer: more than any organization has. */
const MONTHS_MAX = 10_000;

/** `sumUsage` with the late part of the sums, in the same snapshot. */
export async function sumUsageBooks(orgDb: OrgDb, query: UsageQuery): Promise<UsageBooks> {
  await foldWhenBehind(orgDb);
  return orgDb.transaction(async (inside) => {
    const books = await readBooks(inside);
    const result = await readUsage(inside, query, books);
    if (books.closedUntilMicros === null) return { ...result, adjustments: null };
    const late = { ...query, limit: MONTHS_MAX, offset: 0, dimension: 'month', only: 'adjustments' } as const;
    const { groups } = await readUsage(inside, late, books);
    const touches = query.fromMicros === undefined || query.fromMicros < books.closedUntilMicros;
    return { ...result, adjustments: touches || groups.length > 0 ? groups : null };
  }, 'repeatable read');
}

/** `sumUsageBooks` in the requested view. Error: as_of_unanswerable. */
export async function sumUsageAsOf(
  orgDb: OrgDb,
  question: AsOfQuestion,
  query: Omit<UsageQuery, 'view' | 'fromMicros' | 'toMicros' | 'offset'>,
): Promise<UsageBooks & { view: UsageView }> {
  const closings = question.asOf === undefined ? [] : await listPeriodClosings(orgDb);
  const view = viewAsOf(question, closings);
  const { fromMicros, toMicros } = question;
  return { view, ...(await sumUsageBooks(orgDb, { ...query, fromMicros, toMicros, view, offset: 0 })) };
}

/** Calls by service and instrumentation scope from the whole hour of `sinceMicros` on, with their problems. */
export async function sumSources(orgDb: OrgDb, sinceMicros: bigint): Promise<SourceHealth[]> {
  return orgDb.transaction((inside) => readSources(inside, sinceMicros), 'repeatable read');
}

/** Unfolded rows of the log that a read sums itself; with more it folds first. */
const UNFOLDED_ROWS_MAX = 50_000;
/** Since a younger fold that left none, fewer have come, seconds. */
const FOLD_FRESH_SECONDS = 5;
/** Most folds before one read, each of up to 25,000 events; the read sums the remaining rows. */
const FOLDS_A_READ_MAX = 80;

/**
 * Folds before a read where the background fold is far behind, so that the read's work stays bounded. Does nothing
 * inside a transaction: its snapshot would not see the fold, and reads that hold a connection while they wait for
 * another one can deadlock.
 */
export async function foldWhenBehind(orgDb: OrgDb): Promise<void> {
  if (orgDb.isInTransaction) return;
  const whole = orgDb.leaveProject(
    'the totals of an organization are folded for all of its projects at once',
  );
  const limits = { rowsMax: UNFOLDED_ROWS_MAX, freshSeconds: FOLD_FRESH_SECONDS };
  if ((await countUnfolded(whole, limits)) <= UNFOLDED_ROWS_MAX) return;
  await foldOften(orgDb.database, orgDb.orgId, FOLDS_A_READ_MAX);
}

/** Folds an organization until no row is left, at most `foldsMax` times. Returns whether more rows wait. */
export async function foldOften(database: Database, orgId: string, foldsMax: number): Promise<boolean> {
  for (let fold = 0; fold < foldsMax; fold += 1) {
    const { more } = await foldUsage(database, orgId).catch((error: unknown) => {
      // Another process is folding the same organization.
      if (error instanceof DomainError) return { more: false };
      throw error;
    });
    if (!more) return false;
  }
  return true;
}

export interface FoldOptions {
  /** Most folds of an organization. */
  foldsMax?: number;
  /** Runs after each organization. */
  afterEach?: () => Promise<void>;
}

/** Folds every organization with new events. Returns whether more rows wait. */
export async function foldAll(
  { database }: UseCaseDeps,
  { foldsMax = 1, afterEach }: FoldOptions = {},
): Promise<boolean> {
  let more = false;
  for (const orgId of await listUnfoldedOrganizations(database)) {
    more = (await foldOften(database, orgId, foldsMax)) || more;
    await afterEach?.();
  }
  return more;
}
