import type { UsageView } from '../../domain/billing/periods/asOf.js';
import { isoFromMicros, LATEST_MICROS, MICROS_PER_DAY } from '../../domain/period.js';
import type { SqlValue } from '../orgDb.js';
import {
  bookedOnSql,
  MEASURE_NAMES,
  MEASURES,
  sumsOfMeasures,
  usageLogOfTimeSql,
  usageLogSql,
} from './usageLog.js';
import {
  type Books,
  ceilTo,
  EVENT_FILTERS,
  FAR_FUTURE,
  FAR_PAST,
  type Filters,
  GRAIN_MICROS,
  LOG_FILTERS,
  rowKey,
  type Source,
  sourceOf,
  type UsageQuery,
  wholeBuckets,
} from './usageQuery.js';

/** The statement behind a sum of usage: stored totals, what is not in them yet, and the edges of the window. */

const dateOf = (micros: bigint) => isoFromMicros(micros).slice(0, 10);

/** No rows, in the columns of a part. */
const NOTHING = `select '', ${MEASURE_NAMES.map(() => '0').join(', ')}, now(), now() where $1::uuid is null`;

/** Writes one statement: parts of a sum, each with its own rows, and the values that they name. */
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
    // Without a closed month nothing is late, and every view is the same.
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
    // A change of price alone is no call, yet has to be seen where it is booked.
    const shown = this.#view.kind === 'now' && only === undefined ? ['calls'] : MEASURE_NAMES;
    const sql = `
    with parts (key, ${MEASURE_NAMES.join(', ')}, first_seen, last_seen) as (${this.#parts.join(' union all ') || NOTHING})
    select grouping(key) = 1 as is_total, key, ${sumsOfMeasures()}, min(first_seen) as first_seen, max(last_seen) as last_seen
    from parts group by grouping sets ((key), ())
    having grouping(key) = 1 or ${shown.map((name) => `sum(${name}) <> 0`).join(' or ')}
    order by is_total desc, cost_usd desc, key
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

  /** Whole buckets of the stored totals: everything that is booked at its own time. */
  #addStored(): void {
    const { table, key, bucket, where, filters } = this.#source;
    if (table === undefined || !this.#whole) return;
    const between = this.#between(bucket, this.#whole.from, this.#whole.to);
    this.#parts.push(`
      select ${key} as key, ${MEASURE_NAMES.join(', ')}, first_seen, last_seen from ${table}
      where org_id = $1 and ${where} and ${between}${this.#filters(filters)}`);
  }

  /** Stored totals of what came late: by the day on which it is booked, or, where it counts there, by its own bucket. */
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

  /** Rows that no total has yet. */
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

  /** The time between the window's ends and its whole buckets, from the rows themselves. */
  #addEdges(): void {
    const { fromMicros, toMicros } = this.#query;
    // Bound only where they are used: Postgres cannot tell the type of a parameter that stands nowhere.
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

  /** Which rows count at their own time. */
  #rowCondition(): string {
    const late = `booked_on is not null${this.#knownCondition()}`;
    if (this.#query.only !== undefined) return late;
    return this.#view.kind === 'books' ? 'booked_on is null' : `booked_on is null or (${late})`;
  }

  #knownCondition(): string {
    return this.#view.kind === 'known' ? ` and booked_on < ${this.#bind(this.#view.beforeDay)}::date` : '';
  }

  /** Days whose beginning lies in the window. */
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

  /** Sums rows of the log, or of events with a sign; `booked` is a condition on the day on which a row is booked. */
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

/** The statement that sums usage, and its values. Its rows are one of the grand total, then one for each key. */
export function usageSql(
  orgId: string,
  query: UsageQuery,
  books: Books,
): { sql: string; values: SqlValue[] } {
  return new UsageStatement(orgId, query, books).write();
}
