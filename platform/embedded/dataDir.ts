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

/** Enough bytes to notice a full disk, on which an empty file can still be created. */
const PROBE_BYTES = 65_536;

/** The data directory, locked by this process until `release`. */
export interface DataDir {
  path: string;
  release(): void;
}

/** The lock file of a data directory, which contains the id of its process. */
export function dataDirLockFile(path: string): string {
  return join(path, 'lock');
}

/**
 * Creates the data directory where it is missing (0700; as root 0711, since Postgres runs as another user below it),
 * verifies that it is writable, and locks it for this process.
 * @throws StartError when it is not writable or another start uses it.
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

/**
 * Creates missing parent folders. mkdir's `recursive` never returns where a file system always answers ENOENT, as /proc
 * does.
 */
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

/** Last ports of a data directory's servers, which are used again if they are free, so that clients find them. */
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
  // Unchanged ports are not written, because the disk may be full.
  if (known.postgres === merged.postgres && known.temporal === merged.temporal) return;
  writePrivateFile(join(dataDir, 'ports.json'), `${JSON.stringify(merged)}\n`);
}

/** Writes a file that only its owner may read, atomically. */
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

/** One segment of Postgres's write-ahead log; a server that cannot create one stops. */
export const WAL_SEGMENT_BYTES = 16 * 1_048_576;

/** Whether a write failed because the disk is full. */
export function isDiskFull(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/** Free bytes for an ordinary user at the place of a folder, existing or not. */
export function freeBytes(folder: string): number {
  let found = folder;
  while (!existsSync(found)) found = dirname(found);
  const { bavail, bsize } = statfsSync(found);
  return bavail * bsize;
}

const EXECUTE_OTHERS = 0o001;
const EXECUTE_OWNER = 0o100;

/**
 * Whether a user without further groups may pass through every folder down to `path`. Folders that do not exist yet are
 * skipped: we create them passable.
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
