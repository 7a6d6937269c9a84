import type { Knex } from 'knex';
import type { OrgDb, SqlValue } from './orgDb.js';

/** One column of an entity: its SQL expression, and how the driver's value becomes the entity's. */
export interface Column<T> {
  /** Absent: the property's name in snake_case, without the unit `Micros`. */
  readonly sql: string | undefined;
  /** Absent: the driver's value is the entity's value (see db/client.ts for how values leave Postgres). */
  readonly read: ((value: never) => T) | undefined;
}

/** A column that the driver reads as `T`. `sql` is needed where the name or the expression differs. */
export function column<T>(sql?: string): Column<T> {
  return { sql, read: undefined };
}

/** A column whose driver value `read` converts. */
export function converted<T, Raw>(read: (value: Raw) => T, sql?: string): Column<T> {
  return { sql, read: read as (value: never) => T };
}

type Columns = Record<string, Column<unknown>>;

export type EntityOf<C extends Columns> = { [K in keyof C]: C[K] extends Column<infer T> ? T : never };

/** A table's columns, written once: the select list and the mapping of a row come from them. */
export interface Entity<T> {
  readonly table: string;
  /** The select list. Each expression carries the property's name, so a row needs no mapping of names. */
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

/** A page of a list. `after` holds the last row's values of the order, one for each column of it. */
export interface Page {
  limit: number;
  offset: number;
  after?: readonly SqlValue[] | undefined;
}

export interface ListQuery {
  /** Equality by column; undefined leaves a filter out. */
  where?: Record<string, string | number | boolean | null | undefined>;
  /** Conditions beyond equality, in Knex's terms. */
  and?: (query: Knex.QueryBuilder) => void;
  /** Columns with their cast (`created_at::timestamptz`), all in one direction; the last makes it unique. */
  order: readonly { column: string; type: string }[];
  direction: 'asc' | 'desc';
  page: Page;
}

/** One keyset page of an entity's rows of the handle's organization. */
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
