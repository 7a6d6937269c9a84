import { DomainError } from '../../domain/errors.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { SourceHealth } from '../events/ingestHealth.js';
import type { OrgDb } from '../orgDb.js';
import { foldUsage } from './rollups.js';
import {
  DIMENSION_KEYS,
  HEALTH_MEASURE_NAMES,
  HEALTH_MEASURES,
  MEASURES,
  SOURCE_SEPARATOR,
  usageLogSql,
} from './usageLog.js';
import type { Books, UsageQuery } from './usageQuery.js';
import { usageSql } from './usageSql.js';

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

const MICROS_PER_HOUR = 3_600_000_000n;

/**
 * Sums of calls by one dimension over a window: stored totals for its whole buckets, the events not folded yet, and
 * the events at its two edges, all in one snapshot, so that a call that was acknowledged is in it. Work grows with
 * the buckets of the window, not with the events that are stored.
 */
export async function sumUsage(orgDb: OrgDb, query: UsageQuery): Promise<UsageResult> {
  await foldWhenBehind(orgDb);
  return orgDb.transaction(async (inside) => {
    const { sql, values } = usageSql(inside.orgId, boundTo(inside, query), await readBooks(inside));
    return fromUsageRows(await inside.rows<UsageRow>(sql, values));
  }, 'repeatable read');
}

/** Sums, and what of them came after its month was closed. */
export interface UsageBooks extends UsageResult {
  /** By the calls' own month; null where the window touches no closed month and holds nothing of one. */
  adjustments: UsageGroup[] | null;
}

/** Months of one answer at most: more than any organization has. */
const MONTHS_MAX = 10_000;

/** As sumUsage, and in the same snapshot what of it came late. */
export async function sumUsageBooks(orgDb: OrgDb, query: UsageQuery): Promise<UsageBooks> {
  await foldWhenBehind(orgDb);
  return orgDb.transaction(async (inside) => {
    const books = await readBooks(inside);
    const ask = async (asked: UsageQuery) => {
      const { sql, values } = usageSql(inside.orgId, boundTo(inside, asked), books);
      return fromUsageRows(await inside.rows<UsageRow>(sql, values));
    };
    const result = await ask(query);
    if (books.closedUntilMicros === null) return { ...result, adjustments: null };
    const page = { limit: MONTHS_MAX, offset: 0 };
    const { groups } = await ask({ ...query, ...page, dimension: 'month', only: 'adjustments' });
    const touches = query.fromMicros === undefined || query.fromMicros < books.closedUntilMicros;
    return { ...result, adjustments: touches || groups.length > 0 ? groups : null };
  }, 'repeatable read');
}

/** A question as a handle may ask it: one of a project about its own calls. */
function boundTo(orgDb: OrgDb, query: UsageQuery): UsageQuery {
  return { ...query, filter: { ...query.filter, boundProjectId: orgDb.projectId } };
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

/** Rows of the log that a read adds up itself; with more it folds first. */
const UNFOLDED_ROWS_MAX = 50_000;
/** A fold younger than this cannot have left that many. */
const FOLD_FRESH_SECONDS = 5;
/** Folds of one read at most, each of up to 100,000 events: beyond that it adds up what is left. */
const FOLDS_A_READ_MAX = 20;

/**
 * Folds before a read where the background fold is far behind, so that a read's work stays bounded. A fold that
 * loses to another one at the same time has had its work done by it. Inside a transaction it does nothing: the snapshot
 * would not see the fold, and reads that hold a connection while they wait for another can wait for each other.
 */
export async function foldWhenBehind(orgDb: OrgDb): Promise<void> {
  if (orgDb.isInTransaction) return;
  const whole = orgDb.leaveProject(
    'the totals of an organization are folded for all of its projects at once',
  );
  const [state] = await whole.rows<{ folded_xid: number; is_fresh: boolean }>(
    `select folded_xid, folded_at > now() - make_interval(secs => ${FOLD_FRESH_SECONDS}) as is_fresh
     from rollup_state where org_id = $1`,
    [orgDb.orgId],
  );
  if (state?.is_fresh) return;
  // The bound is a value and not a column of another table: of a value Postgres knows that few rows lie behind it.
  const unfolded = (table: string) =>
    `(select count(*) from (select from ${table} where org_id = $1 and ingest_xid >= $2 limit ${UNFOLDED_ROWS_MAX + 1}) u)`;
  const [rows] = await whole.rows<{ unfolded: number }>(
    `select ${unfolded('events')} + ${unfolded('event_adjustments')} as unfolded`,
    [orgDb.orgId, state?.folded_xid ?? 0],
  );
  if ((rows?.unfolded ?? 0) <= UNFOLDED_ROWS_MAX) return;
  for (let fold = 0; fold < FOLDS_A_READ_MAX; fold += 1) {
    const { more } = await foldUsage(orgDb.database, orgDb.orgId).catch((error: unknown) => {
      if (error instanceof DomainError) return { more: false };
      throw error;
    });
    if (!more) return;
  }
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

interface SourceRow {
  key: string;
  calls: number;
  unpriced: number;
  price_gaps: number;
  unmetered: number;
  unknown_biller: number;
  last_seen: bigint | null;
}

const SOURCE_NAMES = ['calls', 'unpriced', ...HEALTH_MEASURE_NAMES];

/** Totals by source and what is not in them yet; $3: the transaction up to which they are complete. */
const SOURCES = `
  select key, ${SOURCE_NAMES.join(', ')}, last_seen from usage_rollups
  where org_id = $1 and dimension = 'source' and bucket >= $2::timestamptz
  union all
  select key, ${SOURCE_NAMES.join(', ')}, last_seen from adjustment_rollups
  where org_id = $1 and dimension = 'source' and bucket >= $2::timestamptz
  union all ${sourcesOf(usageLogSql('$3'))}`;

/** Totals by source are of the whole organization, so a project's events themselves are read; $3: the project. */
const SOURCES_OF_PROJECT = sourcesOf(`
  select 1::smallint as sign, * from events where org_id = $1 and project_id = $3 and superseded_by is null`);

/** Sources of rows of the log, or of events with a sign. */
function sourcesOf(rows: string): string {
  return `
  select ${DIMENSION_KEYS.source} as key, ${SOURCE_NAMES.join(', ')}, last_seen from (
    select service_name, scope_name, ${MEASURES}, ${HEALTH_MEASURES}, max(timestamp) as last_seen
    from (${rows}) log where status <> 'blocked' and timestamp >= $2::timestamptz group by 1, 2) fresh`;
}

/** Calls by service and instrumentation scope from the whole hour of `sinceMicros` on, with what is wrong with them. */
export async function sumSources(orgDb: OrgDb, sinceMicros: bigint): Promise<SourceHealth[]> {
  const since = isoFromMicros(sinceMicros - (sinceMicros % MICROS_PER_HOUR));
  const rows = await orgDb.transaction(async (inside) => {
    return inside.rows<SourceRow>(
      `with parts as (${inside.projectId === undefined ? SOURCES : SOURCES_OF_PROJECT})
       select key, ${SOURCE_NAMES.map((name) => `sum(${name})::bigint as ${name}`).join(', ')}, max(last_seen) as last_seen
       from parts group by key having sum(calls) <> 0 order by calls desc, key limit 1000`,
      [inside.orgId, since, inside.projectId ?? (await readFoldedXid(inside))],
    );
  }, 'repeatable read');
  return rows.map((row) => {
    const [serviceName = '', scopeName = ''] = row.key.split(SOURCE_SEPARATOR);
    return {
      serviceName,
      scopeName,
      lastSeenMicros: row.last_seen,
      calls: row.calls,
      unmetered: row.unmetered,
      unpriced: row.unpriced,
      priceGaps: row.price_gaps,
      unknownBiller: row.unknown_biller,
      notCounted: 0,
      rejected: {},
    };
  });
}
