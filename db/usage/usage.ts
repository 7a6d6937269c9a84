import type { Pico } from '../../domain/money.js';
import type { OrgDb } from '../orgDb.js';
import { type Books, type UsageQuery, usageSql } from './usageSql.js';

/** Sums over a set of calls. */
export interface UsageMeasures {
  calls: number;
  inputTokens: number;
  outputTokens: number;
  cacheRead: number;
  cacheCreation: number;
  reasoningTok: number;
  costPico: Pico;
  computedCostPico: Pico;
  reportedCostPico: Pico;
  /** Calls whose cost is not known and is 0 in the sums. */
  unpriced: number;
}

export interface UsageGroup extends UsageMeasures {
  /** '' for calls without the label. */
  key: string;
  firstSeenMicros: bigint | null;
  lastSeenMicros: bigint | null;
}

export interface UsageResult {
  /** Over all groups, not only those of the page. */
  totals: UsageMeasures;
  /** Cost descending, then key. */
  groups: UsageGroup[];
}

/**
 * Sums of calls by one dimension over a window: stored totals for its whole buckets, the events not folded yet, and the
 * events at its two edges. In a transaction with one snapshot, which `books` were read in. Work grows with the buckets of
 * the window, not with the events that are stored.
 */
export async function readUsage(inside: OrgDb, query: UsageQuery, books: Books): Promise<UsageResult> {
  // A handle of a project asks about its own calls.
  const bound = { ...query, filter: { ...query.filter, boundProjectId: inside.projectId } };
  const { sql, values } = usageSql(inside.orgId, bound, books);
  return fromUsageRows(await inside.rows<UsageRow>(sql, values));
}

/** The transaction up to which the organization's events are in its totals. */
export async function readFoldedXid(orgDb: OrgDb): Promise<number> {
  return (await readBooks(orgDb)).foldedXid;
}

/** How far the organization's totals are, and which of its months are closed. */
export async function readBooks(orgDb: OrgDb): Promise<Books> {
  const [row] = await orgDb.rows<{
    folded_xid: number;
    projects_xid: number;
    closed_until: bigint | null;
  }>('select folded_xid, projects_xid, closed_until from rollup_state where org_id = $1', [orgDb.orgId]);
  return {
    foldedXid: row?.folded_xid ?? 0,
    projectsXid: row?.projects_xid ?? 0,
    closedUntilMicros: row?.closed_until ?? null,
  };
}

/** The measures as columns. */
export interface MeasureColumns {
  calls: number;
  input_tokens: number;
  output_tokens: number;
  cache_read: number;
  cache_creation: number;
  reasoning_tok: number;
  cost_usd: Pico;
  computed_cost_usd: Pico;
  reported_cost_usd: Pico;
  unpriced: number;
}

interface UsageRow extends MeasureColumns {
  is_total: boolean;
  key: string | null;
  first_seen: bigint | null;
  last_seen: bigint | null;
}

export function fromMeasures(row: MeasureColumns): UsageMeasures {
  return {
    calls: row.calls,
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    cacheRead: row.cache_read,
    cacheCreation: row.cache_creation,
    reasoningTok: row.reasoning_tok,
    costPico: row.cost_usd,
    computedCostPico: row.computed_cost_usd,
    reportedCostPico: row.reported_cost_usd,
    unpriced: row.unpriced,
  };
}

function fromUsageRows(rows: readonly UsageRow[]): UsageResult {
  const total = rows.find((row) => row.is_total);
  if (!total) throw new Error('the grand total is always one row');
  return {
    totals: fromMeasures(total),
    groups: rows
      .filter((row) => !row.is_total)
      .map((row) => ({
        key: row.key ?? '',
        firstSeenMicros: row.first_seen,
        lastSeenMicros: row.last_seen,
        ...fromMeasures(row),
      })),
  };
}

/**
 * How many rows of the log are not folded, counted up to `rowsMax` of events and of copies each; 0 when the last fold is
 * younger than `freshSeconds`.
 */
export async function countUnfolded(
  orgDb: OrgDb,
  limits: { rowsMax: number; freshSeconds: number },
): Promise<number> {
  const [state] = await orgDb.rows<{ folded_xid: number; is_fresh: boolean }>(
    `select folded_xid, folded_at > now() - make_interval(secs => $2) as is_fresh from rollup_state where org_id = $1`,
    [orgDb.orgId, limits.freshSeconds],
  );
  if (state?.is_fresh) return 0;
  // The bound is a value and not a column of another table: of a value Postgres knows that few rows lie behind it.
  const unfolded = (table: string) =>
    `(select count(*) from (select from ${table} where org_id = $1 and ingest_xid >= $2 limit ${limits.rowsMax + 1}) u)`;
  const [rows] = await orgDb.rows<{ unfolded: number }>(
    `select ${unfolded('events')} + ${unfolded('event_adjustments')} as unfolded`,
    [orgDb.orgId, state?.folded_xid ?? 0],
  );
  return rows?.unfolded ?? 0;
}

/** How far an organization's totals are, as one snapshot sees it. */
export interface FoldState {
  /** Everything below this transaction is in the totals. */
  foldedXid: number;
  /** Whether there is nothing else: the totals alone are all that is known. */
  isAll: boolean;
}

/**
 * Looks whether a read of the totals has to read the log beside them. To plan a read of the log, which has a table for each month,
 * costs as much as to read a day's totals, and mostly there is nothing to read. To be asked in the transaction of the read,
 * which must see one snapshot.
 */
export async function readFoldState(orgDb: OrgDb): Promise<FoldState> {
  const [row] = await orgDb.rows<{ folded_xid: number; newest_xid: number }>(
    // The newest, one look into an index: of "is there one from here on" Postgres believes that a third of all rows would do.
    `select coalesce((select folded_xid from rollup_state where org_id = $1), 0)::bigint as folded_xid, coalesce(greatest(
       (select max(ingest_xid) from events where org_id = $1),
       (select max(ingest_xid) from event_adjustments where org_id = $1)), -1)::bigint as newest_xid`,
    [orgDb.orgId],
    'fold_state',
  );
  const foldedXid = row?.folded_xid ?? 0;
  return { foldedXid, isAll: (row?.newest_xid ?? -1) < foldedXid };
}
