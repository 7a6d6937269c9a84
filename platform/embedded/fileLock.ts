import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isAlive, startMark } from './processTable.js';

/** A lock file of a living process. */
export interface FileLock {
  release(): void;
}

interface Holder {
  pid: number;
  mark: string | undefined;
}

const ATTEMPTS_MAX = 20;

/**
 * Takes the lock file for this process, or returns the id of the living process that holds it. A lock of a killed
 * process is taken over; the start time distinguishes a later process with the same id.
 */
export function takeFileLock(path: string): FileLock | { heldBy: number } {
  const own: Holder = { pid: process.pid, mark: startMark(process.pid) };
  const ownText = JSON.stringify(own);
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, ownText, { mode: 0o600 });
  try {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      if (tryLink(draft, path)) return { release: () => releaseFileLock(path, ownText) };
      const holderText = readIfPresent(path);
      if (holderText === undefined) continue;
      const holder = parseHolder(holderText);
      if (holder && isHeld(holder)) return { heldBy: holder.pid };
      discardStale(path, holderText);
    }
  } finally {
    rmSync(draft, { force: true });
  }
  throw new Error(`the lock ${path} changes hands without end`);
}

/** The living process that holds the lock, if any. */
export function findLockHolder(path: string): number | undefined {
  const text = readIfPresent(path);
  const holder = text === undefined ? undefined : parseHolder(text);
  return holder && isHeld(holder) ? holder.pid : undefined;
}

function isHeld(holder: Holder): boolean {
  return isAlive(holder.pid) && startMark(holder.pid) === holder.mark;
}

function releaseFileLock(path: string, ownText: string): void {
  if (readIfPresent(path) === ownText) rmSync(path, { force: true });
}

/** Linking creates the file with its content in one step; writing it would expose an empty file. */
function tryLink(draft: string, path: string): boolean {
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Moves the stale file aside and verifies the moved file, because two processes may clean up at once. */
function discardStale(path: string, staleText: string): void {
  const aside = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if (readIfPresent(aside) !== staleText) tryLink(aside, path);
  rmSync(aside, { force: true });
}

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function parseHolder(text: string): Holder | undefined {
  try {
    const value = JSON.parse(text) as Partial<Holder>;
    return typeof value.pid === 'number' ? { pid: value.pid, mark: value.mark } : undefined;
  } catch {
    return undefined;
  }
}
