import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

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
