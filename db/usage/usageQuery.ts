import type { UsageView } from '../../domain/billing/periods/asOf.js';
import { isoFromMicros, LATEST_MICROS, MICROS_PER_DAY } from '../../domain/period.js';
import { DAILY_DIMENSIONS, DIMENSION_KEYS, type RollupDimension } from './usageLog.js';

/** What can be asked of usage, and which stored totals answer it. */

export type UsageDimension = Exclude<RollupDimension, 'source'> | 'day';

export interface UsageFilter {
  provider?: string | undefined;
  model?: string | undefined;
  teamId?: string | undefined;
  feature?: string | undefined;
  sessionId?: string | undefined;
  projectId?: string | undefined;
  /** The handle's project, besides the one that is asked for. */
  boundProjectId?: string | undefined;
  kind?: string | undefined;
}

export interface UsageQuery {
  /** `month`: the calls' own months, whichever time they are booked at. */
  dimension: UsageDimension | 'month';
  filter: UsageFilter;
  /** Half-open; an absent side is open. */
  fromMicros: bigint | undefined;
  toMicros: bigint | undefined;
  limit: number;
  offset: number;
  /** Absent: every call at its own time, all that is known now. */
  view?: UsageView;
  /** Only what came after its month was closed. */
  only?: 'adjustments';
}

/** How far an organization's totals are. */
export interface Books {
  /** Everything below this transaction is in them. */
  foldedXid: number;
  /** The same of its projects' totals. */
  projectsXid: number;
  /** End of the last closed month; null: none is. */
  closedUntilMicros: bigint | null;
}

export const GRAIN_MICROS = { hour: 3_600_000_000n, day: MICROS_PER_DAY } as const;
export const FAR_PAST = '-infinity';
export const FAR_FUTURE = 'infinity';

export type Filters = readonly [keyof UsageFilter, string][];
const LABEL_FILTERS: Filters = [
  ['provider', 'provider'],
  ['model', 'model'],
  ['teamId', 'team_id'],
  ['feature', 'feature'],
];
const PROJECT_FILTERS: Filters = [
  ['projectId', 'project_id'],
  ['boundProjectId', 'project_id'],
];
export const LOG_FILTERS: Filters = [...LABEL_FILTERS, ...PROJECT_FILTERS, ['sessionId', 'session_id']];
export const EVENT_FILTERS: Filters = [...LOG_FILTERS, ['kind', 'kind']];

type Keys = Partial<Record<UsageDimension | 'month', string>>;

const CELL_KEYS: Keys = {
  model: 'model',
  provider: 'provider',
  team: 'team_id',
  feature: 'feature',
  day: `to_char(day, 'YYYY-MM-DD')`,
  month: `to_char(day, 'YYYY-MM')`,
};
/** Columns by dimension in the totals by label, and those that only their twin of what came late has. */
const LABEL_KEYS = { stored: CELL_KEYS, late: { session: 'session_id' } as Keys };
const PROJECT_KEYS = {
  stored: { ...CELL_KEYS, project: 'project_id' } as Keys,
  late: { session: 'session_id', user: 'user_id' } as Keys,
};

const TIME_FORMATS = { day: 'YYYY-MM-DD', month: 'YYYY-MM' } as const;

function isTime(dimension: UsageDimension | 'month'): dimension is 'day' | 'month' {
  return dimension === 'day' || dimension === 'month';
}

/** Key of a row of the log, or of an event. */
export function rowKey(dimension: UsageDimension | 'month'): string {
  if (!isTime(dimension)) return DIMENSION_KEYS[dimension];
  return `to_char(timestamp at time zone 'UTC', '${TIME_FORMATS[dimension]}')`;
}

/** Stored totals that answer a question, and their twin of what came late. */
export interface Source {
  table: 'usage_rollups' | 'label_cells' | 'project_cells' | undefined;
  late: 'adjustment_rollups' | 'adjustment_labels' | 'project_adjustments';
  grain: 'hour' | 'day';
  key: string;
  bucket: string;
  where: string;
  filters: Filters;
}

/** The stored totals that answer a question. */
export function sourceOf(query: UsageQuery): Source {
  const named = EVENT_FILTERS.filter(([name]) => query.filter[name] !== undefined);
  if (named.length === 0) {
    const { dimension } = query;
    const stored: RollupDimension = isTime(dimension) ? 'provider' : dimension;
    const key = isTime(dimension)
      ? `to_char(bucket at time zone 'UTC', '${TIME_FORMATS[dimension]}')`
      : 'key';
    const grain = DAILY_DIMENSIONS.has(stored) ? 'day' : 'hour';
    const where = `dimension = '${stored}'`;
    return {
      table: 'usage_rollups',
      late: 'adjustment_rollups',
      grain,
      key,
      bucket: 'bucket',
      where,
      filters: [],
    };
  }
  const ofProject = named.some((filter) => PROJECT_FILTERS.includes(filter));
  const keys = ofProject ? PROJECT_KEYS : LABEL_KEYS;
  const key = keys.stored[query.dimension];
  const labelsOnly = named.every(
    (filter) => LABEL_FILTERS.includes(filter) || PROJECT_FILTERS.includes(filter),
  );
  return {
    // Without a total for it only the events themselves answer.
    table: key === undefined || !labelsOnly ? undefined : ofProject ? 'project_cells' : 'label_cells',
    late: ofProject ? 'project_adjustments' : 'adjustment_labels',
    grain: 'day',
    key: key ?? keys.late[query.dimension] ?? '',
    bucket: `(day::timestamp at time zone 'UTC')`,
    where: 'true',
    filters: LOG_FILTERS,
  };
}

/** Up-rounded lower and down-rounded upper bound of the whole buckets in a window. */
export function wholeBuckets(
  query: UsageQuery,
  grain: 'hour' | 'day',
): { from: string; to: string } | undefined {
  const size = GRAIN_MICROS[grain];
  const from = query.fromMicros === undefined ? undefined : ceilTo(query.fromMicros, size);
  const to = query.toMicros === undefined ? undefined : (query.toMicros / size) * size;
  if (from !== undefined && (from > LATEST_MICROS || (to !== undefined && from >= to))) return undefined;
  return {
    from: from === undefined ? FAR_PAST : isoFromMicros(from),
    to: to === undefined ? FAR_FUTURE : isoFromMicros(to),
  };
}

/** The next whole bucket's beginning. */
export function ceilTo(micros: bigint, size: bigint): bigint {
  return ((micros + size - 1n) / size) * size;
}
