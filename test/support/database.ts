import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { type Database, openDatabase } from '../../db/client.js';
import { makeLogin, withLoginOf } from '../../db/login.js';
import { migrate } from '../../db/migrate.js';
import { seedPrices } from '../../usecases/pricing/priceSeed.js';

/** Generous limits, because no test is about the speed of a loaded machine. */
export const PATIENT = { statementTimeoutMs: 60_000, waitLimitMs: 30_000 } as const;

/** The login of the API and the worker, so that a statement that needs more rights fails in the tests too. */
export const TEST_LOGIN = { name: 'app_login', password: 'test-login' };

const TEMPLATE = 'trueup_template';
const TEMPLATE_LOCK = 7_241_188_399;

export interface TestDatabase {
  /** Connection string of a separate database, migrated and with prices: directly to Postgres, as its owner. */
  url: string;
  /** The settings of a program that serves it; through the pooler where the suite runs through one. */
  environment: { DATABASE_URL: string; DATABASE_DIRECT_URL: string };
  /** With the login of the API and the worker; through the pooler in a run of the suite that uses one. */
  database: Database;
  /** As the superuser, without row-level security: for tests that read the stored data. */
  superuser: pg.Pool;
  close(): Promise<void>;
}

/** The direct connection string for one through the suite's pooler. */
export function directly(url: string): string {
  const pooler = inject('poolerUrl');
  const direct = new URL(url);
  if (pooler !== null && new URL(pooler).host === direct.host)
    direct.host = new URL(inject('postgresUrl')).host;
  return direct.toString();
}

/** As the owner of the tables, directly to Postgres, for databases of the suite's server. */
export function asOwner(url: string): string {
  const direct = directly(url);
  const server = inject('postgresUrl');
  return new URL(direct).host === new URL(server).host ? withLoginOf(direct, server) : direct;
}

/** The settings of a program with one way to its database. */
export const environmentOf = (url: string) => ({ DATABASE_URL: url, DATABASE_DIRECT_URL: url });

function urlOf(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.toString();
}

/** The address with the login of the API and the worker. */
export function asTestLogin(url: string): string {
  return withLoginOf(url, `postgres://${TEST_LOGIN.name}:${TEST_LOGIN.password}@login`);
}

/** Creates the template once a run: the first process migrates it, the others wait for the lock. */
async function ensureTemplate(client: pg.Client, server: string): Promise<void> {
  await client.query('select pg_advisory_lock($1)', [TEMPLATE_LOCK]);
  const found = await client.query('select from pg_database where datname = $1 and datistemplate', [
    TEMPLATE,
  ]);
  if (found.rowCount === 0) {
    await client.query(`drop database if exists ${TEMPLATE}`);
    await client.query(`create database ${TEMPLATE}`);
    await migrate(urlOf(server, TEMPLATE));
    await makeLogin(server, TEST_LOGIN);
    const database = openDatabase({
      url: urlOf(server, TEMPLATE),
      poolMax: 1,
      applicationName: 'template',
      statementTimeoutMs: 60_000,
    });
    await seedPrices(database);
    await database.close();
    await client.query(`alter database ${TEMPLATE} is_template true`);
  }
  await client.query('select pg_advisory_unlock($1)', [TEMPLATE_LOCK]);
}

/**
 * A separate database for a test file, cloned from the migrated template, or from another database without connections.
 */
export async function createTestDatabase(
  options: { poolMax?: number; template?: string } = {},
): Promise<TestDatabase> {
  const server = inject('postgresUrl');
  const name = `test_${randomBytes(6).toString('hex')}`;
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  await ensureTemplate(client, server);
  await client.query(`create database ${name} template ${options.template ?? TEMPLATE}`);
  await client.end();
  const url = urlOf(server, name);
  // The pooler logs in by itself.
  const pooler = inject('poolerUrl');
  const servedUrl = pooler === null ? asTestLogin(url) : urlOf(pooler, name);
  const database = openDatabase({
    url: servedUrl,
    poolMax: options.poolMax ?? 8,
    applicationName: 'test',
    ...PATIENT,
  });
  const superuser = new pg.Pool({ connectionString: url, max: 2 });
  // The suite's server stops at the end of the run; an idle connection that it cuts is no failure.
  superuser.on('error', () => undefined);
  return {
    url,
    environment: { DATABASE_URL: servedUrl, DATABASE_DIRECT_URL: url },
    database,
    superuser,
    close: async () => {
      await database.close();
      await superuser.end();
    },
  };
}
