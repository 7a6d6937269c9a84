import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { readArchive } from '../../platform/archive/archiveReader.js';
import { syncFolder } from '../../platform/archive/archiveWriter.js';
import type { OpenTarEntry } from '../../platform/archive/tar.js';
import { type ClusterPlace, makeServerDir } from '../../platform/embedded/postgresPlace.js';
import type { RunAs } from '../../platform/embedded/serverProcess.js';
import { StartError } from '../../platform/startError.js';
import { HEADER_NAME, timeStamp } from './archive.js';
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

/** What stays when a data directory's content is moved aside: the lock we hold, the backups, what was moved before. */
const STAYS = /^(lock|backups|backup\.lock|pg-location|\.restoring|pg\.restoring|replaced-.*)$/;

/** Names in a data directory without which there is no installation in it. */
const INSTALLATION = ['pg', 'postgres-password', 'secret-key', 'admin-key', 'demo-key', 'blobs', 'temporal'];

/** Where a restore unpacks to: beside where the parts will lie, so that renaming them is all that is left. */
export function stagingOf(dataDir: string, place: ClusterPlace): UnpackTarget {
  return {
    filesFolder: join(dataDir, '.restoring'),
    clusterFolder: `${place.directory}.restoring`,
    runAs: place.runAs,
  };
}

/** Removes what this restore, or one that was killed, has unpacked. */
export function removeStaging({ filesFolder, clusterFolder }: UnpackTarget): void {
  for (const folder of [filesFolder, clusterFolder]) rmSync(folder, { recursive: true, force: true });
}

/** @throws StartError where an installation's data lie already and are not to be replaced. */
export function refuseData(dataDir: string, place: ClusterPlace, replace: boolean): void {
  if (replace) return;
  const found = [...INSTALLATION.map((name) => join(dataDir, name)), place.directory].find((path) =>
    existsSync(path),
  );
  if (found !== undefined)
    throw new StartError(
      `There is data in ${dataDir} already (${found}): give another folder with --into, or --replace to move aside what is there.`,
    );
}

/**
 * Moves what is there into a folder of its own, deleting nothing; returns that folder, undefined when nothing was there.
 */
export function moveAside(dataDir: string, place: ClusterPlace, now: Date): string | undefined {
  const stamp = timeStamp(now);
  const names = readdirSync(dataDir).filter((name) => !STAYS.test(name));
  const isOutside = dirname(place.directory) !== dataDir;
  if (names.length === 0 && !existsSync(place.directory)) return undefined;
  const aside = join(dataDir, `replaced-${stamp}`);
  mkdirSync(aside, { mode: 0o711 });
  for (const name of names) renameSync(join(dataDir, name), join(aside, name));
  if (isOutside && existsSync(place.directory)) {
    const cluster = `${place.directory}.replaced-${stamp}`;
    renameSync(place.directory, cluster);
    writeFileSync(join(aside, 'pg-location'), `${cluster}\n`);
  }
  return aside;
}

/**
 * Renames what was unpacked to where a start looks for it. The cluster first and its password last: a start that comes
 * in between is refused by the one without the other, and makes no new installation over half of the old.
 */
export function putInPlace(
  staging: UnpackTarget,
  dataDir: string,
  place: ClusterPlace,
  names: readonly string[],
): void {
  renameSync(staging.clusterFolder, place.directory);
  syncFolder(dirname(place.directory));
  const order = [...names].sort(
    (a, b) => Number(a === 'postgres-password') - Number(b === 'postgres-password'),
  );
  for (const name of order) renameSync(join(staging.filesFolder, name), join(dataDir, name));
  syncFolder(dataDir);
}
