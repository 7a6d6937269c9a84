import { chmodSync, mkdtempSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new folder under the system's temporary one. Others may pass through it: root's Postgres runs as `nobody`. */
export function makeTestFolder(name: string): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), `trueup-${name}-`)));
  chmodSync(folder, 0o711);
  return folder;
}
