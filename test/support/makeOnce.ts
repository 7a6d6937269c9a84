import { existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inject } from 'vitest';

/** A text that the first process of a run creates, and the others read. */
export async function makeOnce(name: string, make: () => Promise<string>): Promise<string> {
  const file = join(inject('runFolder'), name);
  const lock = `${file}.lock`;
  while (!existsSync(file)) {
    try {
      mkdirSync(lock);
    } catch {
      await sleep(100);
      continue;
    }
    try {
      if (!existsSync(file)) {
        writeFileSync(`${file}.new`, await make());
        renameSync(`${file}.new`, file);
      }
    } finally {
      rmdirSync(lock);
    }
  }
  return readFileSync(file, 'utf8');
}
