import { spawnSync } from 'node:child_process';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeTestFolder } from './testFolder.js';

export const HOW_TO_MOUNT =
  'A file system of a few megabytes cannot be mounted here: run this as root on Linux';

/** A file system that is small enough to be filled. */
export interface SmallDisk {
  path: string;
  /** Takes all the space that is left. */
  fill(): void;
  /** Frees the space. */
  empty(): void;
  remove(): void;
}

export function mountSmallDisk(name: string, megabytes: number): SmallDisk {
  const path = makeTestFolder(name);
  mount(path, megabytes);
  chmodSync(path, 0o711);
  const filler = join(path, 'filler');
  return {
    path,
    fill() {
      const block = Buffer.alloc(65_536);
      for (const size of [block.length, 4_096]) {
        try {
          for (;;) writeFileSync(filler, block.subarray(0, size), { flag: 'a' });
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        }
      }
    },
    empty: () => rmSync(filler, { force: true }),
    remove() {
      run('umount', path);
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** Whether this system permits mounting one. */
export function canMountDisks(): boolean {
  if (process.getuid?.() !== 0) return false;
  const path = makeTestFolder('mount');
  try {
    mount(path, 1);
    run('umount', path);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}

function mount(path: string, megabytes: number): void {
  run('mount', '-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path);
}

function run(program: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw error ?? new Error(`${program}: ${stderr}`);
}
