import type pg from 'pg';
import type { Database, TransactionConnection } from './client.js';

const AS_TEXT = { getTypeParser: () => (text: string) => text } as unknown as pg.CustomTypesConfig;

/** Values that a statement's parameters take; a bigint goes as its decimal text. */
export type SqlValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | Buffer
  | readonly (string | number | null)[];

/**
 * A handle bound to one organization: what every query function takes first. Each statement runs in a transaction
 * under `app_rw` with the organization set, so row-level security holds; the functions add the predicate
 * `org_id = $…` besides. Inside `transaction` all statements share one.
 */
export class OrgDb {
  readonly orgId: string;
  /** For maintenance of this organization's totals, which only `app_system` writes. */
  readonly database: Database;
  readonly #connection: TransactionConnection | undefined;

  constructor(database: Database, orgId: string, connection?: TransactionConnection) {
    this.database = database;
    this.orgId = orgId;
    this.#connection = connection;
  }

  /** Runs `work` in one transaction; called inside one, it joins it. */
  async transaction<T>(
    work: (inside: OrgDb) => Promise<T>,
    isolation: 'read committed' | 'repeatable read' = 'read committed',
  ): Promise<T> {
    if (this.#connection) return work(this);
    return this.database.transact(
      'app_rw',
      this.orgId,
      (connection) => work(new OrgDb(this.database, this.orgId, connection)),
      isolation,
    );
  }

  /** Rows of one statement with `$1…` parameters. `name` makes it a prepared statement of the connection. */
  async rows<T>(sql: string, values: readonly SqlValue[] = [], name?: string): Promise<T[]> {
    const connection = this.#connection;
    if (!connection) return this.transaction((inside) => inside.rows<T>(sql, values, name));
    return runOn<T>(connection, sql, values, name);
  }

  /** Rows as Postgres writes them, each value its text or null: for exports, which only pass values on. */
  async textRows(sql: string, values: readonly SqlValue[], name: string): Promise<(string | null)[][]> {
    const connection = this.#connection;
    if (!connection) return this.transaction((inside) => inside.textRows(sql, values, name));
    const result = await connection.query({
      name,
      text: sql,
      values: values.map(toParameter),
      rowMode: 'array',
      types: AS_TEXT,
    });
    return result.rows as (string | null)[][];
  }

  /** Number of rows that a statement changed. */
  async run(sql: string, values: readonly SqlValue[] = []): Promise<number> {
    const connection = this.#connection;
    if (!connection) return this.transaction((inside) => inside.run(sql, values));
    const result = await connection.query(sql, values.map(toParameter));
    return result.rowCount ?? 0;
  }
}

/**
 * Statements across organizations, under `app_system`. Only named maintenance does this; the reason is the first
 * argument so that a reader of the call sees it.
 */
export async function unscoped<T>(
  database: Database,
  why: string,
  work: (system: SystemDb) => Promise<T>,
  isolation: 'read committed' | 'repeatable read' = 'read committed',
): Promise<T> {
  if (why.length < 8) throw new TypeError('say why the organization is left');
  return database.transact(
    'app_system',
    undefined,
    (connection) => work(new SystemDb(connection)),
    isolation,
  );
}

/** One transaction across organizations; made by `unscoped` only. */
export class SystemDb {
  readonly #connection: TransactionConnection;

  constructor(connection: TransactionConnection) {
    this.#connection = connection;
  }

  /** `name` makes it a prepared statement of the connection: for what is planned often and the same. */
  async rows<T>(sql: string, values: readonly SqlValue[] = [], name?: string): Promise<T[]> {
    return runOn<T>(this.#connection, sql, values, name);
  }

  async run(sql: string, values: readonly SqlValue[] = [], name?: string): Promise<number> {
    const text = { text: sql, values: values.map(toParameter) };
    const result = await this.#connection.query(name === undefined ? text : { name, ...text });
    return result.rowCount ?? 0;
  }
}

async function runOn<T>(
  connection: TransactionConnection,
  sql: string,
  values: readonly SqlValue[],
  name?: string,
): Promise<T[]> {
  const parameters = values.map(toParameter);
  const result = await connection.query(
    name === undefined ? { text: sql, values: parameters } : { name, text: sql, values: parameters },
  );
  return result.rows as T[];
}

function toParameter(value: SqlValue): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
