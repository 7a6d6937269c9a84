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
import { type OpenTarEntry, TarError } from '../../platform/archive/tar.js';
import { type ClusterPlace, makeServerDir } from '../../platform/embedded/postgresPlace.js';
import type { RunAs } from '../../platform/embedded/serverProcess.js';
import { TRUEUP_VERSION } from '../../platform/serverLimits.js';
import { StartError } from '../../platform/startError.js';
import type { BackupManifest } from './takeBackup.js';
import { inBytes, ProgressLine } from './words.js';

/** The first entry of every archive: it identifies the archive before the rest is read. */
export const HEADER_NAME = 'header.json';

const FORMAT = 'trueup-archive';
/** Increased when an older reader would misread the format. */
const FORMAT_VERSION = 1;

/** A backup contains the cluster's files unchanged; an export contains every row as text. */
export type ArchiveKind = 'backup' | 'export';

export interface ArchiveHeader {
  format: string;
  format_version: number;
  kind: ArchiveKind;
  trueup_version: string;
  /** Names of the migrations of the database. */
  migrations: string[];
  postgres_version: string;
  /** The platform that a backup's files require. */
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
 * Reads an archive's header.
 * @throws StartError when it is no archive, of the other kind, or of a later version of Trueup.
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

/** `20260131T120000Z`, for file names. */
export function timeStamp(now: Date): string {
  return now
    .toISOString()
    .replace(/[-:]/g, '')
    .replace(/\.\d+Z$/, 'Z');
}

/**
 * Path of a new archive: the file that `--to` names, or a new name in the folder that it names, or one in `folder`.
 * Creates only `folder`, for its owner alone.
 * @throws StartError when the file exists already or its folder does not.
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

/** Target folders of an unpacked backup. */
export interface UnpackTarget {
  /** Keys and other files of the data directory. */
  filesFolder: string;
  clusterFolder: string;
  /** Owner of the cluster. */
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
      if (rest === undefined) return passHeader(entry);
      // Postgres syncs a cluster to disk before it replays a log into it; the keys must be synced here.
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

/**
 * Reads past the header, the only entry of an archive that is neither stored nor unpacked.
 * @throws TarError for another entry.
 */
export async function passHeader(entry: OpenTarEntry): Promise<void> {
  if (entry.path !== HEADER_NAME) throw misplaced(entry);
  for await (const _ of entry.body);
}

const misplaced = ({ path }: OpenTarEntry): TarError => new TarError(`it holds ${path}, which has no place`);

/** Codes of the file system for a path that an undamaged archive never has: its folder comes first, and itself once. */
const MISPLACED = new Set(['EEXIST', 'EISDIR', 'ENAMETOOLONG', 'ENOENT', 'ENOTDIR']);

async function unpackEntry(
  entry: OpenTarEntry,
  path: string,
  { runAs, sync }: { runAs: RunAs | undefined; sync: boolean },
): Promise<void> {
  const place = <T>(act: () => T): T => {
    try {
      return act();
    } catch (error) {
      throw MISPLACED.has((error as NodeJS.ErrnoException).code ?? '') ? misplaced(entry) : error;
    }
  };
  if (entry.type === 'directory') {
    place(() => mkdirSync(path, { recursive: true }));
  } else {
    const file = place(() => openSync(path, 'wx', 0o600));
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

/** Files that stay when a data directory's content is moved aside: the lock, the backups, earlier content. */
const STAYS = /^(lock|backups|backup\.lock|pg-location|\.restoring|pg\.restoring|replaced-.*)$/;

/** Files in a data directory of which any shows an installation. */
const INSTALLATION = ['pg', 'postgres-password', 'secret-key', 'admin-key', 'demo-key', 'blobs', 'temporal'];

/** Temporary folders of a restore, beside the final places, so that the last step is a rename. */
export function stagingOf(dataDir: string, place: ClusterPlace): UnpackTarget {
  return {
    filesFolder: join(dataDir, '.restoring'),
    clusterFolder: `${place.directory}.restoring`,
    runAs: place.runAs,
  };
}

/** Removes the unpacked files of this restore, or of a killed one. */
export function removeStaging({ filesFolder, clusterFolder }: UnpackTarget): void {
  for (const folder of [filesFolder, clusterFolder]) rmSync(folder, { recursive: true, force: true });
}

/** @throws StartError where an installation's data exist and must not be replaced. */
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

/** Moves existing data into a new folder without deleting any; returns that folder, undefined: there was none. */
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
 * Renames the unpacked files to their final places, the cluster first and its password last: a start in between is
 * refused, because one exists without the other, and creates no new installation over half of the old one.
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
