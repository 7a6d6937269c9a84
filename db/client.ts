import knex, { type Knex } from 'knex';
import pg from 'pg';
import { DomainError } from '../domain/errors.js';
import { isUuidText } from '../domain/ids.js';
import { parseScaled } from '../domain/money.js';
import { isOfOneStatement, translatePgError } from './pgErrors.js';
import { Turns } from './turns.js';

/** Fraction digits of every numeric that the driver returns as a bigint. */
export const NUMERIC_SCALE = 12;

const OID = { int8: 20, date: 1082, timestamp: 1114, timestamptz: 1184, numeric: 1700 } as const;
const MICROS_PER_SECOND = 1_000_000n;

/**
 * Conversion of values from Postgres: int8 as a number (refused beyond 2^53), numeric as a bigint scaled by 1e12
 * (dollars as pico-dollars), timestamptz as bigint microseconds (a Date would lose three digits), date as its text.
 */
const parsers: Record<number, (text: string) => unknown> = {
  [OID.int8]: parseSafeInteger,
  [OID.date]: (text) => text,
  [OID.timestamp]: parseTimestampMicros,
  [OID.timestamptz]: parseTimestampMicros,
  [OID.numeric]: parseNumeric,
};

export function parseSafeInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`int8 beyond 2^53: ${text}`);
  return value;
}

function parseNumeric(text: string): bigint {
  const value = parseScaled(text, NUMERIC_SCALE);
  if (value === undefined) throw new RangeError(`not a finite numeric: ${text}`);
  return value;
}

/** `2026-01-02 03:04:05.678901+00` → microseconds. The sessions of `openDatabase` run in UTC. */
export function parseTimestampMicros(text: string): bigint {
  const [whole = '', fraction = ''] = text.replace(/\+00(?::?00)?$/, '').split('.');
  const millis = Date.parse(`${whole.replace(' ', 'T')}Z`);
  if (Number.isNaN(millis)) throw new RangeError(`not a UTC timestamp: ${text}`);
  return BigInt(millis / 1000) * MICROS_PER_SECOND + BigInt(fraction.padEnd(6, '0').slice(0, 6));
}

const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    return parsers[oid] ?? pg.types.getTypeParser(oid, format as 'text');
  },
} as pg.CustomTypesConfig;

export interface DatabaseOptions {
  url: string;
  /** Most connections of this process. */
  poolMax: number;
  applicationName: string;
  /** Time after which a statement is cancelled, milliseconds; the answer is then 503. */
  statementTimeoutMs: number;
  /** Default: WAIT_LIMIT_MS. */
  waitLimitMs?: number;
}

/**
 * Longest wait of a request for a free connection, and of a statement for a lock, before it fails with a request to
 * retry.
 */
const WAIT_LIMIT_MS = 2_000;

/** The process's connections. Code outside db/ uses them only through `OrgDb` and `unscoped`. */
export class Database {
  readonly knex: Knex;
  readonly options: DatabaseOptions;
  readonly #settings: string;
  #storageFullAtMs: number | undefined;

  constructor(options: DatabaseOptions) {
    this.options = options;
    const waitLimitMs = options.waitLimitMs ?? WAIT_LIMIT_MS;
    this.#settings = `set local statement_timeout = ${options.statementTimeoutMs}; set local lock_timeout = ${waitLimitMs};`;
    this.knex = knex({
      client: 'pg',
      connection: {
        connectionString: options.url,
        application_name: options.applicationName,
        keepAlive: true,
        connectionTimeoutMillis: waitLimitMs,
        types,
        // Statements are sent without waiting for earlier answers (docs/decisions/0042).
        pipeline: true,
      } as Knex.PgConnectionConfig,
      pool: {
        min: 0,
        max: options.poolMax,
        idleTimeoutMillis: 30_000,
        afterCreate: (connection: pg.PoolClient, done: (error: unknown, connection: unknown) => void) =>
          prepareSession(connection).then(
            () => done(null, connection),
            (error: unknown) => done(error, connection),
          ),
      },
      acquireConnectionTimeout: waitLimitMs,
      // The error's message would contain the statement with its values.
      compileSqlOnError: false,
      // The next statement reports a lost connection; knex's own log lines would not be JSON.
      log: { warn: () => undefined, error: () => undefined },
    });
  }

  /**
   * Runs `work` in one transaction under a role, with the tenant if there is one. The message that opens the
   * transaction and sets everything is sent with the first statement, so row-level security costs no round trip.
   * Temporary failures are thrown as DomainError service_unavailable or storage_full.
   */
  async transact<T>(
    role: TransactionRole,
    tenant: Tenant | undefined,
    work: (connection: TransactionConnection) => Promise<T>,
    isolation: Isolation = 'read committed',
  ): Promise<T> {
    return this.#withConnection(async (connection) => {
      sendTogether(connection);
      const opened = connection.query(this.#begin(connection, role, tenant, isolation));
      // Awaited below; until then its failure must not crash the process.
      opened.catch(() => undefined);
      try {
        const result = await work(connection);
        await opened;
        assertCommitted(await connection.query('commit'));
        return result;
      } catch (error) {
        const first = await opened.then(
          () => error,
          (why: unknown) => why,
        );
        await connection.query('rollback').catch(() => undefined);
        throw first;
      }
    });
  }

  /** `transact` for a transaction of the one statement that `send` sends at once: one round trip. A failed statement is
   * rolled back. */
  async transactOne<T>(
    role: TransactionRole,
    tenant: Tenant | undefined,
    send: (connection: TransactionConnection) => Promise<T>,
  ): Promise<T> {
    return this.#withConnection(async (connection) => {
      sendTogether(connection);
      const answers = await Promise.allSettled([
        connection.query(this.#begin(connection, role, tenant, 'read committed')),
        send(connection),
        connection.query('commit'),
      ]);
      for (const answer of answers) if (answer.status === 'rejected') throw answer.reason;
      const [, sent, ended] = answers as Fulfilled<[unknown, Awaited<T>, pg.QueryResult]>;
      assertCommitted(ended.value);
      return sent.value;
    });
  }

  /**
   * Runs one statement of each of several organizations in one transaction under `app_rw`, which share its opening, its
   * commit and its two round trips. Each is sent with its own organization, by the handle that `work` receives. A
   * statement that waits longer than `lockWaitMs` for a lock fails, because the others wait for it. Error:
   * SharedTransactionFailed where the work of some failed; nothing is stored then.
   */
  async transactForEach<T>(
    orgIds: readonly string[],
    lockWaitMs: number,
    work: (handle: StatementHandle, index: number) => Promise<T>,
  ): Promise<T[]> {
    return this.#withConnection(async (connection) => {
      sendTogether(connection);
      const begin = this.#begin(connection, 'app_rw', undefined, 'read committed');
      const opened = connection.query(`${begin} set local lock_timeout = ${lockWaitMs};`);
      const works: Promise<T>[] = [];
      const turns = new Turns();
      for (const [index, orgId] of orgIds.entries()) {
        works.push(work(oneStatement(connection, orgId), index));
        if (!turns.isOver()) continue;
        // Awaited below; until then their failures must not crash the process.
        for (const promise of [opened, ...works]) promise.catch(() => undefined);
        await turns.next();
        sendTogether(connection);
      }
      const [opening, ...answers] = await Promise.allSettled([opened, ...works]);
      try {
        if (opening.status === 'rejected') throw opening.reason;
        const values = valuesOfAll(answers);
        assertCommitted(await connection.query('commit'));
        return values;
      } catch (error) {
        await connection.query('rollback').catch(() => undefined);
        throw error;
      }
    });
  }

  #begin(
    connection: TransactionConnection,
    role: TransactionRole,
    tenant: Tenant | undefined,
    isolation: Isolation,
  ): string {
    let scope = isPooled(connection) ? SETTINGS_OF_TRANSACTION : '';
    if (tenant !== undefined) scope += `set local app.org_id = '${assertUuid(tenant.orgId)}';`;
    // A project is arbitrary text of a client, so it is sent as a quoted literal: SET takes no parameters.
    if (tenant?.projectId !== undefined)
      scope += `set local app.project_id = ${pg.escapeLiteral(tenant.projectId)};`;
    return `begin isolation level ${isolation}; set local role ${role}; ${scope} ${this.#settings}`;
  }

  async #withConnection<T>(work: (connection: TransactionConnection) => Promise<T>): Promise<T> {
    let connection: TransactionConnection | undefined;
    try {
      connection = (await this.knex.client.acquireConnection()) as TransactionConnection;
      return await work(connection);
    } catch (error) {
      const translated = translatePgError(error);
      if (translated instanceof DomainError && translated.code === 'storage_full')
        this.#storageFullAtMs = performance.now();
      throw translated;
    } finally {
      if (connection) await this.knex.client.releaseConnection(connection);
    }
  }

  /** Time of the last statement that failed because the disk was full, as performance.now(); undefined: none. */
  get storageFullAtMs(): number | undefined {
    return this.#storageFullAtMs;
  }

  async close(): Promise<void> {
    await this.knex.destroy();
  }
}

/** The receiver of statements: a connection, or one organization's part of a shared transaction. */
export type StatementHandle = Pick<TransactionConnection, 'query'>;

/** A transaction of several organizations cannot hold what one of them has to do: it needs more than one statement. */
export class NeedsOwnTransaction extends Error {}

/** A transaction of several organizations was rolled back because of some of them. */
export class SharedTransactionFailed extends Error {
  /** Places of the organizations whose own work failed; the others have no part in it. */
  readonly indexes: ReadonlySet<number>;

  constructor(indexes: ReadonlySet<number>, cause: unknown) {
    super('a transaction of several organizations failed', { cause });
    this.indexes = indexes;
  }
}

/**
 * A handle for the one statement of an organization. The organization is set immediately before it, in the same turn of
 * the event loop, so that no other statement comes between. It refuses a second statement, and texts without values,
 * which could hold several commands: only statements of one command cannot change the organization or the role.
 */
function oneStatement(connection: TransactionConnection, orgId: string): StatementHandle {
  let isUsed = false;
  const query = (statement: unknown): Promise<pg.QueryResult> => {
    if (isUsed || !isSingleCommand(statement))
      return Promise.reject(
        new NeedsOwnTransaction('an organization shares a transaction with one statement'),
      );
    isUsed = true;
    // Its failure fails the statement behind it too, which reports it.
    connection.query(`set local app.org_id = '${assertUuid(orgId)}'`).catch(() => undefined);
    return connection.query(statement);
  };
  return { query: query as TransactionConnection['query'] };
}

/** Whether the driver sends the statement in the protocol's extended form, which has one command. */
function isSingleCommand(statement: unknown): statement is pg.QueryConfig {
  if (typeof statement !== 'object' || statement === null || !('text' in statement)) return false;
  return 'values' in statement && Array.isArray(statement.values) && statement.values.length > 0;
}

/** The values of all works. @throws SharedTransactionFailed, or the reason why the whole transaction failed. */
function valuesOfAll<T>(answers: readonly PromiseSettledResult<T>[]): T[] {
  const reasons = answers.flatMap((answer, index) =>
    answer.status === 'rejected' ? [{ index, reason: answer.reason as unknown }] : [],
  );
  const own = reasons.filter(({ reason }) => isOfOneStatement(reason));
  if (own.length > 0)
    throw new SharedTransactionFailed(new Set(own.map(({ index }) => index)), own[0]?.reason);
  if (reasons.length > 0) throw reasons[0]?.reason;
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
}

type Fulfilled<T extends unknown[]> = { [K in keyof T]: PromiseFulfilledResult<T[K]> };

/**
 * Postgres answers the commit of a failed transaction with ROLLBACK and without an error.
 * @throws Error where nothing was stored, although the work hid the failure of its statement.
 */
function assertCommitted({ command }: pg.QueryResult): void {
  if (command !== 'COMMIT')
    throw new Error(
      `nothing is stored: a statement of the transaction failed and its error was ignored (${command})`,
    );
}

/** Sends everything that is written to the connection in this turn of the event loop in one packet. */
function sendTogether(connection: TransactionConnection): void {
  const { stream } = connection.connection;
  stream.cork();
  process.nextTick(() => stream.uncork());
}

/** `app_workspace` reads one project's rows and the organization's rows that those need; it cannot write. */
export type TransactionRole = 'app_rw' | 'app_system' | 'app_workspace';

export interface Tenant {
  orgId: string;
  /** Only with `app_workspace`: the one project whose rows it reads. */
  projectId?: string | undefined;
}

export type Isolation = 'read committed' | 'repeatable read';

/** The pg client of one transaction. */
export type TransactionConnection = pg.PoolClient;

function assertUuid(value: string): string {
  if (!isUuidText(value)) throw new TypeError('an organization id is a lower-case uuid');
  return value;
}

export function openDatabase(options: DatabaseOptions): Database {
  return new Database(options);
}

/** Settings of every statement, regardless of the database's defaults. */
const SETTINGS: readonly (readonly [name: string, value: string])[] = [
  // Times are parsed as UTC in this form (parseTimestampMicros).
  ['timezone', 'UTC'],
  ['datestyle', 'ISO, YMD'],
  // Starting parallel workers takes longer than our reads, and would take the cores of other requests.
  ['max_parallel_workers_per_gather', '0'],
];

/** For the message that opens a transaction on a connection without session state. */
export const SETTINGS_OF_TRANSACTION = SETTINGS.map(
  ([name, value]) => `set local ${name} = '${value}';`,
).join(' ');

/**
 * Determines whether the connection is to Postgres itself: then its process id is the one that Postgres sent at connect
 * time, and the settings are made for the whole session, in one round trip. They are not connection parameters, because
 * a pooler refuses or forgets those.
 */
const PREPARE = `select pg_backend_pid() = $1 as is_direct, case when pg_backend_pid() = $1 then
  ${SETTINGS.map(([name, value]) => `set_config('${name}', '${value}', false)`).join(' || ')} end as made`;

const pooled = new WeakSet<object>();

/**
 * Through a transaction pooler no state outlasts a transaction, so settings and statement names are sent with each one.
 */
export async function prepareSession(
  connection: pg.ClientBase & { processID?: number | null },
): Promise<void> {
  const { rows } = await connection.query<{ is_direct: boolean }>({
    text: PREPARE,
    values: [connection.processID ?? 0],
  });
  if (rows[0]?.is_direct) return;
  pooled.add(connection);
  withoutNames(connection);
}

/** Whether Postgres itself answers at an address, and not a pooler: session locks and LISTEN need a session. */
export async function reachesPostgres(url: string): Promise<boolean> {
  const client: pg.Client & { processID?: number | null } = new pg.Client({
    connectionString: url,
    application_name: 'trueup-start',
  });
  await client.connect();
  try {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    return rows[0]?.pid === client.processID;
  } finally {
    await client.end();
  }
}

export function isPooled(connection: object): boolean {
  return pooled.has(connection);
}

function withoutNames(connection: pg.ClientBase): void {
  const query = connection.query.bind(connection) as (...all: unknown[]) => unknown;
  const nameless = (first: unknown, ...rest: unknown[]) =>
    query(isNamed(first) ? { ...first, name: undefined } : first, ...rest);
  Object.assign(connection, { query: nameless });
}

/** Whether it is a statement with a name; a query of the driver itself, such as CopyOut, has none and must stay one. */
function isNamed(statement: unknown): statement is { name: string } {
  if (typeof statement !== 'object' || statement === null || statement instanceof pg.Query) return false;
  return 'name' in statement && 'text' in statement;
}
