import {
  closeSync,
  createReadStream,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const NEWLINE = 0x0a;
const MONTH_FILE = /^\d{4}-\d{2}\.jsonl$/;

/**
 * Append-only lines, in a folder with a file for each month (`2026-01.jsonl`, UTC). They are on disk when `append`
 * returns. Several processes may append, because each call is one write at the end of the file.
 */
export class MonthlyLines {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  append(lines: readonly string[], now: Date): void {
    if (lines.length === 0) return;
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    const file = join(this.folder, `${now.toISOString().slice(0, 7)}.jsonl`);
    const isNew = !existsSync(file);
    const handle = openSync(file, 'a', 0o600);
    try {
      // A line that a crash truncated must not merge with the next one.
      const broken = !isNew && !endsWithNewline(file) ? '\n' : '';
      writeSync(handle, `${broken}${lines.join('\n')}\n`);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    if (isNew) syncFolder(this.folder);
  }

  /** The files, oldest first. */
  listFiles(): string[] {
    if (!existsSync(this.folder)) return [];
    return readdirSync(this.folder)
      .filter((name) => MONTH_FILE.test(name))
      .sort()
      .map((name) => join(this.folder, name));
  }

  /** Deletes the files of months that ended more than `keepDays` days ago; returns their number. */
  prune(keepDays: number, now: Date): number {
    const oldest = new Date(now.getTime() - keepDays * 86_400_000).toISOString().slice(0, 7);
    const old = this.listFiles().filter((file) => file.slice(-13, -6) < oldest);
    for (const file of old) rmSync(file);
    return old.length;
  }
}

/** The lines of files, one after the other. */
export async function* readLines(files: readonly string[]): AsyncGenerator<string> {
  for (const file of files)
    yield* createInterface({ input: createReadStream(file, 'utf8'), crlfDelay: Number.POSITIVE_INFINITY });
}

function endsWithNewline(file: string): boolean {
  const { size } = statSync(file);
  if (size === 0) return true;
  const handle = openSync(file, 'r');
  try {
    const last = Buffer.alloc(1);
    readSync(handle, last, 0, 1, size - 1);
    return last[0] === NEWLINE;
  } finally {
    closeSync(handle);
  }
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
