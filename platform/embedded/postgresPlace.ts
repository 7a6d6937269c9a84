import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../startError.js';
import { isTraversable, writePrivateFile } from './dataDir.js';
import { SYSTEM_DIR } from './postgresBinaries.js';
import type { RunAs } from './serverProcess.js';

/** Uid and gid of `nobody`, because a user `postgres` may not exist. */
const NOBODY = 65_534;

/** The folder of a data directory's cluster, and the user that runs it. */
export interface ClusterPlace {
  /** Postgres's data folder. */
  directory: string;
  /** undefined: the current user. */
  runAs: RunAs | undefined;
}

/**
 * `<DATA_DIR>/pg`, run by the current user. Root gives the cluster to `nobody`, or to its present owner; where that
 * user cannot reach DATA_DIR (a clone under /root), the cluster is in /var/lib/trueup under the path's hash.
 */
export function placeCluster(dataDir: string): ClusterPlace {
  const inside = join(dataDir, 'pg');
  const uid = process.getuid?.();
  if (uid !== 0) {
    refuseForeignOwner(inside, uid);
    return { directory: inside, runAs: undefined };
  }
  const owner = existsSync(inside) ? statSync(inside) : undefined;
  if (owner && owner.uid !== 0) return { directory: inside, runAs: { uid: owner.uid, gid: owner.gid } };
  const runAs = { uid: NOBODY, gid: NOBODY };
  if (isTraversable(dataDir, NOBODY)) return { directory: inside, runAs };
  const hash = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  const outside = join(SYSTEM_DIR, hash);
  try {
    mkdirSync(outside, { recursive: true, mode: 0o711 });
    chmodSync(outside, 0o711);
  } catch (error) {
    throw new StartError(
      `Postgres cannot run as root, and no other user can enter DATA_DIR ${dataDir}, nor can ${SYSTEM_DIR} be written: set DATA_DIR to a folder that others can enter, or set DATABASE_URL.`,
      { cause: error },
    );
  }
  claimOutside(dataDir, join(outside, 'pg'));
  return { directory: join(outside, 'pg'), runAs };
}

/** Whether a cluster was ever created for this data directory, in any place; changes nothing. */
export function hasCluster(dataDir: string): boolean {
  return existsSync(join(dataDir, 'pg')) || existsSync(join(dataDir, 'pg-location'));
}

/**
 * Sets a cluster outside of its deleted data directory aside, without deleting it. A new data directory of the same
 * name has another password and must not find the old data.
 */
function claimOutside(dataDir: string, directory: string): void {
  const claim = join(dataDir, 'pg-location');
  if (existsSync(claim)) return;
  if (existsSync(directory))
    renameSync(directory, `${directory}.removed-${statSync(directory).ctime.toISOString()}`);
  writeFileSync(claim, `${directory}\n`, { mode: 0o644 });
}

function refuseForeignOwner(directory: string, uid: number | undefined): void {
  if (uid === undefined || !existsSync(directory) || statSync(directory).uid === uid) return;
  throw new StartError(
    `The database in ${directory} belongs to another user (it was probably made by root): start as that user, or set DATA_DIR to another folder.`,
  );
}

/** Creates a folder that the server's user owns and that no other user may enter. */
export function makeServerDir(path: string, runAs: RunAs | undefined): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  giveTo(path, runAs);
}

export function giveTo(path: string, runAs: RunAs | undefined): void {
  if (runAs) chownSync(path, runAs.uid, runAs.gid);
}

/** @throws StartError when another major version wrote the files, which this one cannot read. */
export function checkDataVersion(directory: string, serverVersion: string): void {
  const found = readFileSync(join(directory, 'PG_VERSION'), 'utf8').trim();
  const major = serverVersion.split('.')[0] ?? '';
  if (found === major) return;
  throw new StartError(
    `The database in ${directory} was written by Postgres ${found} and this version brings Postgres ${major}: export its data with the older Trueup, then run ./trueup import data with this one and DATA_DIR set to a new folder.`,
  );
}

/** Logins of the embedded Postgres, with the file of the data directory that holds the password. */
const LOGINS = {
  /** The server's superuser, who owns the tables: migrations, partitions, retention, backup and restore. */
  owner: { name: 'app', file: 'postgres-password' },
  /** The API and the worker. */
  login: { name: 'app_login', file: 'postgres-login-password' },
} as const;

export type PostgresLogin = keyof typeof LOGINS;

export const OWNER_NAME = LOGINS.owner.name;
export const DATABASE_NAME = 'trueup';

/** The password of a login; created, readable by its owner alone, where it is missing. */
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
