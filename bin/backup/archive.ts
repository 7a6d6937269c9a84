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
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { MIGRATIONS } from '../../db/migrations/index.js';
import { readArchive, readFirstEntry } from '../../platform/archive/archiveReader.js';
import { syncFolder } from '../../platform/archive/archiveWriter.js';
import type { OpenTarEntry } from '../../platform/archive/tar.js';
import { type ClusterPlace, makeServerDir } from '../../platform/embedded/postgresPlace.js';
import type { RunAs } from '../../platform/embedded/serverProcess.js';
import { TRUEUP_VERSION } from '../../platform/serverLimits.js';
import { StartError } from '../../platform/startError.js';
import type { BackupManifest } from './takeBackup.js';
import { inBytes, ProgressLine } from './words.js';

/** The first entry of every archive: what it is, before anything else of it is read. */
export const HEADER_NAME = 'header.json';

const FORMAT = 'trueup-archive';
/** Raised when an older reader would misunderstand what is written. */
const FORMAT_VERSION = 1;

/** A backup is the cluster's files as they are; an export is every row as text. */
export type ArchiveKind = 'backup' | 'export';

export interface ArchiveHeader {
  format: string;
  format_version: number;
  kind: ArchiveKind;
  trueup_version: string;
  /** Names of the migrations that the database had. */
  migrations: string[];
  postgres_version: string;
  /** What the files of a backup are bound to. */
  platform: string;
  architecture: string;
  /** RFC 3339. */
  created_at: string;
}

export function makeHeader(
  kind: ArchiveKind,
  database: { postgresVersion: string; migrations: string[] },
  createdAt: Date,
): ArchiveHeader {
  return {
    format: FORMAT,
    format_version: FORMAT_VERSION,
    kind,
    trueup_version: TRUEUP_VERSION,
    migrations: database.migrations,
    postgres_version: database.postgresVersion,
    platform: process.platform,
    architecture: process.arch,
    created_at: createdAt.toISOString(),
  };
}

/** `18` of `18.4`. */
export function majorOf(version: string): string {
  return version.split('.')[0] ?? '';
}

/**
 * Reads what an archive is.
 * @throws StartError when it is none, of the other kind, or of a later version of Trueup.
 */
export async function readHeader<H extends ArchiveHeader>(path: string, kind: ArchiveKind): Promise<H> {
  let header: Partial<H>;
  try {
    header = JSON.parse(await readFirstEntry(path, HEADER_NAME)) as Partial<H>;
  } catch (error) {
    if (error instanceof StartError) throw error;
    header = {};
  }
  if (header.format !== FORMAT || !Array.isArray(header.migrations))
    throw new StartError(`${path} is no archive of Trueup: give a file that backup or export data wrote.`);
  if (header.kind !== kind) {
    const other = header.kind === 'backup' ? './trueup restore' : './trueup import data';
    throw new StartError(
      `${path} is ${header.kind === 'backup' ? 'a backup' : 'an export'}: ${other} takes it.`,
    );
  }
  const known = new Set(MIGRATIONS.map((migration) => migration.name));
  if ((header.format_version ?? 0) > FORMAT_VERSION || header.migrations.some((name) => !known.has(name)))
    throw new StartError(
      `${path} was written by Trueup ${header.trueup_version}, which is newer than this ${TRUEUP_VERSION}: use that version or a later one.`,
    );
  return header as H;
}

/** Whether the database of an archive has exactly the migrations of this version. */
export function hasOurSchema(header: Pick<ArchiveHeader, 'migrations'>): boolean {
  return header.migrations.length === MIGRATIONS.length;
}

/** `20260131T120000Z`, for names of files. */
export function timeStamp(now: Date): string {
  return now
    .toISOString()
    .replace(/[-:]/g, '')
    .replace(/\.\d+Z$/, 'Z');
}

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
  const name = `trueup-${kind === 'backup' ? '' : 'export-'}${timeStamp(now)}.tar.gz`;
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
