import type pg from 'pg';
import type { Database, Isolation, StatementHandle, Tenant, TransactionRole } from './client.js';
import { type CopiedRows, CopyOut } from './copyOut.js';

/** Values of a statement's parameters; a bigint is sent as its decimal text. */
export type SqlValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | Buffer
  | readonly (string | number | null)[];

/**
 * A handle that is restricted to one organization, the first parameter of every query function. Each statement runs in
 * a transaction under `app_rw` with the organization set, so row-level security holds; in addition the functions add
 * the predicate `org_id = $…`. Inside `transaction` all statements share one transaction.
 * A handle may also be restricted to one project and then sees only that project's rows. Functions that read events and
 * their totals add the predicate. Its statements run under `app_workspace`, which has privileges only on tables that
 * are restricted by project, so that a function without the predicate fails (docs/decisions/0029).
 */
export class OrgDb {
  readonly orgId: string;
  /** For maintenance of this organization's totals, which only `app_system` writes. */
  readonly database: Database;
  readonly #projectId: string | undefined;
  readonly #connection: StatementHandle | undefined;
  #statements = 0;

  constructor(
    database: Database,
    orgId: string,
    bound: { projectId?: string | undefined; connection?: StatementHandle } = {},
  ) {
    this.database = database;
    this.orgId = orgId;
    this.#projectId = bound.projectId;
    this.#connection = bound.connection;
  }

  /** The only project whose rows are read; undefined: the whole organization. */
  get projectId(): string | undefined {
    return this.#projectId;
  }

  /**
   * The whole organization's handle, for data that is stored by organization. @throws TypeError inside a project's
   * transaction.
   */
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

  /** Statements that this handle has sent. */
  get statements(): number {
    return this.#statements;
  }

  /** Runs `work` in one transaction; inside a transaction it joins that one. */
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
   * Runs statements across organizations as part of this organization's transaction, for decisions about the whole
   * instance that are stored together with the rest. `why` as for `unscoped`. No other statement may run in the
   * transaction meanwhile, because it would run under the other role.
   */
  async unscoped<T>(why: string, work: (system: SystemDb) => Promise<T>): Promise<T> {
    assertReason(why);
    return this.transaction(async (inside) => {
      const connection = inside.#connection as StatementHandle;
      await connection.query('set local role app_system');
      try {
        return await work(new SystemDb(connection));
      } finally {
        // Fails only in a failed transaction, in which nothing runs until a rollback restores the role.
        await connection.query(`set local role ${inside.#role}`).catch(() => undefined);
      }
    });
  }

  /** Runs `work` in a savepoint of the transaction, so that its failure undoes only its own changes. */
  async attempt<T>(work: (inside: OrgDb) => Promise<T>): Promise<{ given: T } | { thrown: unknown }> {
    return this.transaction(async (inside) => {
      const connection = inside.#connection as StatementHandle;
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

  /**
   * Rows as lines of COPY's text form: for exports, which only pass values on. Lines that begin behind `bytesMax` are
   * left out.
   */
  async copyRows(sql: string, values: readonly SqlValue[], bytesMax?: number): Promise<CopiedRows> {
    if (this.#connection) return copyRows(this.#connection, sql, values, bytesMax);
    return this.database.transactOne(this.#role, this.#tenant, (connection) =>
      copyRows(connection, sql, values, bytesMax),
    );
  }

  /** Runs one statement and returns the number of rows that it changed; `name` as for `rows`. */
  async run(sql: string, values: readonly SqlValue[] = [], name?: string): Promise<number> {
    return (await this.#run(statementOf(sql, values, name))).rowCount ?? 0;
  }

  #run(statement: pg.QueryConfig | pg.QueryArrayConfig): Promise<pg.QueryResult> {
    this.#statements += 1;
    return this.#connection
      ? this.#connection.query(statement)
      : this.database.transactOne(this.#role, this.#tenant, (connection) => connection.query(statement));
  }

  get #role(): TransactionRole {
    return this.#projectId === undefined ? 'app_rw' : 'app_workspace';
  }

  get #tenant(): Tenant {
    return { orgId: this.orgId, projectId: this.#projectId };
  }
}

/**
 * Runs the work of several organizations, one statement each, in one transaction. Each has its own handle, and its
 * statement runs with its organization set, so row-level security holds as in a transaction of its own. All is stored,
 * or nothing. Errors: SharedTransactionFailed names the organizations whose work failed; a second statement of one fails
 * with NeedsOwnTransaction.
 */
export function transactionForEach<T>(
  database: Database,
  orgIds: readonly string[],
  lockWaitMs: number,
  work: (inside: OrgDb, index: number) => Promise<T>,
): Promise<T[]> {
  return database.transactForEach(orgIds, lockWaitMs, (connection, index) =>
    work(new OrgDb(database, orgIds[index] as string, { connection }), index),
  );
}

/** Runs statements across organizations under `app_system`; the reason is the first argument so that readers see it. */
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

/** One transaction across organizations; only `unscoped` creates it. */
export class SystemDb {
  readonly #connection: StatementHandle;

  constructor(connection: StatementHandle) {
    this.#connection = connection;
  }

  /** `name` makes it a prepared statement of the connection, for statements that are planned often. */
  async rows<T>(sql: string, values: readonly SqlValue[] = [], name?: string): Promise<T[]> {
    return (await this.#connection.query(statementOf(sql, values, name))).rows as T[];
  }

  async run(sql: string, values: readonly SqlValue[] = [], name?: string): Promise<number> {
    const result = await this.#connection.query(statementOf(sql, values, name));
    return result.rowCount ?? 0;
  }
}

function copyRows(
  connection: StatementHandle,
  sql: string,
  values: readonly SqlValue[],
  bytesMax: number | undefined,
): Promise<CopiedRows> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | undefined) => (error ? reject(error) : resolve(copy.copied));
    const copy = new CopyOut(sql, values, done, bytesMax);
    connection.query(copy);
  });
}

function statementOf(text: string, values: readonly SqlValue[], name?: string): pg.QueryConfig {
  const statement = { text, values: values.map(toParameter) };
  return name === undefined ? statement : { name, ...statement };
}

function toParameter(value: SqlValue): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}

/**
 * Restricts a statement to the handle's project and pushes its value; empty for the organization (docs/decisions/0029).
 */
export function andOfProject(orgDb: OrgDb, values: SqlValue[], column = 'project_id'): string {
  return orgDb.projectId === undefined ? '' : ` and ${column} = $${values.push(orgDb.projectId)}`;
}

/** The database's present clock, microseconds since 1970, and not the transaction's start. */
export async function readClock(orgDb: OrgDb): Promise<bigint> {
  const [row] = await orgDb.rows<{ at: bigint }>('select clock_timestamp() as at', [], 'clock-read');
  if (!row) throw new Error('a clock answers');
  return row.at;
}
