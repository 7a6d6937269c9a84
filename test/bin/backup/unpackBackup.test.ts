import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { unpackBackup } from '../../../bin/backup/archive.js';
import { ArchiveWriter } from '../../../platform/archive/archiveWriter.js';
import { StartError } from '../../../platform/startError.js';
import { makeTestFolder } from '../../support/testFolder.js';

const folder = makeTestFolder('unpack-backup');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes an archive: a path that ends with a slash is a folder's. */
async function archiveOf(name: string, paths: readonly string[]): Promise<string> {
  const file = join(folder, name);
  const writer = new ArchiveWriter(file, 0);
  await writer.addBytes('header.json', Buffer.from('{}'));
  for (const path of paths) {
    if (path.endsWith('/')) await writer.addDirectory(path, 0o700);
    else await writer.addBytes(path, Buffer.from(`content of ${path}`));
  }
  await writer.finish({});
  writer.discard();
  return file;
}

let targets = 0;
/** Unpacks into new folders: the error, or undefined. */
async function refusal(file: string): Promise<Error | undefined> {
  const into = join(folder, `into-${targets++}`);
  const target = { filesFolder: `${into}-files`, clusterFolder: `${into}-pg`, runAs: undefined };
  try {
    await unpackBackup(file, target);
    return undefined;
  } catch (error) {
    return error as Error;
  } finally {
    rmSync(target.filesFolder, { recursive: true, force: true });
    rmSync(target.clusterFolder, { recursive: true, force: true });
  }
}

describe('unpacking a backup', () => {
  it('accepts files whose folders come first', async () => {
    const file = await archiveOf('whole.tar.gz', ['pg/base/', 'pg/base/1', 'data/secret-key']);
    expect(await refusal(file)).toBeUndefined();
  });

  it.each([
    ['outside the two folders of a backup', ['g/base/1']],
    ['of which the folder is missing', ['pg/base/1']],
    ['below a file', ['pg/base', 'pg/base/1']],
    ['of a folder that is there', ['pg/base/', 'pg/base']],
    ['of a folder that is a file already', ['pg/base', 'pg/base/']],
  ])('calls an archive damaged that has a path %s', async (_what, paths) => {
    const error = await refusal(await archiveOf(`misplaced-${targets++}.tar.gz`, paths));
    expect(error).toBeInstanceOf(StartError);
    expect(error?.message).toMatch(
      /^misplaced-\d+\.tar\.gz is damaged or no archive of Trueup: it holds .*, which has no place\.$/,
    );
  });
});
