import { DomainError } from '../../domain/errors.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros, LATEST_MICROS } from '../../domain/period.js';
import type { OrgDb, SqlValue } from '../orgDb.js';
import type { SourceHealth } from './ingestHealth.js';
import { foldUsage } from './rollups.js';
import {
  DAILY_DIMENSIONS,
  DIMENSION_KEYS,
  HEALTH_MEASURE_NAMES,
  HEALTH_MEASURES,
  MEASURE_NAMES,
  MEASURES,
  type RollupDimension,
  SOURCE_SEPARATOR,
  usageLogSql,
} from './usageLog.js';

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

export type UsageDimension = Exclude<RollupDimension, 'source'> | 'day';

export interface UsageFilter {
  provider?: string | undefined;
  model?: string | undefined;
  teamId?: string | undefined;
  feature?: string | undefined;
  sessionId?: string | undefined;
  kind?: string | undefined;
}

export interface UsageQuery {
  dimension: UsageDimension;
  filter: UsageFilter;
  /** Half-open; an absent side is open. */
  fromMicros: bigint | undefined;
  toMicros: bigint | undefined;
  limit: number;
  offset: number;
}

export interface UsageResult {
  /** Over all groups, not only those of the page. */
  totals: UsageMeasures;
  /** Cost descending, then key. */
  groups: UsageGroup[];
}

const MICROS = { hour: 3_600_000_000n, day: 86_400_000_000n } as const;
const FAR_PAST = '-infinity';
const FAR_FUTURE = 'infinity';

const LABEL_FILTERS: readonly [keyof UsageFilter, string, string][] = [
  ['provider', 'provider', 'provider'],
  ['model', 'model', 'model'],
  ['teamId', 'team_id', 'team_id'],
  ['feature', 'feature', 'feature'],
];

const EVENT_FILTERS: readonly [keyof UsageFilter, string, string][] = [
  ...LABEL_FILTERS,
  ['sessionId', 'session_id', 'session_id'],
  ['kind', 'kind', 'kind'],
];

const LABEL_KEYS: Partial<Record<UsageDimension, string>> = {
  model: 'model',
  provider: 'provider',
  team: 'team_id',
  feature: 'feature',
  day: `to_char(day, 'YYYY-MM-DD')`,
};

const EVENT_DAY = `to_char(timestamp at time zone 'UTC', 'YYYY-MM-DD')`;

function eventKey(dimension: UsageDimension): string {
  return dimension === 'day' ? EVENT_DAY : DIMENSION_KEYS[dimension];
}

/** Which stored totals answer a question, and by what grain; undefined: only the events themselves can. */
type Source =
  | {
      table: 'usage_rollups' | 'label_cells';
      grain: 'hour' | 'day';
      key: string;
      bucket: string;
      where: string;
    }
  | undefined;

function sourceOf(query: UsageQuery): Source {
  const named = EVENT_FILTERS.filter(([name]) => query.filter[name] !== undefined);
  if (named.length === 0) {
    const dimension: RollupDimension = query.dimension === 'day' ? 'provider' : query.dimension;
    const key = query.dimension === 'day' ? `to_char(bucket at time zone 'UTC', 'YYYY-MM-DD')` : 'key';
    const grain = DAILY_DIMENSIONS.has(dimension) ? 'day' : 'hour';
    return { table: 'usage_rollups', grain, key, bucket: 'bucket', where: `dimension = '${dimension}'` };
  }
  const key = LABEL_KEYS[query.dimension];
  const labelsOnly = named.every(([name]) => LABEL_FILTERS.some(([label]) => label === name));
  if (key === undefined || !labelsOnly) return undefined;
  return {
    table: 'label_cells',
    grain: 'day',
    key,
    bucket: `(day::timestamp at time zone 'UTC')`,
    where: 'true',
  };
}

/** Up-rounded lower and down-rounded upper bound of the whole buckets in a window, as SQL texts. */
function wholeBuckets(query: UsageQuery, grain: 'hour' | 'day'): { from: string; to: string } | undefined {
  const size = MICROS[grain];
  const from = query.fromMicros === undefined ? undefined : ((query.fromMicros + size - 1n) / size) * size;
  const to = query.toMicros === undefined ? undefined : (query.toMicros / size) * size;
  if (from !== undefined && (from > LATEST_MICROS || (to !== undefined && from >= to))) return undefined;
  return {
    from: from === undefined ? FAR_PAST : isoFromMicros(from),
    to: to === undefined ? FAR_FUTURE : isoFromMicros(to),
  };
}

/**
 * Sums of calls by one dimension over a window: stored totals for its whole buckets, the events not folded yet, and
 * the events at its two edges, all in one snapshot, so that a call that was acknowledged is in it. Work grows with
 * the buckets of the window, not with the events that are stored.
 */
export async function sumUsage(orgDb: OrgDb, query: UsageQuery): Promise<UsageResult> {
  await foldWhenBehind(orgDb);
  return orgDb.transaction(async (inside) => {
    const { sql, values } = usageSql(inside.orgId, query, await readFoldedXid(inside));
    return fromUsageRows(await inside.rows<UsageRow>(sql, values));
  }, 'repeatable read');
}

/** The transaction up to which the organization's events are in its totals. */
export async function readFoldedXid(orgDb: OrgDb): Promise<number> {
  const rows = await orgDb.rows<{ folded_xid: number }>(
    'select folded_xid from rollup_state where org_id = $1',
    [orgDb.orgId],
  );
  return rows[0]?.folded_xid ?? 0;
}

/** Events that a read adds up itself; with more it folds first. */
const UNFOLDED_ROWS_MAX = 50_000;
/** A fold younger than this cannot have left that many. */
const FOLD_FRESH_SECONDS = 5;
/** Folds of one read at most, each of up to 100,000 events: beyond that it adds up what is left. */
const FOLDS_A_READ_MAX = 20;

/**
 * Folds before a read where the background fold is far behind, so that a read's work stays bounded. A fold that
 * loses to another one at the same time has had its work done by it.
 */
async function foldWhenBehind(orgDb: OrgDb): Promise<void> {
  const [state] = await orgDb.rows<{ folded_xid: number; is_fresh: boolean }>(
    `select folded_xid, folded_at > now() - make_interval(secs => ${FOLD_FRESH_SECONDS}) as is_fresh
     from rollup_state where org_id = $1`,
    [orgDb.orgId],
  );
  if (state?.is_fresh) return;
  // The bound is a value and not a column of another table: of a value Postgres knows that few rows lie behind it.
  const [rows] = await orgDb.rows<{ unfolded: number }>(
    `select count(*) as unfolded from (
       select from events where org_id = $1 and ingest_xid >= $2 limit ${UNFOLDED_ROWS_MAX + 1}) u`,
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

function usageSql(orgId: string, query: UsageQuery, foldedXid: number): { sql: string; values: SqlValue[] } {
  const values: SqlValue[] = [orgId];
  const bind = (value: SqlValue) => `$${values.push(value)}`;
  const conditions = (filters: readonly [keyof UsageFilter, string, string][]) =>
    filters
      .flatMap(([name, column]) =>
        query.filter[name] === undefined ? [] : [` and ${column} = ${bind(query.filter[name] as string)}`],
      )
      .join('');
  const source = sourceOf(query);
  const whole = source && wholeBuckets(query, source.grain);
  // Bound only where they are used: Postgres cannot tell the type of a parameter that stands nowhere.
  const from = () => bind(query.fromMicros === undefined ? FAR_PAST : isoFromMicros(query.fromMicros));
  const to = () => bind(query.toMicros === undefined ? FAR_FUTURE : isoFromMicros(query.toMicros));
  const key = eventKey(query.dimension);
  const fromEvents = (window: string) => `
    select ${key} as key, ${MEASURES}, min(timestamp) as first_seen, max(timestamp) as last_seen
    from (select 1::smallint as sign, * from events
      where org_id = $1 and superseded_by is null and status <> 'blocked' and ${window}${conditions(EVENT_FILTERS)}) e group by 1`;
  const between = (low: string, high: string) =>
    `timestamp >= ${low}::timestamptz and timestamp < ${high}::timestamptz`;
  const parts: string[] = [];
  if (source && whole) {
    const wholeFrom = bind(whole.from);
    const wholeTo = bind(whole.to);
    parts.push(`
      select ${source.key} as key, ${MEASURE_NAMES.join(', ')}, first_seen, last_seen from ${source.table}
      where org_id = $1 and ${source.where} and ${source.bucket} >= ${wholeFrom}::timestamptz and ${source.bucket} < ${wholeTo}::timestamptz
      ${source.table === 'label_cells' ? conditions(LABEL_FILTERS) : ''}`);
    parts.push(`
      select ${key} as key, ${MEASURES}, min(timestamp) as first_seen, max(timestamp) as last_seen
      from (${usageLogSql(bind(foldedXid))}) log
      where status <> 'blocked' and ${between(wholeFrom, wholeTo)}${conditions(LABEL_FILTERS)} group by 1`);
    if (query.fromMicros !== undefined) parts.push(fromEvents(between(from(), wholeFrom)));
    if (query.toMicros !== undefined) parts.push(fromEvents(between(wholeTo, to())));
  } else {
    parts.push(fromEvents(between(from(), to())));
  }
  const sums = MEASURE_NAMES.map((name) => {
    const exact = name.endsWith('_usd') ? `coalesce(sum(${name}), 0)` : `coalesce(sum(${name}), 0)::bigint`;
    return `${exact} as ${name}`;
  }).join(', ');
  const sql = `
    with parts as (${parts.join(' union all ')})
    select grouping(key) = 1 as is_total, key, ${sums}, min(first_seen) as first_seen, max(last_seen) as last_seen
    from parts group by grouping sets ((key), ())
    having grouping(key) = 1 or sum(calls) <> 0
    order by is_total desc, cost_usd desc, key
    limit ${bind(query.limit + query.offset + 1)}`;
  return { sql, values: values };
}

interface UsageRow {
  is_total: boolean;
  key: string | null;
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
  first_seen: bigint | null;
  last_seen: bigint | null;
}

function fromMeasures(row: UsageRow): UsageMeasures {
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

/** Calls by service and instrumentation scope from the whole hour of `sinceMicros` on, with what is wrong with them. */
export async function sumSources(orgDb: OrgDb, sinceMicros: bigint): Promise<SourceHealth[]> {
  const names = ['calls', 'unpriced', ...HEALTH_MEASURE_NAMES].join(', ');
  const since = isoFromMicros(sinceMicros - (sinceMicros % MICROS.hour));
  const rows = await orgDb.transaction(async (inside) => {
    return inside.rows<SourceRow>(
      `with parts as (
         select key, ${names}, last_seen from usage_rollups
         where org_id = $1 and dimension = 'source' and bucket >= $2::timestamptz
         union all
         select ${DIMENSION_KEYS.source}, calls, unpriced, ${HEALTH_MEASURE_NAMES.join(', ')}, last_seen from (
           select service_name, scope_name, ${MEASURES}, ${HEALTH_MEASURES}, max(timestamp) as last_seen
           from (${usageLogSql('$3')}) log where status <> 'blocked' and timestamp >= $2::timestamptz group by 1, 2) fresh
       )
       select key, sum(calls)::bigint as calls, sum(unpriced)::bigint as unpriced, sum(price_gaps)::bigint as price_gaps,
         sum(unmetered)::bigint as unmetered, sum(unknown_biller)::bigint as unknown_biller, max(last_seen) as last_seen
       from parts group by key having sum(calls) <> 0 order by calls desc, key limit 1000`,
      [inside.orgId, since, await readFoldedXid(inside)],
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
      rejected: {},
    };
  });
}
