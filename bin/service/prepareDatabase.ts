import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { NewKey } from '../../db/access/keys.js';
import { type Database, openDatabase, reachesPostgres } from '../../db/client.js';
import { listOrganizations } from '../../db/installation/organizations.js';
import { admitLogin, loginOf, makeLogin } from '../../db/login.js';
import { listPendingMigrations, migrate } from '../../db/migrate.js';
import { parseKey, type Role } from '../../domain/access/keyRules.js';
import { newUuid } from '../../domain/ids.js';
import type { Config } from '../../platform/config.js';
import { writePrivateFile } from '../../platform/embedded/dataDir.js';
import { StartError } from '../../platform/startError.js';
import { digestKey, drawKey } from '../../usecases/access/keyChanges.js';
import { insertFirstOrganization } from '../../usecases/installation/organization.js';
import { type SeedResult, seedPrices } from '../../usecases/pricing/priceSeed.js';

const WRONG_ADMIN_KEY =
  'INIT_ADMIN_KEY has a wrong check sum, so a character of it is wrong: copy it again, or make one with ./trueup keys create --offline.';

/** Opens a database with few connections, for one-off work of a start or a command. */
export async function useToolDatabase<T>(url: string, work: (database: Database) => Promise<T>): Promise<T> {
  const database = openDatabase({
    url,
    poolMax: 2,
    applicationName: 'trueup-tool',
    statementTimeoutMs: 120_000,
  });
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

/** The admin key of the first start, and the file where it was saved; undefined on later starts. */
export interface FirstStart {
  adminKey: string;
  file: string;
}

/**
 * Verifies the key's checksum; the settings verify only its form.
 * @throws StartError when INIT_ADMIN_KEY has a typing error.
 */
export function checkAdminKey(config: Config): void {
  if (config.initAdminKey !== undefined && !parseKey(config.initAdminKey))
    throw new StartError(WRONG_ADMIN_KEY);
}

/** Migrates the schema and stores the required data: prices, an organization, its admin key. */
export async function prepareDatabase(
  config: Config,
  url: string,
  directUrl: string,
): Promise<FirstStart | undefined> {
  checkAdminKey(config);
  await migrateWithin(directUrl);
  await admitLoginWithin(config, url, directUrl);
  return useToolDatabase(url, async (database) => {
    warnOfOvertaken(await seedPrices(database));
    return createFirstOrganization(config, database);
  });
}

/** A newer shipped list supersedes an import, which must be reported. */
function warnOfOvertaken({ overtaken }: SeedResult): void {
  if (overtaken.length === 0) return;
  process.stderr.write(
    `The shipped price list has changed ${overtaken.length} prices that were imported from older files; the list holds now: ${overtaken.join(', ')}\n`,
  );
}

async function migrateWithin(directUrl: string): Promise<void> {
  try {
    await requireDirect(directUrl);
    await migrate(directUrl);
  } catch (error) {
    throw explainDatabaseError(error, directUrl);
  }
}

/** Creates or corrects the login of the embedded database only; one that DATABASE_URL names may serve others too. */
async function admitLoginWithin(config: Config, url: string, directUrl: string): Promise<void> {
  if (loginOf(url).name === loginOf(directUrl).name) return;
  try {
    if (config.databaseUrl === undefined) await makeLogin(directUrl, loginOf(url));
    else await admitLogin(directUrl, url);
  } catch (error) {
    if (codeOf(error) === '42501') {
      throw new StartError(
        `${loginOf(directUrl).name} may not give ${loginOf(url).name} the roles app_rw, app_system and app_workspace: make that login and grant it these roles as a superuser.`,
        { cause: error },
      );
    }
    throw explainDatabaseError(error, url);
  }
}

/** @throws StartError where a pooler answers, because it neither keeps locks nor delivers notifications. */
async function requireDirect(directUrl: string): Promise<void> {
  if (await reachesPostgres(directUrl)) return;
  const { host, pathname } = new URL(directUrl);
  throw new StartError(
    `A connection pooler answers at ${host}${pathname}: set DATABASE_DIRECT_URL to the address of Postgres itself; migrations and the news of changed keys need a session of their own.`,
  );
}

/**
 * Explains faults of a database that DATABASE_URL names and that a user can fix; other errors are returned unchanged.
 */
export function explainDatabaseError(error: unknown, url: string): unknown {
  const { message, cause } = error as { message?: string; cause?: unknown };
  // The error names the migration that failed; its cause is Postgres's error.
  const code = codeOf(error) ?? codeOf(cause);
  const { host, pathname } = new URL(url);
  const place = `${host}${pathname}`;
  if (code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'ETIMEDOUT' || code === 'EAI_AGAIN') {
    return new StartError(`No Postgres answers at ${place} (${code}): start it, or correct DATABASE_URL.`, {
      cause: error,
    });
  }
  if (code === '28P01' || code === '28000') {
    return new StartError(`Postgres at ${place} refuses the user or the password: correct DATABASE_URL.`, {
      cause: error,
    });
  }
  if (code === '3D000') {
    return new StartError(
      `Postgres at ${host} has no database ${pathname.slice(1)}: create it, or correct DATABASE_URL.`,
      { cause: error },
    );
  }
  if (code === '53100') {
    return new StartError(`The disk of Postgres at ${place} is full: free some space.`, { cause: error });
  }
  if (code === '42501') {
    return new StartError(
      `Postgres at ${place} does not allow its user to prepare the schema (${message}): make it the database's owner and give it CREATEROLE, or grant it app_rw, app_system and app_workspace where these roles exist.`,
      { cause: error },
    );
  }
  return error;
}

function codeOf(error: unknown): string | undefined {
  return (error as { code?: string } | undefined)?.code;
}

async function createFirstOrganization(config: Config, database: Database): Promise<FirstStart | undefined> {
  if ((await listOrganizations(database)).length > 0) return undefined;
  const adminKey = config.initAdminKey ?? makeKey();
  const key = describeKey(adminKey, 'first admin key', 'admin');
  if (!key) throw new StartError(WRONG_ADMIN_KEY);
  const id = newUuid(BigInt(Date.now()) * 1000n);
  const file = join(config.dataDir, 'admin-key');
  // The file is written first: a start that is killed in between creates another key, never an organization without
  // one.
  const previous = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  writePrivateFile(file, `${adminKey}\n`);
  if (await insertFirstOrganization(database, { id, name: config.initOrgName }, key))
    return { adminKey, file };
  if (previous === undefined) rmSync(file);
  else writePrivateFile(file, previous);
  return undefined;
}

/** Generates a key in the published format without storing it. */
export function makeKey(): string {
  return drawKey().text;
}

/** The stored part of a key; undefined: it is not in the key format. */
export function describeKey(key: string, name: string, role: Role): NewKey | undefined {
  const digest = digestKey(key);
  return digest && { ...digest, name, role, createdBy: 'command line' };
}

/**
 * A process of another version than the schema would write rows that no other process reads. `remedy` is the advice for
 * an outdated schema.
 * @throws StartError when the schema is outdated, a pooler is in front of the database, or it does not answer.
 */
export async function requireCurrentSchema(
  directUrl: string,
  remedy = 'run ./trueup migrate',
): Promise<void> {
  const pending = await requireDirect(directUrl)
    .then(() => listPendingMigrations(directUrl))
    .catch((error: unknown) => {
      throw explainDatabaseError(error, directUrl);
    });
  if (pending.length === 0) return;
  throw new StartError(`The database lacks ${pending.length} migrations (${pending.join(', ')}): ${remedy}.`);
}
