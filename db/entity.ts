import type { Knex } from 'knex';
import { isoFromMicros } from '../domain/period.js';
import type { OrgDb, SqlValue, SystemDb } from './orgDb.js';

/** One column of an entity: its SQL expression, and the conversion of the driver's value. */
export interface Column<T> {
  /** Absent: the property's name in snake_case, without the unit `Micros`. */
  readonly sql: string | undefined;
  /** Absent: the driver's value is unchanged (see db/client.ts for the driver's conversions). */
  readonly read: ((value: never) => T) | undefined;
}

/** A column that the driver reads as `T`. `sql` is needed where the name or the expression differs. */
export function column<T>(sql?: string): Column<T> {
  return { sql, read: undefined };
}

export function converted<T, Raw>(read: (value: Raw) => T, sql?: string): Column<T> {
  return { sql, read: read as (value: never) => T };
}

type Columns = Record<string, Column<unknown>>;

/** A table's columns, defined once: the select list and the conversion of rows derive from them. */
export interface Entity<T> {
  readonly table: string;
  /** The select list. Each expression has the property's name as alias, so rows need no mapping of names. */
  readonly columns: string;
  /** The select list with every plain column qualified by a table's alias, for joins. */
  columnsOf(alias: string): string;
  /** Converts the rows of a statement that selected `columns`. The rows may have further properties. */
  read<Row extends T = T>(rows: readonly Row[]): Row[];
}

const PLAIN = /^[a-z_][a-z0-9_]*$/;

export function defineEntity<T>(table: string, columns: { [K in keyof T]-?: Column<T[K]> }): Entity<T> {
  const entries = Object.entries(columns as Columns);
  const list = (prefix: string) =>
    entries
      .map(([name, { sql }]) => {
        const expression = sql ?? sqlNameOf(name);
        return `${PLAIN.test(expression) ? prefix + expression : expression} as "${name}"`;
      })
      .join(', ');
  const conversions = entries.flatMap(([name, { read }]) => (read ? [{ name, read }] : []));
  return {
    table,
    columns: list(''),
    columnsOf: (alias) => list(`${alias}.`),
    read: (rows) => {
      if (conversions.length === 0) return rows as never;
      return rows.map((row) => {
        const entity = { ...row } as Record<string, unknown>;
        for (const { name, read } of conversions) entity[name] = read(entity[name] as never);
        return entity as never;
      });
    },
  };
}

/** `createdAtMicros` → `created_at`: times are microseconds in code and timestamps in SQL. */
export function sqlNameOf(property: string): string {
  return property.replace(/Micros$/, '').replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The stored form of a property: times are microseconds in code and timestamps in SQL. */
function stored(property: string, value: SqlValue | undefined): SqlValue {
  return typeof value === 'bigint' && property.endsWith('Micros') ? isoFromMicros(value) : (value ?? null);
}

/**
 * Rows of the organization whose properties have these values; null equals null. `rest` adds conditions, an order or a
 * lock.
 */
export async function selectEntities<T>(
  orgDb: OrgDb,
  entity: Entity<T>,
  wanted: object,
  rest = '',
  name?: string,
): Promise<T[]> {
  const values: SqlValue[] = [orgDb.orgId];
  const where = Object.entries(wanted).map(([property, value]: [string, SqlValue]) =>
    value === null
      ? ` and ${sqlNameOf(property)} is null`
      : ` and ${sqlNameOf(property)} = $${values.push(stored(property, value))}`,
  );
  const sql = `select ${entity.columns} from ${entity.table} where org_id = $1${where.join('')} ${rest}`;
  return entity.read(await orgDb.rows<T>(sql, values, name));
}

export async function findEntity<T>(
  orgDb: OrgDb,
  entity: Entity<T>,
  wanted: object,
  rest?: string,
  name?: string,
): Promise<T | undefined> {
  return (await selectEntities(orgDb, entity, wanted, rest, name))[0];
}

/** The columns, values and parameters of a row to store; properties map to columns as in `defineEntity`. */
export function columnsOfRow(row: Record<string, SqlValue | undefined>): {
  names: string;
  values: SqlValue[];
  parameters: string;
} {
  const properties = Object.keys(row);
  return {
    names: properties.map(sqlNameOf).join(', '),
    values: properties.map((property) => stored(property, row[property])),
    parameters: properties.map((_, at) => `$${at + 1}`).join(', '),
  };
}

/** Stores one row, which includes its organization; undefined is stored as null. */
export function insertRow(
  inside: OrgDb | SystemDb,
  table: string,
  row: Record<string, SqlValue | undefined>,
): Promise<number> {
  const { names, values, parameters } = columnsOfRow(row);
  return inside.run(`insert into ${table} (${names}) values (${parameters})`, values);
}

/** A page of a list. `after` has the previous page's last values, one for each column of the order. */
interface Page {
  limit: number;
  offset: number;
  after?: readonly SqlValue[] | undefined;
}

interface ListQuery {
  where?: Record<string, string | number | boolean | null | undefined>;
  and?: (query: Knex.QueryBuilder) => void;
  /** Columns with their cast (`created_at::timestamptz`), all in one direction; the last makes the order unique. */
  order: readonly { column: string; type: string }[];
  direction: 'asc' | 'desc';
  page: Page;
}

export async function listEntities<T>(orgDb: OrgDb, entity: Entity<T>, query: ListQuery): Promise<T[]> {
  const { knex } = orgDb.database;
  const builder = knex(entity.table).select(knex.raw(entity.columns)).where('org_id', orgDb.orgId);
  for (const [name, value] of Object.entries(query.where ?? {}))
    if (value !== undefined) builder.where(name, value);
  query.and?.(builder);
  const { after, limit, offset } = query.page;
  if (after) {
    const columns = query.order.map(({ column: name }) => name).join(', ');
    const marks = query.order.map(({ type }) => `?::${type}`).join(', ');
    builder.whereRaw(`(${columns}) ${query.direction === 'asc' ? '>' : '<'} (${marks})`, [...after] as never);
  }
  for (const { column: name } of query.order) builder.orderBy(name, query.direction);
  const { sql, bindings } = builder.limit(limit).offset(offset).toSQL().toNative();
  return entity.read(await orgDb.rows<T>(sql, bindings as SqlValue[]));
}

/** A page of a list that is ordered by time and id; `after` has those of the previous page's last row. */
export interface TimePage {
  limit: number;
  offset: number;
  after?: { micros: bigint; id: string } | undefined;
}

export function listNewest<T>(
  orgDb: OrgDb,
  entity: Entity<T>,
  {
    page,
    time = 'created_at',
    idType = 'uuid',
    ...filter
  }: Pick<ListQuery, 'where' | 'and'> & { page: TimePage; time?: string; idType?: 'uuid' | 'text' },
): Promise<T[]> {
  return listEntities(orgDb, entity, {
    ...filter,
    order: [
      { column: time, type: 'timestamptz' },
      { column: 'id', type: idType },
    ],
    direction: 'desc',
    page: { ...page, after: page.after && [isoFromMicros(page.after.micros), page.after.id] },
  });
}
