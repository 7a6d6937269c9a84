import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { StartError } from '../startError.js';
import { type FileLock, takeFileLock } from './fileLock.js';

/** Enough to notice a full disk, which takes an empty file without complaint. */
const PROBE_BYTES = 65_536;

/** The data directory, ours alone until `release`. */
export interface DataDir {
  path: string;
  release(): void;
}

/** The file that names the process of a data directory. */
export function dataDirLockFile(path: string): string {
  return join(path, 'lock');
}

/**
 * Makes the data directory where it is missing (0700; as root 0711, since Postgres runs as another user below it),
 * sees that it can be written, and takes it for this process.
 * @throws StartError when it cannot be written or another start uses it.
 */
export function openDataDir(path: string): DataDir {
  let lock: FileLock | { heldBy: number };
  try {
    if (!existsSync(path)) {
      makeFolders(path);
      chmodSync(path, process.getuid?.() === 0 ? 0o711 : 0o700);
    }
    probeDisk(join(path, `.probe-${process.pid}`));
    lock = takeFileLock(dataDirLockFile(path));
  } catch (error) {
    throw new StartError(unwritable(path, error as NodeJS.ErrnoException), { cause: error });
  }
  if ('heldBy' in lock) {
    throw new StartError(
      `DATA_DIR ${path} is in use by process ${lock.heldBy}: stop that one first, or set DATA_DIR to another folder.`,
    );
  }
  return { path, release: lock.release };
}

/** mkdir's own `recursive` never returns where a file system answers ENOENT for good, as /proc does. */
function makeFolders(path: string): void {
  try {
    mkdirSync(path);
  } catch (error) {
    const parent = dirname(path);
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || existsSync(parent)) throw error;
    makeFolders(parent);
    mkdirSync(path);
  }
}

function probeDisk(file: string): void {
  const probe = openSync(file, 'w', 0o600);
  try {
    writeSync(probe, Buffer.alloc(PROBE_BYTES));
    fsyncSync(probe);
  } finally {
    closeSync(probe);
    rmSync(file, { force: true });
  }
}

function unwritable(path: string, error: NodeJS.ErrnoException): string {
  if (isDiskFull(error)) {
    return `DATA_DIR ${path} lies on a disk that is full: free some space, or set DATA_DIR to a folder on another disk.`;
  }
  if (error.code === 'EEXIST' || error.code === 'ENOTDIR') {
    return `DATA_DIR ${path} is not a folder: set DATA_DIR to the path of a folder.`;
  }
  return `DATA_DIR ${path} cannot be written (${error.code ?? error.message}): set DATA_DIR to a folder that you own, for example DATA_DIR=$HOME/trueup.`;
}

/** Ports that a data directory's servers had last time: clients find them again where nobody took them meanwhile. */
export interface RememberedPorts {
  postgres?: number;
  temporal?: number;
}

export function readPorts(dataDir: string): RememberedPorts {
  try {
    return JSON.parse(readFileSync(join(dataDir, 'ports.json'), 'utf8')) as RememberedPorts;
  } catch {
    return {};
  }
}

export function rememberPorts(dataDir: string, ports: RememberedPorts): void {
  const known = readPorts(dataDir);
  const merged = { ...known, ...ports };
  // A server that comes back on its port writes nothing: the disk may be full.
  if (known.postgres === merged.postgres && known.temporal === merged.temporal) return;
  writePrivateFile(join(dataDir, 'ports.json'), `${JSON.stringify(merged)}\n`);
}

/** A file that only its owner may read, replaced whole. */
export function writePrivateFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}`;
  try {
    writeFileSync(draft, text, { mode: 0o600 });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** One segment of Postgres' write-ahead log; a server that cannot make one stops. */
export const WAL_SEGMENT_BYTES = 16 * 1_048_576;

/** Whether a failed write found no room. */
export function isDiskFull(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/** What an ordinary user can still write where a folder lies, or will lie. */
export function freeBytes(folder: string): number {
  let found = folder;
  while (!existsSync(found)) found = dirname(found);
  const { bavail, bsize } = statfsSync(found);
  return bavail * bsize;
}

const EXECUTE_OTHERS = 0o001;
const EXECUTE_OWNER = 0o100;

/**
 * Whether a user without groups of its own may pass through every folder down to `path`. Folders that do not exist
 * yet are left out: we make them so that others can pass.
 */
export function isTraversable(path: string, uid: number): boolean {
  let folder = resolve(path);
  while (!existsSync(folder)) folder = dirname(folder);
  folder = realpathSync(folder);
  for (;;) {
    const { mode, uid: owner } = statSync(folder);
    if ((mode & (owner === uid ? EXECUTE_OWNER : EXECUTE_OTHERS)) === 0) return false;
    const parent = dirname(folder);
    if (parent === folder) return true;
    folder = parent;
  }
}
