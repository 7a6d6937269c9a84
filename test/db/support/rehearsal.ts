import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import {
  Database,
  type Isolation,
  openDatabase,
  type Tenant,
  type TransactionConnection,
  type TransactionRole,
} from '../../../db/client.js';
import { OrgDb } from '../../../db/orgDb.js';
import { translatePgError } from '../../../db/pgErrors.js';
import type { TestDatabase } from '../../support/database.js';

/** Which of the two protections is active in a rehearsal, and for which organization. */
export interface Footing {
  /** The organization of the handle, which every statement's predicate names. */
  asks: string;
  /** The organization that row-level security is set to; null: row-level security is off. */
  bound: string | null;
}

/** Result of a rehearsed function. */
export interface Rehearsed {
  /** The result; undefined where it threw. */
  given: unknown;
  /** Its error. */
  thrown: unknown;
  /** Tables in which rows of the watched organization are other than before. */
  changed: string[];
}

/**
 * Runs functions of db/ without lasting effect: everything that one does, its own transactions and those of
 * maintenance too, happens in one transaction that is rolled back in the end, so that each begins from the same rows.
 */
export class Rehearsals {
  readonly #database: Database;
  readonly #superuser: pg.Pool;
  readonly #rehearsed: RehearsedDatabase;
  /** Has the rights of app_rw, and bypasses row-level security. */
  readonly #openRole: string;
  readonly #fingerprints = new Map<string, Map<string, string>>();

  constructor(test: TestDatabase) {
    this.#superuser = test.superuser;
    this.#database = openDatabase({
      url: test.url,
      poolMax: 1,
      applicationName: 'rehearsal',
      statementTimeoutMs: 20_000,
    });
    this.#openRole = `rehearsal_${randomBytes(6).toString('hex')}`;
    this.#rehearsed = new RehearsedDatabase(test.url, this.#openRole);
  }

  /** Every rehearsal is rolled back, so that each begins with the same data. */
  async #before(connection: TransactionConnection, watched: string): Promise<Map<string, string>> {
    const known = this.#fingerprints.get(watched) ?? (await fingerprints(connection, watched));
    this.#fingerprints.set(watched, known);
    return known;
  }

  async open(): Promise<void> {
    // Roles belong to the whole server, so it has a unique name and is dropped after the test.
    await this.#superuser.query(`create role ${this.#openRole} nologin bypassrls in role app_rw`);
  }

  async close(): Promise<void> {
    await this.#rehearsed.close();
    await this.#database.close();
    await this.#superuser.query(`drop role ${this.#openRole}`);
  }

  /** Runs `work` on a footing, and returns its result and which of `watched`'s rows it changed. */
  async run(footing: Footing, watched: string, work: (db: OrgDb) => Promise<unknown>): Promise<Rehearsed> {
    let seen: Rehearsed | undefined;
    const enough = new Error('rolled back');
    await this.#database
      .transact('app_system', undefined, async (connection) => {
        await connection.query('set local role none');
        const before = await this.#before(connection, watched);
        this.#rehearsed.standOn(connection, footing.bound);
        const outcome = await settle(work(new OrgDb(this.#rehearsed, footing.asks)));
        await connection.query('set local role none');
        const written = await tablesWritten(connection);
        const changed =
          written.length === 0
            ? []
            : differences(before, await fingerprints(connection, watched, new Set(written)));
        seen = { ...outcome, changed };
        throw enough;
      })
      .catch((error: unknown) => {
        if (error !== enough) throw error;
      });
    if (!seen) throw new Error('nothing was rehearsed');
    return seen;
  }
}

/**
 * Tables with written rows, including rolled back ones and those of transactions just before this one: the server
 * counts them together.
 */
async function tablesWritten(connection: TransactionConnection): Promise<string[]> {
  // A transaction that has written nothing has no number.
  const { rows } = await connection.query<{ written: boolean }>(
    'select pg_current_xact_id_if_assigned() is not null as written',
  );
  if (rows[0]?.written !== true) return [];
  const tables = await connection.query<{ name: string }>(
    `select distinct coalesce(pg_partition_root(relid), relid)::regclass::text as name from pg_stat_xact_user_tables
     where n_tup_ins + n_tup_upd + n_tup_del > 0`,
  );
  return tables.rows.map(({ name }) => name);
}

async function settle(work: Promise<unknown>): Promise<Omit<Rehearsed, 'changed'>> {
  return work.then(
    (given) => ({ given, thrown: undefined }),
    (thrown: unknown) => ({ given: undefined, thrown }),
  );
}

/** A database whose every transaction is a savepoint of an open one. One at a time. */
class RehearsedDatabase extends Database {
  readonly #openRole: string;
  #connection: TransactionConnection | undefined;
  #bound: string | null = null;
  #depth = 0;

  constructor(url: string, openRole: string) {
    super({ url, poolMax: 1, applicationName: 'rehearsal', statementTimeoutMs: 20_000 });
    this.#openRole = openRole;
  }

  /**
   * From here on everything runs in the transaction of this connection, with row-level security for this organization.
   */
  standOn(connection: TransactionConnection, bound: string | null): void {
    this.#bound = bound;
    this.#depth = 0;
    this.#connection = this.#withRoles(connection);
  }

  override async transact<T>(
    role: TransactionRole,
    tenant: Tenant | undefined,
    work: (connection: TransactionConnection) => Promise<T>,
    _isolation?: Isolation,
  ): Promise<T> {
    if (this.#depth > 0) throw new Error('two transactions at once cannot be rehearsed');
    const connection = this.#connection;
    if (connection === undefined) throw new Error('a rehearsal stands on a transaction');
    this.#depth += 1;
    try {
      await connection.query('savepoint rehearsed');
      await connection.query(`set local role ${role}`);
      const orgId = tenant === undefined ? '' : (this.#bound ?? tenant.orgId);
      await connection.query(`select set_config('app.org_id', $1, true)`, [orgId]);
      const result = await work(connection);
      // Checks deferred constraints as a commit would.
      await connection.query('set constraints all immediate');
      await connection.query('release savepoint rehearsed');
      return result;
    } catch (error) {
      await connection.query('rollback to savepoint rehearsed');
      throw translatePgError(error);
    } finally {
      this.#depth -= 1;
    }
  }

  override async transactOne<T>(
    role: TransactionRole,
    tenant: Tenant | undefined,
    send: (connection: TransactionConnection) => Promise<T>,
  ): Promise<T> {
    return this.transact(role, tenant, send);
  }

  /** The connection, on which the role of requests is another one where row-level security is off. */
  #withRoles(connection: TransactionConnection): TransactionConnection {
    if (this.#bound !== null) return connection;
    const query = (first: unknown, ...rest: unknown[]) =>
      (connection.query as (...all: unknown[]) => unknown).call(
        connection,
        first === 'set local role app_rw' ? `set local role ${this.#openRole}` : first,
        ...rest,
      );
    return new Proxy(connection, {
      get: (target, name) => (name === 'query' ? query : Reflect.get(target, name, target)),
    });
  }
}

let fingerprintsOf: Map<string, string> | undefined;

/** For each tenant table, or for these: the number of the organization's rows and a hash of them. */
async function fingerprints(
  connection: TransactionConnection,
  orgId: string,
  tables?: ReadonlySet<string>,
): Promise<Map<string, string>> {
  fingerprintsOf ??= await listFingerprints(connection);
  const wanted = [...fingerprintsOf].filter(([name]) => tables?.has(name) ?? true).map(([, sql]) => sql);
  if (wanted.length === 0) return new Map();
  const { rows } = await connection.query<{ name: string; digest: string }>(wanted.join(' union all '), [
    orgId,
  ]);
  return new Map(rows.map(({ name, digest }) => [name, digest]));
}

/** The statement of each tenant table, by its name. */
async function listFingerprints(connection: TransactionConnection): Promise<Map<string, string>> {
  const { rows } = await connection.query<{ name: string; key: string }>(
    `select c.relname as name, case c.relname when 'organizations' then 'id' else 'org_id' end as key
     from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and (c.relname = 'organizations' or exists (
         select from pg_attribute a where a.attrelid = c.oid and a.attname = 'org_id' and not a.attisdropped))`,
  );
  return new Map(
    rows.map(({ name, key }) => [
      name,
      `select '${name}' as name, count(*) || ':' || coalesce(sum(hashtextextended(t::text, 0)), 0) as digest from ${name} t where ${key} = $1`,
    ]),
  );
}

function differences(before: Map<string, string>, after: Map<string, string>): string[] {
  return [...after].flatMap(([name, digest]) => (before.get(name) === digest ? [] : [name]));
}
