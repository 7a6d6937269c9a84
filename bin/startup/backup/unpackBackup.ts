import { chmodSync, chownSync, closeSync, fsyncSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readArchive } from '../../../platform/archive/archiveReader.js';
import type { OpenTarEntry } from '../../../platform/archive/tar.js';
import { makeServerDir } from '../../../platform/embedded/postgresPlace.js';
import type { RunAs } from '../../../platform/embedded/serverProcess.js';
import { StartError } from '../../../platform/startError.js';
import { HEADER_NAME } from './archiveHeader.js';
import type { BackupManifest } from './takeBackup.js';
import { inBytes, ProgressLine } from './words.js';

/** Where the parts of a backup are unpacked to. */
export interface UnpackTarget {
  /** Keys and other files of the data directory. */
  filesFolder: string;
  clusterFolder: string;
  /** Whom the cluster belongs to. */
  runAs: RunAs | undefined;
}

/**
 * Unpacks a backup and compares every file's sha256 with its manifest's.
 * @throws StartError for a damaged file or a full disk.
 */
export async function unpackBackup(path: string, target: UnpackTarget): Promise<BackupManifest> {
  const { filesFolder, clusterFolder, runAs } = target;
  mkdirSync(filesFolder, { mode: 0o700 });
  makeServerDir(clusterFolder, runAs);
  const progress = new ProgressLine();
  let bytes = 0;
  try {
    return await readArchive<BackupManifest>(path, async (entry) => {
      const [, folder, rest] = /^(pg|data)\/(.+)$/.exec(entry.path) ?? [];
      if (rest === undefined) {
        if (entry.path !== HEADER_NAME)
          throw new StartError(`${path} holds ${entry.path}, which has no place.`);
        for await (const _ of entry.body);
        return;
      }
      // Postgres itself brings a cluster to disk before it replays a log into it; the keys are ours to bring there.
      if (folder === 'pg') await unpackEntry(entry, join(clusterFolder, rest), { runAs, sync: false });
      else await unpackEntry(entry, join(filesFolder, rest), { runAs: undefined, sync: true });
      bytes += entry.sizeBytes;
      progress.show(`${inBytes(bytes)} unpacked`);
    });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOSPC' || code === 'EDQUOT')
      throw new StartError(
        `The disk of ${dirname(clusterFolder)} is full: free some space, or restore to another disk with --into.`,
        {
          cause: error,
        },
      );
    throw error;
  } finally {
    progress.clear();
  }
}

async function unpackEntry(
  entry: OpenTarEntry,
  path: string,
  { runAs, sync }: { runAs: RunAs | undefined; sync: boolean },
): Promise<void> {
  if (entry.type === 'directory') {
    mkdirSync(path, { recursive: true });
  } else {
    const file = openSync(path, 'wx', 0o600);
    try {
      for await (const piece of entry.body)
        for (let at = 0; at < piece.length; ) at += writeSync(file, piece, at);
      if (sync) fsyncSync(file);
    } finally {
      closeSync(file);
    }
  }
  chmodSync(path, entry.mode & 0o777);
  if (runAs) chownSync(path, runAs.uid, runAs.gid);
}
