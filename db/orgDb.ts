import type pg from 'pg';
import type { Database, Isolation, Tenant, TransactionConnection, TransactionRole } from './client.js';

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
 *
 * One that is bound to a project besides sees that project's rows alone. Functions that read events and their totals
 * add the predicate; its statements run under `app_workspace`, which has no privilege on a table that is not limited
 * to a project, so that a function that was not made for it fails (docs/decisions/0029).
 */
export class OrgDb {
  readonly orgId: string;
  /** For maintenance of this organization's totals, which only `app_system` writes. */
  readonly database: Database;
  readonly #projectId: string | undefined;
  readonly #connection: TransactionConnection | undefined;

  constructor(
    database: Database,
    orgId: string,
    bound: { projectId?: string | undefined; connection?: TransactionConnection } = {},
  ) {
    this.database = database;
    this.orgId = orgId;
    this.#projectId = bound.projectId;
    this.#connection = bound.connection;
  }

  /** The one project whose rows are read; undefined: the whole organization. */
  get projectId(): string | undefined {
    return this.#projectId;
  }

  /** The whole organization's handle, for what is kept by organization. @throws TypeError inside a project's transaction. */
  leaveProject(why: string): OrgDb {
    assertReason(why);
    if (this.#projectId === undefined) return this;
    if (this.#connection) throw new TypeError('the transaction of a project sees nothing beyond it');
    return new OrgDb(this.database, this.orgId);
  }

  /** Whether its statements share a transaction, which holds a connection and may hold an older snapshot. */
  get isInTransaction(): boolean {
    return this.#connection !== undefined;
  }

  /** Runs `work` in one transaction; called inside one, it joins it. */
  async transaction<T>(
    work: (inside: OrgDb) => Promise<T>,
    isolation: Isolation = 'read committed',
  ): Promise<T> {
    if (this.#connection) return work(this);
    return this.database.transact(
      this.#role,
      this.#tenant,
      (connection) => work(new OrgDb(this.database, this.orgId, { projectId: this.#projectId, connection })),
      isolation,
    );
  }

  /**
   * Statements across organizations, as a part of this organization's transaction: for what must be decided over the
   * whole instance and stored together with the rest. `why` as for `unscoped`. Nothing else may run in the transaction
   * meanwhile: it would run under the other role.
   */
  async unscoped<T>(why: string, work: (system: SystemDb) => Promise<T>): Promise<T> {
    assertReason(why);
    return this.transaction(async (inside) => {
      const connection = inside.#connection as TransactionConnection;
      await connection.query('set local role app_system');
      try {
        return await work(new SystemDb(connection));
      } finally {
        // Fails only in a transaction that has failed, in which nothing runs until a rollback takes the role back.
        await connection.query(`set local role ${inside.#role}`).catch(() => undefined);
      }
    });
  }

  /** Runs `work` in a savepoint of the transaction, so that its failure undoes it alone. */
  async attempt<T>(work: (inside: OrgDb) => Promise<T>): Promise<{ given: T } | { thrown: unknown }> {
    return this.transaction(async (inside) => {
      const connection = inside.#connection as TransactionConnection;
      await connection.query('savepoint attempt');
      try {
        const given = await work(inside);
        await connection.query('release savepoint attempt');
        return { given };
      } catch (thrown) {
        await connection.query('rollback to savepoint attempt');
        return { thrown };
      }
    });
  }

  /** Rows of one statement with `$1…` parameters. `name` makes it a prepared statement of the connection. */
  async rows<T>(sql: string, values: readonly SqlValue[] = [], name?: string): Promise<T[]> {
    return (await this.#run(statementOf(sql, values, name))).rows as T[];
  }

  /** Rows as Postgres writes them, each value its text or null: for exports, which only pass values on. */
  async textRows(sql: string, values: readonly SqlValue[], name?: string): Promise<(string | null)[][]> {
    const asTexts = { rowMode: 'array' as const, types: AS_TEXT };
    const result = await this.#run({ ...statementOf(sql, values, name), ...asTexts });
    return result.rows as (string | null)[][];
  }

  async run(sql: string, values: readonly SqlValue[] = []): Promise<number> {
    return (await this.#run(statementOf(sql, values))).rowCount ?? 0;
  }

  #run(statement: pg.QueryConfig | pg.QueryArrayConfig): Promise<pg.QueryResult> {
    return this.#connection
      ? this.#connection.query(statement)
      : this.database.transactOne(this.#role, this.#tenant, statement);
  }

  get #role(): TransactionRole {
    return this.#projectId === undefined ? 'app_rw' : 'app_workspace';
  }

  get #tenant(): Tenant {
    return { orgId: this.orgId, projectId: this.#projectId };
  }
}

/** Statements across organizations, under `app_system`; the reason comes first so that a reader of the call sees it. */
export async function unscoped<T>(
  database: Database,
  why: string,
  work: (system: SystemDb) => Promise<T>,
  isolation: Isolation = 'read committed',
): Promise<T> {
  assertReason(why);
  return database.transact(
    'app_system',
    undefined,
    (connection) => work(new SystemDb(connection)),
    isolation,
  );
}

function assertReason(why: string): void {
  if (why.length < 8) throw new TypeError('say why the organization, or the project, is left');
}

/** One transaction across organizations; made by `unscoped` only. */
export class SystemDb {
  readonly #connection: TransactionConnection;

  constructor(connection: TransactionConnection) {
    this.#connection = connection;
  }

  /** `name` makes it a prepared statement of the connection: for what is planned often and the same. */
  async rows<T>(sql: string, values: readonly SqlValue[] = [], name?: string): Promise<T[]> {
    return (await this.#connection.query(statementOf(sql, values, name))).rows as T[];
  }

  async run(sql: string, values: readonly SqlValue[] = [], name?: string): Promise<number> {
    const result = await this.#connection.query(statementOf(sql, values, name));
    return result.rowCount ?? 0;
  }
}

function statementOf(text: string, values: readonly SqlValue[], name?: string): pg.QueryConfig {
  const statement = { text, values: values.map(toParameter) };
  return name === undefined ? statement : { name, ...statement };
}

function toParameter(value: SqlValue): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}

/** Restricts a statement to the handle's project and pushes its value; empty for the organization (docs/decisions/0029). */
export function andOfProject(orgDb: OrgDb, values: SqlValue[], column = 'project_id'): string {
  return orgDb.projectId === undefined ? '' : ` and ${column} = $${values.push(orgDb.projectId)}`;
}

/** The database's clock at this moment, microseconds since 1970: not the time at which the transaction began. */
export async function readClock(orgDb: OrgDb): Promise<bigint> {
  const [row] = await orgDb.rows<{ at: bigint }>('select clock_timestamp() as at', [], 'clock-read');
  if (!row) throw new Error('a clock answers');
  return row.at;
}
