import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { StartError } from '../../../platform/startError.js';

/**
 * Where an archive goes: the file that `--to` names, or a new name in the folder that it names, or one in `folder`.
 * Makes `folder`, for its owner alone, never another.
 * @throws StartError when it is there already or its folder is not.
 */
export function placeArchive(
  to: string | undefined,
  folder: string,
  kind: 'backup' | 'export',
  now: Date,
): string {
  const stamp = now
    .toISOString()
    .replace(/[-:]/g, '')
    .replace(/\.\d+Z$/, 'Z');
  const name = `trueup-${kind === 'backup' ? '' : 'export-'}${stamp}.tar.gz`;
  if (to === undefined) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return unused(join(folder, name));
  }
  const wanted = resolve(to);
  if (to.endsWith('/') || (existsSync(wanted) && statSync(wanted).isDirectory()))
    return unused(join(wanted, name));
  return unused(wanted);
}

function unused(path: string): string {
  if (existsSync(path)) throw new StartError(`${path} is there already: give another name with --to.`);
  if (!existsSync(dirname(path)))
    throw new StartError(`There is no folder ${dirname(path)}: make it, or give another place with --to.`);
  return path;
}
