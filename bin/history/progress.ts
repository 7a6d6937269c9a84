import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Number of rows for a reason, and the first lines. */
export interface Reason {
  rows: number;
  lines: number[];
}

/** The results of the rows so far. */
export interface Progress {
  /** The key that sent them: only under the same key are repeats recognized. */
  keyId: string;
  size: number;
  mtimeMs: number;
  isDone: boolean;
  rows: number;
  stored: number;
  repeats: number;
  firstTime: string;
  lastTime: string;
  /** By reason: rows that are no calls, and rows that a person has to look at. */
  skipped: Record<string, Reason>;
  faults: Record<string, Reason>;
}

/** Lines that are kept for a reason, and different reasons. */
const LINES_MAX = 10;
const REASONS_MAX = 100;

/** The place of a file's progress: on this machine, by service and file. */
export function progressPath(cacheDir: string, url: string, source: string, file: string): string {
  const name = createHash('sha256').update([url, source, file].join('\n')).digest('hex').slice(0, 32);
  return join(cacheDir, 'history', `${name}.json`);
}

export function newProgress(keyId: string, size: number, mtimeMs: number): Progress {
  const counts = { rows: 0, stored: 0, repeats: 0, firstTime: '', lastTime: '' };
  return { keyId, size, mtimeMs, isDone: false, ...counts, skipped: {}, faults: {} };
}

/** Undefined: none is stored, or it cannot be read, and the import begins anew, which is safe. */
export async function readProgress(path: string): Promise<Progress | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Progress;
  } catch {
    return undefined;
  }
}

/** Replaces the file at once, so that a kill leaves the old or the new progress. */
export async function writeProgress(path: string, progress: Progress): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, JSON.stringify(progress), { mode: 0o600 });
  await rename(draft, path);
}

/** Counts rows for a reason; `line` undefined: the service did not name the row. */
export function count(
  reasons: Record<string, Reason>,
  reason: string,
  line: number | undefined,
  rows = 1,
): void {
  const isNew = !Object.hasOwn(reasons, reason);
  const name = isNew && Object.keys(reasons).length >= REASONS_MAX ? 'other reasons' : reason;
  reasons[name] ??= { rows: 0, lines: [] };
  const counted = reasons[name];
  counted.rows += rows;
  if (line !== undefined && counted.lines.length < LINES_MAX) counted.lines.push(line);
}
