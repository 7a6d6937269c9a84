import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivateFile } from './dataDir.js';

/** Who connects to the embedded Postgres, and the file of the data directory that holds the password. */
const LOGINS = {
  /** The server's superuser, who owns the tables: migrations, partitions, retention, backup and restore. */
  owner: { name: 'app', file: 'postgres-password' },
  /** The API and the worker. */
  login: { name: 'app_login', file: 'postgres-login-password' },
} as const;

export type PostgresLogin = keyof typeof LOGINS;

export const OWNER_NAME = LOGINS.owner.name;
export const DATABASE_NAME = 'trueup';

/** The password of a login; made, readable by its owner alone, where there is none. */
export function readOrMakePassword(dataDir: string, login: PostgresLogin): string {
  const file = join(dataDir, LOGINS[login].file);
  if (!existsSync(file)) writePrivateFile(file, randomBytes(24).toString('base64url'));
  return readFileSync(file, 'utf8').trim();
}

/** Connection string of a data directory's embedded Postgres at `host:port`; undefined where the login has no password. */
export function findEmbeddedUrl(dataDir: string, address: string, login: PostgresLogin): string | undefined {
  const { name, file } = LOGINS[login];
  if (!existsSync(join(dataDir, file))) return undefined;
  return `postgres://${name}:${readOrMakePassword(dataDir, login)}@${address}/${DATABASE_NAME}`;
}
