import type { TokenClass } from '../../domain/events/event.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Database } from '../client.js';
import { type SqlValue, type SystemDb, unscoped } from '../orgDb.js';
import {
  add,
  DAILY_DIMENSIONS,
  DIMENSION_KEYS,
  HEALTH_MEASURE_NAMES,
  HEALTH_MEASURES,
  LATE,
  MEASURE_NAMES,
  MEASURES,
  mergeSeen,
  OWN_TIME,
  type RollupDimension,
  SEEN,
  signed,
  startOf,
  sumOfMeasure,
  usageLogSql,
} from './usageLog.js';

export const asColumns = (columns: Readonly<Record<string, string>>) =>
  Object.entries(columns)
    .map(([name, sql]) => `${sql} as ${name}`)
    .join(', ');

/**
 * Most events, and copies of changed events, of one fold: bounds its memory and time. A call costs 5.4 µs in a fold of so
 * many and 5.1 in one of 100,000, which occupies a core for half a second.
 */
const FOLD_ROWS_MAX = 25_000;
/** A re-pricing leaves two or three for each event. */
const FOLD_COPIES_MAX = 50_000;

const DIMENSIONS = Object.keys(DIMENSION_KEYS) as RollupDimension[];
const KEY_COLUMNS = DIMENSIONS.map((name) => `${DIMENSION_KEYS[name]} as ${name}_key`).join(', ');
const ROLLUP_NAMES = [...MEASURE_NAMES, ...HEALTH_MEASURE_NAMES];

const KEYED = (log: string) => `
  select *, ${startOf('hour', 'timestamp')} as hour, ${startOf('day', 'timestamp')} as day, ${KEY_COLUMNS} from (${log}) log`;

/**
 * Settings of a fold. Its rows are added up by hash tables: Postgres expects few of them, and would sort them all instead,
 * which takes over a quarter of the fold. With 4 MB, its usual memory, the tables are on disk from some 10,000 calls on.
 */
const FOLD_SETTINGS = `select set_config('work_mem', '16MB', true), set_config('enable_sort', 'off', true)`;

const keysOf = (names: readonly RollupDimension[]) => names.map((name) => `${name}_key`).join(', ');
const setOf = (bucket: string, names: readonly RollupDimension[]) => `(${bucket}, ${keysOf(names)})`;
const setsOf = (bucket: string, names: readonly RollupDimension[]) =>
  names.map((name) => setOf(bucket, [name])).join(', ');
/** The dimension of a group: the one whose key it has. */
const nameOf = (names: readonly RollupDimension[]) =>
  `case ${names.map((name) => `when ${name}_key is not null then '${name}'`).join(' ')} end`;

const HOURLY = DIMENSIONS.filter((name) => !DAILY_DIMENSIONS.has(name));
const DAILY = DIMENSIONS.filter((name) => DAILY_DIMENSIONS.has(name));

/** Sums of the sums of a group, and its first and last call. */
const sumsOf = (names: readonly string[]) => names.map((name) => sumOfMeasure(name)).join(', ');
const SEEN_OF_GROUPS = `coalesce(min(first_added), min(first_any)), coalesce(max(last_added), max(last_any))`;

// Reading the calls costs more than adding them up, so they are read once. Dimensions by the hour have few keys, so calls
// are added up by all of them together, and the totals of each dimension and of labels are sums of those groups. Each
// row is in exactly one set of each dimension, and no key is null.
const FOLD_ROLLUPS = `
with groups as materialized (
  select hour, day, ${keysOf(DIMENSIONS)}, ${MEASURES}, ${HEALTH_MEASURES},
    min(timestamp) filter (where sign > 0) as first_added, min(timestamp) as first_any,
    max(timestamp) filter (where sign > 0) as last_added, max(timestamp) as last_any
  from (${KEYED(OWN_TIME)}) keyed group by grouping sets (${setOf('hour', HOURLY)}, ${setsOf('day', DAILY)})
),
labels as (
  insert into label_cells (org_id, day, provider, model, team_id, feature, ${MEASURE_NAMES.join(', ')}, first_seen, last_seen)
  select $1::uuid, (hour at time zone 'UTC')::date, provider_key, model_key, team_key, feature_key, ${sumsOf(MEASURE_NAMES)}, ${SEEN_OF_GROUPS}
  from groups where hour is not null group by 2, 3, 4, 5, 6
  on conflict (org_id, day, provider, model, team_id, feature) do update set ${add('label_cells', MEASURE_NAMES)}, ${mergeSeen('label_cells')}
)
insert into usage_rollups (org_id, dimension, bucket, key, ${ROLLUP_NAMES.join(', ')}, first_seen, last_seen)
select $1::uuid, totals.* from (
  select ${nameOf(HOURLY)}, hour, coalesce(${keysOf(HOURLY)}), ${sumsOf(ROLLUP_NAMES)}, ${SEEN_OF_GROUPS}
  from groups where hour is not null group by grouping sets (${setsOf('hour', HOURLY)})
  union all
  select ${nameOf(DAILY)}, day, coalesce(${keysOf(DAILY)}), ${ROLLUP_NAMES.join(', ')},
    coalesce(first_added, first_any), coalesce(last_added, last_any)
  from groups where hour is null
) totals (dimension, bucket, key)
order by dimension, bucket, key
on conflict (org_id, dimension, bucket, key) do update set ${add('usage_rollups', ROLLUP_NAMES)}, ${mergeSeen('usage_rollups')}`;

const FOLD_LATE_ROLLUPS = `
insert into adjustment_rollups (org_id, dimension, booked_on, bucket, key, ${ROLLUP_NAMES.join(', ')}, first_seen, last_seen)
select $1, ${nameOf(DIMENSIONS)}, booked_on, coalesce(hour, day), coalesce(${keysOf(DIMENSIONS)}), ${MEASURES}, ${HEALTH_MEASURES}, ${SEEN}
from (${KEYED(LATE)}) keyed
group by grouping sets (${DIMENSIONS.map((name) => `(booked_on, ${DAILY_DIMENSIONS.has(name) ? 'day' : 'hour'}, ${name}_key)`).join(', ')})
on conflict (org_id, dimension, booked_on, bucket, key) do update set ${add('adjustment_rollups', ROLLUP_NAMES)}, ${mergeSeen('adjustment_rollups')}`;

const LABELS = `(timestamp at time zone 'UTC')::date, provider, model, coalesce(team_id, ''), coalesce(feature, '')`;

const FOLD_LATE_LABELS = `
insert into adjustment_labels (org_id, booked_on, day, provider, model, team_id, feature, session_id, ${MEASURE_NAMES.join(', ')}, first_seen, last_seen)
select $1, booked_on, ${LABELS}, session_id, ${MEASURES}, ${SEEN}
from (${LATE}) log
group by 2, 3, 4, 5, 6, 7, 8
on conflict (org_id, booked_on, day, provider, model, team_id, feature, session_id)
do update set ${add('adjustment_labels', MEASURE_NAMES)}, ${mergeSeen('adjustment_labels')}`;

const HAS_LATE = `select exists (${LATE}) as has_late`;

/** Disjoint token classes of a call as bills count them, audio apart; `unpriced` calls have usage and no price. */
export const BILLING_QUANTITIES = `
  sum(sign)::bigint as calls,
  sum(sign * (input_tokens - input_audio))::bigint as input_tokens,
  sum(sign * cache_read)::bigint as cache_read,
  sum(sign * (cache_creation - coalesce(cache_creation_1h, 0)))::bigint as cache_write_5m,
  sum(sign * coalesce(cache_creation_1h, 0))::bigint as cache_write_1h,
  sum(sign * (output_tokens - output_audio))::bigint as output_tokens,
  sum(sign * input_audio)::bigint as input_audio,
  sum(sign * output_audio)::bigint as output_audio,
  sum(sign * reasoning_tok)::bigint as reasoning_tok,
  coalesce(sum(${signed('computed_cost_usd')}), 0) as computed_cost_usd,
  sum(case when computed_cost_usd is null and not unmetered then sign else 0 end)::bigint as unpriced,
  sum(case when cardinality(price_gaps) > 0 then sign else 0 end)::bigint as price_gaps,
  sum(case when unmetered then sign else 0 end)::bigint as unmetered`;

/** The column of a token class in billing_cells. */
export const CLASS_COLUMNS = {
  input: 'input_tokens',
  cache_read: 'cache_read',
  cache_write_5m: 'cache_write_5m',
  cache_write_1h: 'cache_write_1h',
  output: 'output_tokens',
  input_audio: 'input_audio',
  output_audio: 'output_audio',
} as const satisfies Record<TokenClass, (typeof BILLING_MEASURE_NAMES)[number]>;

export const BILLING_MEASURE_NAMES = [
  'calls',
  'input_tokens',
  'cache_read',
  'cache_write_5m',
  'cache_write_1h',
  'output_tokens',
  'input_audio',
  'output_audio',
  'reasoning_tok',
  'computed_cost_usd',
  'unpriced',
  'price_gaps',
  'unmetered',
] as const;

/** Key of a billing cell, over a row of the log. */
export const BILLING_KEYS = {
  hour: startOf('hour', 'end_at'),
  billed_by: 'billed_by',
  provider_account_id: `coalesce(provider_account_id, '')`,
  provider_key_id: `coalesce(provider_key_id, '')`,
  model: 'coalesce(response_model, model)',
  service_tier: `coalesce(service_tier, '')`,
  is_batch: 'is_batch',
  context_band: 'context_band',
  status: 'status',
} as const;

const BILLING_KEY_NAMES = Object.keys(BILLING_KEYS).join(', ');

/** The fields of a call that make up its source (`ObservedSource`), as SQL over rows of the log. */

/** Token classes that some clients cannot send; they include cached input in the other classes. */
const CACHE_CLASSES = `array['cache_read', 'cache_write_5m', 'cache_write_1h']`;

const signOf = (condition: string) => `sum(case when ${condition} then sign else 0 end)::bigint`;

/** Over rows of the log, or of signed events. */
export const SOURCE_MEASURES = {
  calls: 'sum(sign)::bigint',
  without_cache: signOf(`unmetered or usage_missing && ${CACHE_CLASSES}`),
  named_by_answer: signOf(`response_model is not null and status <> 'error'`),
  refused: signOf(`status = 'error' and http_status >= 400`),
} as const;

/** In byte order, which suffices for grouping. */
export const SOURCE_KEYS = {
  provider_account_id: `coalesce(provider_account_id, '') collate "C"`,
  provider_key_id: `coalesce(provider_key_id, '') collate "C"`,
  model: `coalesce(response_model, model) collate "C"`,
  service_name: 'service_name collate "C"',
} as const;

/**
 * Day of an hour in `source_days`. Its clock is that of `billingDayOf`: Google's is Pacific Time by the rule of
 * timesOfPacificDay, written out in SQL so that the result does not depend on a table of time zones.
 */
const SOURCE_DAY = `(hour at time zone case when billed_by = 'google' then 'PST8PDT,M3.2.0,M11.1.0' else 'UTC' end)::date`;

const SOURCE_KEY = `org_id, billed_by, day, ${Object.keys(SOURCE_KEYS).join(', ')}`;
const SOURCE_NAMES = Object.keys(SOURCE_MEASURES);
/** Those that cells lack. */
const { calls: _calls, ...SOURCE_COUNTS } = SOURCE_MEASURES;

// Calls are read once and added up by the keys of both tables together. The number of log rows of a day is its revision.
// The hours of a group lie in one day of its biller. Cells of a day are stored together, because they are read by day.
const FOLD_BILLING = `
with groups as materialized (
  select ${asColumns(BILLING_KEYS)}, service_name, ${BILLING_QUANTITIES}, ${asColumns(SOURCE_COUNTS)},
    min(end_at) filter (where sign > 0) as first_added, min(end_at) as first_any,
    max(end_at) filter (where sign > 0) as last_added, max(end_at) as last_any, count(*) as log_rows
  from (${usageLogSql('$2', '$3')}) log where status <> 'blocked'
  group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
),
days as (
  insert into observed_days (org_id, billed_by, day, revision, sources_revision)
  select $1::uuid, billed_by, (hour at time zone 'UTC')::date, sum(log_rows), sum(log_rows) from groups group by 2, 3
  on conflict (org_id, billed_by, day) do update set revision = observed_days.revision + excluded.revision,
    sources_revision = observed_days.sources_revision + excluded.sources_revision
),
sources as (
  insert into source_days (${SOURCE_KEY}, ${SOURCE_NAMES.join(', ')})
  select $1::uuid, billed_by, ${SOURCE_DAY}, ${Object.keys(SOURCE_KEYS).join(', ')}, ${sumsOf(SOURCE_NAMES)}
  from groups group by 2, 3, 4, 5, 6, 7
  on conflict (${SOURCE_KEY}) do update set ${add('source_days', SOURCE_NAMES)}
)
insert into billing_cells (org_id, ${BILLING_KEY_NAMES}, ${BILLING_MEASURE_NAMES.join(', ')}, first_seen, last_seen)
select $1::uuid, ${BILLING_KEY_NAMES}, ${sumsOf(BILLING_MEASURE_NAMES)}, ${SEEN_OF_GROUPS}
from groups group by ${BILLING_KEY_NAMES} order by hour, billed_by
on conflict (org_id, ${BILLING_KEY_NAMES}) do update set ${add('billing_cells', BILLING_MEASURE_NAMES)}, ${mergeSeen('billing_cells')}`;

export async function listUnfoldedOrganizations(database: Database): Promise<string[]> {
  const rows = await unscoped(database, 'the fold looks for organizations with new events', (system) =>
    system.rows<{ id: string }>(
      // Reads the newest of each by one index lookup: for "does one exist from here on" Postgres estimates that a third
      // of all rows match, and reads the table.
      `select o.id from organizations o left join rollup_state s on s.org_id = o.id
       where greatest(
         (select max(ingest_xid) from events where org_id = o.id),
         (select max(ingest_xid) from event_adjustments where org_id = o.id)) >= coalesce(s.folded_xid, 0)
         or s.projects_xid < s.folded_xid`,
    ),
  );
  return rows.map((row) => row.id);
}

interface HorizonRow {
  from_xid: number;
  /** The transaction up to which project totals are folded; behind only where an older version did not fold them. */
  projects_xid: number;
  below_xid: number;
  /** End of the last closed month. */
  closed_until: bigint | null;
}

/** Folds at most 25,000 new events below the oldest running transaction; two folds at once count nothing twice. */
export async function foldUsage(database: Database, orgId: string): Promise<{ more: boolean }> {
  return unscoped(
    database,
    'fold the events of one organization into its totals',
    async (system) => {
      await system.run(
        `insert into rollup_state (org_id, folded_xid, folded_at) values ($1, 0, '-infinity') on conflict do nothing`,
        [orgId],
      );
      const horizon = await readHorizon(system, orgId);
      if (horizon.projects_xid < horizon.from_xid) return catchUpProjects(system, orgId, horizon);
      if (horizon.below_xid <= horizon.from_xid) return { more: false };
      const cut = await findCut(system, orgId, horizon);
      await system.rows(FOLD_SETTINGS);
      const range = [orgId, horizon.from_xid, cut];
      await foldTotals(system, range, horizon.closed_until);
      await foldProjects(system, range, horizon.closed_until);
      await system.run(FOLD_BILLING, range, 'fold_billing');
      const more = cut < horizon.below_xid;
      // The time is that of the last fold that left no row.
      await system.run(
        `update rollup_state set folded_xid = $2, projects_xid = $2, folded_at = case when $3 then folded_at else now() end
         where org_id = $1`,
        [orgId, cut, more],
      );
      return { more };
    },
    'repeatable read',
  );
}

/** Folds project totals that an older version did not fold. */
async function catchUpProjects(
  system: SystemDb,
  orgId: string,
  horizon: HorizonRow,
): Promise<{ more: boolean }> {
  const behind = { from_xid: horizon.projects_xid, below_xid: horizon.from_xid };
  const hasAny = await hasProjects(system, [orgId, behind.from_xid, behind.below_xid]);
  const cut = hasAny ? await findCut(system, orgId, behind) : behind.below_xid;
  await foldProjects(system, [orgId, behind.from_xid, cut], horizon.closed_until);
  await system.run('update rollup_state set projects_xid = $2 where org_id = $1', [orgId, cut]);
  return { more: true };
}

async function foldTotals(
  system: SystemDb,
  range: readonly SqlValue[],
  closedUntil: bigint | null,
): Promise<void> {
  const booked = [...range, closedUntil === null ? null : isoFromMicros(closedUntil)];
  await system.run(FOLD_ROLLUPS, booked, 'fold_rollups');
  if (closedUntil === null) return;
  const [late] = await system.rows<{ has_late: boolean }>(HAS_LATE, booked, 'fold_has_late');
  if (!late?.has_late) return;
  await system.run(FOLD_LATE_ROLLUPS, booked, 'fold_late_rollups');
  await system.run(FOLD_LATE_LABELS, booked, 'fold_late_labels');
}

async function readHorizon(system: SystemDb, orgId: string): Promise<HorizonRow> {
  const rows = await system.rows<HorizonRow>(
    `select folded_xid as from_xid, projects_xid, pg_snapshot_xmin(pg_current_snapshot())::text::bigint as below_xid, closed_until
     from rollup_state where org_id = $1 for update`,
    [orgId],
  );
  const row = rows[0];
  if (!row) throw new Error('the state row was just made');
  return row;
}

/** The transaction to fold up to: the horizon, or an earlier one where more rows than one fold takes lie before it. */
async function findCut(
  system: SystemDb,
  orgId: string,
  horizon: Pick<HorizonRow, 'from_xid' | 'below_xid'>,
): Promise<number> {
  const behind = (table: string, share: number) => `(
    select ingest_xid from ${table} where org_id = $1 and ingest_xid >= $2 and ingest_xid < $3
    order by ingest_xid offset ${share} limit 1)`;
  const [row] = await system.rows<{ cut: number | null }>(
    `select least(${behind('events', FOLD_ROWS_MAX)}, ${behind('event_adjustments', FOLD_COPIES_MAX)}) as cut`,
    [orgId, horizon.from_xid, horizon.below_xid],
    'fold_cut',
  );
  const cut = row?.cut ?? null;
  return cut === null || cut <= horizon.from_xid ? horizon.below_xid : cut;
}

/** The totals of an organization's projects, by the labels and the day (docs/decisions/0006). */

const PROJECT_LABELS = `project_id, (timestamp at time zone 'UTC')::date, provider, model, coalesce(team_id, ''), coalesce(feature, '')`;
const CELL = 'org_id, project_id, day, provider, model, team_id, feature';

const FOLD_CELLS = `
insert into project_cells (${CELL}, ${MEASURE_NAMES.join(', ')}, first_seen, last_seen)
select $1, ${PROJECT_LABELS}, ${MEASURES}, ${SEEN}
from (${OWN_TIME} and project_id is not null) log
group by 2, 3, 4, 5, 6, 7
on conflict (${CELL}) do update set ${add('project_cells', MEASURE_NAMES)}, ${mergeSeen('project_cells')}`;

const LATE_CELL = `${CELL}, booked_on, session_id, user_id`;

const FOLD_LATE = `
insert into project_adjustments (${LATE_CELL}, ${MEASURE_NAMES.join(', ')}, first_seen, last_seen)
select $1, ${PROJECT_LABELS}, booked_on, session_id, coalesce(user_id, ''), ${MEASURES}, ${SEEN}
from (${LATE} and project_id is not null) log
group by 2, 3, 4, 5, 6, 7, 8, 9, 10
on conflict (${LATE_CELL}) do update set ${add('project_adjustments', MEASURE_NAMES)}, ${mergeSeen('project_adjustments')}`;

// Events are found by one lookup in the index of projects; copies of changed events are those of the range, which are few.
const HAS_PROJECTS = `
select exists (select from events where org_id = $1 and project_id is not null)
  or exists (select from event_adjustments where org_id = $1 and ingest_xid >= $2 and ingest_xid < $3 and project_id is not null)
  as has_projects`;

/** Whether any call of the organization, or of a range of transactions, names a project. */
export async function hasProjects(system: SystemDb, range: readonly SqlValue[]): Promise<boolean> {
  const [row] = await system.rows<{ has_projects: boolean }>(HAS_PROJECTS, range, 'fold_has_projects');
  return row?.has_projects ?? false;
}

/** Folds a range of transactions, [organization, from, below], into the totals of projects. */
export async function foldProjects(
  system: SystemDb,
  range: readonly SqlValue[],
  closedUntil: bigint | null,
): Promise<void> {
  if (!(await hasProjects(system, range))) return;
  const booked = [...range, closedUntil === null ? null : isoFromMicros(closedUntil)];
  await system.run(FOLD_CELLS, booked, 'fold_projects');
  if (closedUntil !== null) await system.run(FOLD_LATE, booked, 'fold_late_projects');
}
