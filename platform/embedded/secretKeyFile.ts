import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { makeSecretKey } from '../secretBox.js';

/** `$DATA_DIR/secret-key`: the keys of an installation with an embedded Postgres, one a line, the current one first. */
export function secretKeyFile(dataDir: string): string {
  return join(dataDir, 'secret-key');
}

/**
 * Creates the key file where it is missing. An existing file is never replaced, since everything encrypted with it
 * would be lost.
 */
export function ensureSecretKeyFile(dataDir: string): string {
  const file = secretKeyFile(dataDir);
  if (existsSync(file)) return file;
  const draft = writeDraft(file, [makeSecretKey()]);
  try {
    // A link, unlike a rename, fails if another process has created the file meanwhile.
    linkSync(draft, file);
    syncFolder(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return file;
}

export function readSecretKeyFile(file: string): string[] {
  return readFileSync(file, 'utf8')
    .split(/[\s,]+/)
    .filter((line) => line !== '');
}

/** Replaces the keys atomically: a simultaneous reader gets the old or the new ones. */
export function replaceSecretKeys(file: string, keys: readonly string[]): void {
  renameSync(writeDraft(file, keys), file);
  syncFolder(file);
}

function writeDraft(file: string, keys: readonly string[]): string {
  const draft = `${file}.${process.pid}`;
  rmSync(draft, { force: true });
  const handle = openSync(draft, 'wx', 0o600);
  try {
    writeSync(handle, `${keys.join('\n')}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  return draft;
}

/** Syncs the folder, which makes the file's name durable. */
function syncFolder(file: string): void {
  const handle = openSync(dirname(file), 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
