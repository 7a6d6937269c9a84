/**
 * The log of usage: an event that changed later keeps its first form, so that folds and reads agree
 * (docs/decisions/0006).
 */

/** Columns that totals need, the same in events and event_adjustments. */
export const LOG_COLUMNS: ReadonlySet<string> = new Set([
  'timestamp',
  'end_at',
  'status',
  'provider',
  'billed_by',
  'provider_account_id',
  'provider_key_id',
  'model',
  'response_model',
  'api_key_id',
  'session_id',
  'team_id',
  'feature',
  'project_id',
  'user_id',
  'service_tier',
  'is_batch',
  'context_band',
  'input_tokens',
  'output_tokens',
  'cache_read',
  'cache_creation',
  'cache_creation_5m',
  'cache_creation_1h',
  'reasoning_tok',
  'cached_tok',
  'input_audio',
  'output_audio',
  'unmetered',
  'cost_usd',
  'computed_cost_usd',
  'reported_cost_usd',
  'cost_source',
  'price_gaps',
  'service_name',
  'scope_name',
  'http_status',
  'usage_missing',
]);

export const LOG_COLUMN_LIST = [...LOG_COLUMNS].join(', ');

/** Further columns of a log row: the transaction that wrote it, and the time when that began. */
const ORIGIN = 'ingest_xid, ingested_at';

/** Rows of the log of organization $1 from transaction `from` on, below `below` if given. */
export function usageLogSql(from: string, below?: string): string {
  return logSql(`ingest_xid >= ${from}${below === undefined ? '' : ` and ingest_xid < ${below}`}`);
}

/** Rows of the log of organization $1 with calls of a time, from any transaction. Half-open. */
export function usageLogOfTimeSql(from: string, to: string): string {
  return logSql(`timestamp >= ${from}::timestamptz and timestamp < ${to}::timestamptz`);
}

function logSql(range: string): string {
  return `
    select 1::smallint as sign, ${ORIGIN}, ${LOG_COLUMN_LIST} from events
    where org_id = $1 and ${range} and revised_xid is null
    union all
    select sign, ${ORIGIN}, ${LOG_COLUMN_LIST} from event_adjustments where org_id = $1 and ${range}`;
}

/** Start of the UTC hour or day of a time. `date_trunc` in UTC gives the same, but looks the time zone up for each row. */
export const startOf = (unit: 'hour' | 'day', time: string) =>
  `date_bin('1 ${unit}', ${time}, timestamptz '2000-01-01 00:00:00Z')`;

/** UTC day on which a late row is booked; null: its own time. The rule is bookedMicros (docs/decisions/0013). */
export function bookedOnSql(closedUntil: string): string {
  return `case when timestamp < ${closedUntil}::timestamptz then (
    select greatest((ingested_at at time zone 'UTC')::date, (c.ends_at at time zone 'UTC')::date)
    from period_closings c
    where c.org_id = $1 and c.ends_at > timestamp and not pg_visible_in_snapshot(ingest_xid::text::xid8, c.snapshot)
    order by c.month desc limit 1) end`;
}

/** An amount with the sign of its row: multiplying a numeric would dominate the cost of a row. */
export const signed = (amount: string) => `case when sign < 0 then -${amount} else ${amount} end`;

/** Sums over rows with a sign. `unpriced` counts events with cost_source unpriced, for lack of a price or of usage. */
export const MEASURES = `
  sum(sign)::bigint as calls,
  sum(sign * input_tokens)::bigint as input_tokens,
  sum(sign * output_tokens)::bigint as output_tokens,
  sum(sign * cache_read)::bigint as cache_read,
  sum(sign * cache_creation)::bigint as cache_creation,
  sum(sign * reasoning_tok)::bigint as reasoning_tok,
  sum(${signed('cost_usd')}) as cost_usd,
  coalesce(sum(${signed('computed_cost_usd')}), 0) as computed_cost_usd,
  coalesce(sum(${signed('reported_cost_usd')}), 0) as reported_cost_usd,
  sum(case when cost_source = 'unpriced' then sign else 0 end)::bigint as unpriced`;

export const MEASURE_NAMES = [
  'calls',
  'input_tokens',
  'output_tokens',
  'cache_read',
  'cache_creation',
  'reasoning_tok',
  'cost_usd',
  'computed_cost_usd',
  'reported_cost_usd',
  'unpriced',
] as const;

/** SQL of the exact sum of a measure: dollars unchanged, counts as whole numbers. */
export function sumOfMeasure(name: string, column = name): string {
  return name.endsWith('_usd') ? `sum(${column})` : `sum(${column})::bigint`;
}

const MEASURE_PROPERTIES: Record<(typeof MEASURE_NAMES)[number], string> = {
  calls: 'calls',
  input_tokens: 'inputTokens',
  output_tokens: 'outputTokens',
  cache_read: 'cacheRead',
  cache_creation: 'cacheCreation',
  reasoning_tok: 'reasoningTok',
  cost_usd: 'costPico',
  computed_cost_usd: 'computedCostPico',
  reported_cost_usd: 'reportedCostPico',
  unpriced: 'unpriced',
};
/** The columns of `sumsOfMeasures`. */
export const MEASURE_COLUMNS = MEASURE_NAMES.map((name) => `"${MEASURE_PROPERTIES[name]}"`).join(', ');

const measures = (sql: (name: string) => string) =>
  MEASURE_NAMES.map((name) => `${sql(name)} as "${MEASURE_PROPERTIES[name]}"`).join(', ');

export const MEASURES_AS_PROPERTIES = measures((name) => name);

/** SQL of the sums of all measures over the parts of a total, by property; 0 where a part has none. */
export const sumsOfMeasures = (columnOf: (name: string) => string = (name) => name) =>
  measures((name) => `coalesce(${sumOfMeasure(name, columnOf(name))}, 0)`);

export const HEALTH_MEASURES = `
  sum(case when cardinality(price_gaps) > 0 then sign else 0 end)::bigint as price_gaps,
  sum(case when unmetered then sign else 0 end)::bigint as unmetered,
  sum(case when billed_by = 'unknown' then sign else 0 end)::bigint as unknown_biller`;

export const HEALTH_MEASURE_NAMES = ['price_gaps', 'unmetered', 'unknown_biller'] as const;

/** Separates service and instrumentation scope in a key of the dimension `source`; stripping removes it from both. */
export const SOURCE_SEPARATOR = '\u001f';

/** Key of an event in each attribution dimension. */
export const DIMENSION_KEYS = {
  model: 'model',
  provider: 'provider',
  team: `coalesce(team_id, '')`,
  feature: `coalesce(feature, '')`,
  project: `coalesce(project_id, '')`,
  key: 'api_key_id',
  user: `coalesce(user_id, '')`,
  session: 'session_id',
  source: `service_name || chr(31) || scope_name`,
} as const;

export type RollupDimension = keyof typeof DIMENSION_KEYS;

/** Dimensions with so many keys that their totals are stored by day instead of by hour. */
export const DAILY_DIMENSIONS: ReadonlySet<RollupDimension> = new Set<RollupDimension>(['user', 'session']);

/** Common parts of a fold's statements. $1 is the organization, $2 and $3 bound the transactions. */

/** SET clause of an `on conflict` that adds a fold's sums to the stored ones. */
export const add = (table: string, names: readonly string[]) =>
  names.map((name) => `${name} = ${table}.${name} + excluded.${name}`).join(', ');

export const mergeSeen = (table: string) =>
  `first_seen = least(${table}.first_seen, excluded.first_seen), last_seen = greatest(${table}.last_seen, excluded.last_seen)`;

/** Times of the first and the last call, if any. */
export const SEEN = `
  coalesce(min(timestamp) filter (where sign > 0), min(timestamp)), coalesce(max(timestamp) filter (where sign > 0), max(timestamp))`;

// $4 is the end of the last closed month. Rows that came after their month was closed go to separate tables, so that
// totals of a closed month never grow.
const LOG = `select *, ${bookedOnSql('$4')} as booked_on from (${usageLogSql('$2', '$3')}) entries where status <> 'blocked'`;
export const OWN_TIME = `select * from (${LOG}) booked where booked_on is null`;
export const LATE = `select * from (${LOG} and timestamp < $4::timestamptz) booked where booked_on is not null`;
