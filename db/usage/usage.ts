import type { UsageView } from '../../domain/billing/periods.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros, LATEST_MICROS, MICROS_PER_DAY } from '../../domain/period.js';
import type { OrgDb, SqlValue } from '../orgDb.js';
import {
  bookedOnSql,
  DAILY_DIMENSIONS,
  DIMENSION_KEYS,
  MEASURE_NAMES,
  MEASURES,
  type RollupDimension,
  sumsOfMeasures,
  usageLogOfTimeSql,
  usageLogSql,
} from './usageLog.js';

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
  /** Calls whose cost is unknown and is 0 in the sums. */
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

/** Sums calls by one dimension: whole stored buckets, unfolded events and the window's edges, in one snapshot. */
export async function readUsage(inside: OrgDb, query: UsageQuery, books: Books): Promise<UsageResult> {
  // A project's handle sums only its calls.
  const bound = { ...query, filter: { ...query.filter, boundProjectId: inside.projectId } };
  const { sql, values } = usageSql(inside.orgId, bound, books);
  return fromUsageRows(await inside.rows<UsageRow>(sql, values));
}

export async function readFoldedXid(orgDb: OrgDb): Promise<number> {
  return (await readBooks(orgDb)).foldedXid;
}

export async function readBooks(orgDb: OrgDb): Promise<Books> {
  const [books] = await orgDb.rows<Books>(
    `select folded_xid as "foldedXid", projects_xid as "projectsXid", closed_until as "closedUntilMicros"
     from rollup_state where org_id = $1`,
    [orgDb.orgId],
  );
  return books ?? { foldedXid: 0, projectsXid: 0, closedUntilMicros: null };
}

interface UsageRow extends Omit<UsageGroup, 'key'> {
  isTotal: boolean;
  key: string | null;
}

function fromUsageRows(rows: readonly UsageRow[]): UsageResult {
  const [total, ...groups] = rows;
  if (!total?.isTotal) throw new Error('the grand total is always one row');
  const { key: _key, isTotal: _isTotal, firstSeenMicros: _first, lastSeenMicros: _last, ...totals } = total;
  return {
    totals,
    groups: groups.map(({ isTotal: _isTotal, key, ...group }) => ({ key: key ?? '', ...group })),
  };
}

/** Unfolded rows up to `rowsMax` of events and of copies; 0 when the last complete fold is younger than `freshSeconds`. */
export async function countUnfolded(
  orgDb: OrgDb,
  limits: { rowsMax: number; freshSeconds: number },
): Promise<number> {
  const [state] = await orgDb.rows<{ foldedXid: number; isFresh: boolean }>(
    `select folded_xid as "foldedXid", folded_at > now() - make_interval(secs => $2) as "isFresh" from rollup_state where org_id = $1`,
    [orgDb.orgId, limits.freshSeconds],
  );
  if (state?.isFresh) return 0;
  // The bound is a value and not a column of another table: for a value Postgres knows that few rows follow it.
  const unfolded = (table: string) =>
    `(select count(*) from (select from ${table} where org_id = $1 and ingest_xid >= $2 limit ${limits.rowsMax + 1}) u)`;
  const [rows] = await orgDb.rows<{ unfolded: number }>(
    `select ${unfolded('events')} + ${unfolded('event_adjustments')} as unfolded`,
    [orgDb.orgId, state?.foldedXid ?? 0],
  );
  return rows?.unfolded ?? 0;
}

interface FoldState {
  foldedXid: number;
  /** Whether no row is unfolded, so that the totals are complete. */
  isAll: boolean;
}

/**
 * Whether a read of the totals must also read the log, whose planning is expensive and mostly needless. Call it in the
 * read's snapshot.
 */
export async function readFoldState(orgDb: OrgDb): Promise<FoldState> {
  const [row] = await orgDb.rows<{ foldedXid: number; newestXid: number }>(
    // Reads the newest by one index lookup: for "does one exist from here on" Postgres estimates that a third of all
    // rows match.
    `select coalesce((select folded_xid from rollup_state where org_id = $1), 0)::bigint as "foldedXid", coalesce(greatest(
       (select max(ingest_xid) from events where org_id = $1),
       (select max(ingest_xid) from event_adjustments where org_id = $1)), -1)::bigint as "newestXid"`,
    [orgDb.orgId],
    'fold_state',
  );
  const { foldedXid, newestXid } = row ?? { foldedXid: 0, newestXid: -1 };
  return { foldedXid, isAll: newestXid < foldedXid };
}

/** Builds the statement of a usage sum: stored totals, unfolded rows, and the edges of the window. */

const dateOf = (micros: bigint) => isoFromMicros(micros).slice(0, 10);

const NOTHING = `select '', ${MEASURE_NAMES.map(() => '0').join(', ')}, now(), now() where $1::uuid is null`;

/** Builds one statement: parts of a sum, each with its rows, and the values that they refer to. */
class UsageStatement {
  readonly values: SqlValue[];
  readonly #query: UsageQuery;
  readonly #books: Books;
  readonly #view: UsageView;
  readonly #source: Source;
  readonly #whole: { from: string; to: string } | undefined;
  readonly #parts: string[] = [];

  constructor(orgId: string, query: UsageQuery, books: Books) {
    this.values = [orgId];
    this.#query = query;
    this.#books = books;
    // Without a closed month no row is late, and every view is the same.
    this.#view = books.closedUntilMicros === null ? { kind: 'now' } : (query.view ?? { kind: 'now' });
    this.#source = sourceOf(query);
    const bucketed = this.#source.table !== undefined || query.only === 'adjustments';
    this.#whole = bucketed ? wholeBuckets(query, this.#source.grain) : undefined;
    const { filter } = query;
    const isNow = this.#view.kind === 'now' && query.only === undefined;
    if (
      !isNow &&
      (filter.kind !== undefined || (this.#source.table === undefined && this.#source.key === ''))
    )
      throw new RangeError('what came late is not kept by this dimension and filter');
  }

  write(): { sql: string; values: SqlValue[] } {
    const { only, limit, offset } = this.#query;
    if (only === undefined) this.#addStored();
    const isClosed = this.#books.closedUntilMicros !== null;
    if (isClosed) this.#addStoredLate();
    if (isClosed || only === undefined) this.#addUnfolded();
    this.#addEdges();
    // A change of price alone has no calls, but must appear where it is booked.
    const shown = this.#view.kind === 'now' && only === undefined ? ['calls'] : MEASURE_NAMES;
    const sql = `
    with parts (key, ${MEASURE_NAMES.join(', ')}, first_seen, last_seen) as (${this.#parts.join(' union all ') || NOTHING})
    select grouping(key) = 1 as "isTotal", key, ${sumsOfMeasures()}, min(first_seen) as "firstSeenMicros", max(last_seen) as "lastSeenMicros"
    from parts group by grouping sets ((key), ())
    having grouping(key) = 1 or ${shown.map((name) => `sum(${name}) <> 0`).join(' or ')}
    order by "isTotal" desc, "costPico" desc, key
    limit ${this.#bind(limit + offset + 1)}`;
    return { sql, values: this.values };
  }

  #bind(value: SqlValue): string {
    return `$${this.values.push(value)}`;
  }

  #bindTime(micros: bigint | null | undefined, absent: string | null): string {
    return this.#bind(micros === undefined || micros === null ? absent : isoFromMicros(micros));
  }

  #filters(filters: Filters): string {
    return filters
      .flatMap(([name, column]) =>
        this.#query.filter[name] === undefined
          ? []
          : [` and ${column} = ${this.#bind(this.#query.filter[name] as string)}`],
      )
      .join('');
  }

  /** Adds whole buckets of the stored totals: everything that is booked at its own time. */
  #addStored(): void {
    const { table, key, bucket, where, filters } = this.#source;
    if (table === undefined || !this.#whole) return;
    const between = this.#between(bucket, this.#whole.from, this.#whole.to);
    this.#parts.push(`
      select ${key} as key, ${MEASURE_NAMES.join(', ')}, first_seen, last_seen from ${table}
      where org_id = $1 and ${where} and ${between}${this.#filters(filters)}`);
  }

  /**
   * Adds stored totals of late rows: by the day on which they are booked, or by their own bucket where the view counts
   * them there.
   */
  #addStoredLate(): void {
    const { late, key, bucket, where, filters } = this.#source;
    const isBooked = this.#view.kind === 'books';
    if (!isBooked && !this.#whole) return;
    const own = () => this.#between(bucket, this.#whole?.from ?? '', this.#whole?.to ?? '');
    const range = isBooked ? this.#bookedWithin() : `${own()}${this.#knownCondition()}`;
    const seen = isBooked ? 'null::timestamptz, null::timestamptz' : 'first_seen, last_seen';
    const shownKey = isBooked && this.#query.dimension === 'day' ? `to_char(booked_on, 'YYYY-MM-DD')` : key;
    this.#parts.push(`
      select ${shownKey} as key, ${MEASURE_NAMES.join(', ')}, ${seen} from ${late}
      where org_id = $1 and ${where} and ${range}${this.#filters(filters)}`);
  }

  #addUnfolded(): void {
    const view = this.#view.kind;
    if (this.#source.table === undefined && this.#query.only === undefined && view !== 'books') return;
    const { foldedXid, projectsXid } = this.#books;
    const folded = this.#source.late === 'project_adjustments' ? projectsXid : foldedXid;
    const log = () => usageLogSql(this.#bind(folded));
    const within =
      this.#whole && (() => this.#between('timestamp', this.#whole?.from ?? '', this.#whole?.to ?? ''));
    if (view === 'now' && this.#query.only === undefined) {
      if (within) this.#addRows(log(), within(), LOG_FILTERS, undefined);
      return;
    }
    if (view === 'books') {
      const own = within && this.#query.only === undefined ? `(booked_on is null and ${within()}) or ` : '';
      this.#addRows(log(), 'true', LOG_FILTERS, `${own}(booked_on is not null and ${this.#bookedWithin()})`);
      return;
    }
    if (within) this.#addRows(log(), within(), LOG_FILTERS, this.#rowCondition());
  }

  /** Adds the time between the window's ends and its whole buckets, from the rows themselves. */
  #addEdges(): void {
    const { fromMicros, toMicros } = this.#query;
    // Bound only where they are used: Postgres cannot infer the type of an unused parameter.
    const from = () => this.#bindTime(fromMicros, FAR_PAST);
    const to = () => this.#bindTime(toMicros, FAR_FUTURE);
    const whole = this.#whole;
    if (!whole) {
      this.#addEdge(from, to, fromMicros);
      return;
    }
    if (fromMicros !== undefined) this.#addEdge(from, () => this.#bind(whole.from), fromMicros);
    if (toMicros === undefined) return;
    const size = GRAIN_MICROS[this.#source.grain];
    this.#addEdge(() => this.#bind(whole.to), to, (toMicros / size) * size);
  }

  #addEdge(low: () => string, high: () => string, lowMicros: bigint | undefined): void {
    const closed = this.#books.closedUntilMicros;
    const isOpen = closed === null || (lowMicros !== undefined && lowMicros >= closed);
    if (this.#query.only === undefined && (this.#view.kind === 'now' || isOpen)) {
      const live = `select 1::smallint as sign, * from events where org_id = $1 and superseded_by is null
        and timestamp >= ${low()}::timestamptz and timestamp < ${high()}::timestamptz`;
      this.#addRows(live, 'true', EVENT_FILTERS, undefined);
    } else if (this.#query.only === undefined || (!isOpen && this.#view.kind !== 'books')) {
      this.#addRows(usageLogOfTimeSql(low(), high()), 'true', LOG_FILTERS, this.#rowCondition());
    }
  }

  /** Condition of the rows that count at their own time. */
  #rowCondition(): string {
    const late = `booked_on is not null${this.#knownCondition()}`;
    if (this.#query.only !== undefined) return late;
    return this.#view.kind === 'books' ? 'booked_on is null' : `booked_on is null or (${late})`;
  }

  #knownCondition(): string {
    return this.#view.kind === 'known' ? ` and booked_on < ${this.#bind(this.#view.beforeDay)}::date` : '';
  }

  /** Condition of days whose beginning lies in the window. */
  #bookedWithin(): string {
    const { fromMicros, toMicros } = this.#query;
    const day = (micros: bigint | undefined, absent: string) =>
      this.#bind(
        micros === undefined || micros > LATEST_MICROS - MICROS_PER_DAY
          ? absent
          : dateOf(ceilTo(micros, MICROS_PER_DAY)),
      );
    return `booked_on >= ${day(fromMicros, FAR_PAST)}::date and booked_on < ${day(toMicros, FAR_FUTURE)}::date`;
  }

  #between(column: string, from: string, to: string): string {
    return `${column} >= ${this.#bind(from)}::timestamptz and ${column} < ${this.#bind(to)}::timestamptz`;
  }

  /** Sums rows of the log, or of signed events; `booked` is a condition on the day on which a row is booked. */
  #addRows(rows: string, where: string, filters: Filters, booked: string | undefined): void {
    const { dimension } = this.#query;
    const own = rowKey(dimension);
    const isBooked = this.#view.kind === 'books' && booked !== undefined;
    const key = isBooked && dimension === 'day' ? `coalesce(to_char(booked_on, 'YYYY-MM-DD'), ${own})` : own;
    const seen = isBooked ? ' filter (where booked_on is null)' : '';
    const bookedOn =
      booked === undefined
        ? ''
        : `, ${bookedOnSql(this.#bindTime(this.#books.closedUntilMicros, null))} as booked_on`;
    this.#parts.push(`
      select ${key} as key, ${MEASURES}, min(timestamp)${seen} as first_seen, max(timestamp)${seen} as last_seen
      from (select *${bookedOn} from (${rows}) entries where status <> 'blocked' and ${where}${this.#filters(filters)}) log
      ${booked === undefined ? '' : `where ${booked}`} group by 1`);
  }
}

/** The statement that sums usage, and its values. Its rows are the grand total, then one for each key. */
export function usageSql(
  orgId: string,
  query: UsageQuery,
  books: Books,
): { sql: string; values: SqlValue[] } {
  return new UsageStatement(orgId, query, books).write();
}

/** The supported queries of usage, and the stored totals that answer them. */

export type UsageDimension = Exclude<RollupDimension, 'source'> | 'day';

export interface UsageFilter {
  provider?: string | undefined;
  model?: string | undefined;
  teamId?: string | undefined;
  feature?: string | undefined;
  sessionId?: string | undefined;
  projectId?: string | undefined;
  /** The handle's project, in addition to a requested one. */
  boundProjectId?: string | undefined;
  kind?: string | undefined;
}

export interface UsageQuery {
  /** `month`: the calls' own months, independent of when they are booked. */
  dimension: UsageDimension | 'month';
  filter: UsageFilter;
  /** Half-open; an absent side is unbounded. */
  fromMicros: bigint | undefined;
  toMicros: bigint | undefined;
  limit: number;
  offset: number;
  /** Absent: every call at its own time, as known now. */
  view?: UsageView;
  /** Only rows that came after their month was closed. */
  only?: 'adjustments';
}

export interface Books {
  /** Everything below this transaction is in the totals. */
  foldedXid: number;
  /** The same for project totals. */
  projectsXid: number;
  /** End of the last closed month; null: none is closed. */
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
/** Columns by dimension in the totals by label, and those that only the totals of late rows have. */
const LABEL_KEYS = { stored: CELL_KEYS, late: { session: 'session_id' } as Keys };
const PROJECT_KEYS = {
  stored: { ...CELL_KEYS, project: 'project_id' } as Keys,
  late: { session: 'session_id', user: 'user_id' } as Keys,
};

const TIME_FORMATS = { day: 'YYYY-MM-DD', month: 'YYYY-MM' } as const;

function isTime(dimension: UsageDimension | 'month'): dimension is 'day' | 'month' {
  return dimension === 'day' || dimension === 'month';
}

export function rowKey(dimension: UsageDimension | 'month'): string {
  if (!isTime(dimension)) return DIMENSION_KEYS[dimension];
  return `to_char(timestamp at time zone 'UTC', '${TIME_FORMATS[dimension]}')`;
}

export interface Source {
  table: 'usage_rollups' | 'label_cells' | 'project_cells' | undefined;
  late: 'adjustment_rollups' | 'adjustment_labels' | 'project_adjustments';
  grain: 'hour' | 'day';
  key: string;
  bucket: string;
  where: string;
  filters: Filters;
}

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
    // Without a suitable total, only the events answer the query.
    table: key === undefined || !labelsOnly ? undefined : ofProject ? 'project_cells' : 'label_cells',
    late: ofProject ? 'project_adjustments' : 'adjustment_labels',
    grain: 'day',
    key: key ?? keys.late[query.dimension] ?? '',
    bucket: `(day::timestamp at time zone 'UTC')`,
    where: 'true',
    filters: LOG_FILTERS,
  };
}

/** Start of the first and end of the last whole bucket in a window. */
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

export function ceilTo(micros: bigint, size: bigint): bigint {
  return ((micros + size - 1n) / size) * size;
}
