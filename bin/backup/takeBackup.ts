import {
  closeSync,
  createReadStream,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { translatePgError } from '../../db/pgErrors.js';
import { DomainError } from '../../domain/errors.js';
import type { Manifest } from '../../platform/archive/archiveReader.js';
import { ArchiveWriter, type FinishedArchive } from '../../platform/archive/archiveWriter.js';
import { readTar } from '../../platform/archive/tar.js';
import type { Config } from '../../platform/config.js';
import { takeFileLock } from '../../platform/embedded/fileLock.js';
import { StartError } from '../../platform/startError.js';
import {
  type BaseBackup,
  BaseBackupError,
  openBaseBackup,
} from '../../usecases/installation/backup/baseBackup.js';
import { type BookReading, BookSampler } from '../../usecases/installation/backup/bookTotals.js';
import { describeDatabase } from '../../usecases/installation/backup/catalogue.js';
import { ANCHORS_NAME } from '../auditLog/verifyAuditLogs.js';
import { refuseOwnDatabase, withEmbeddedCluster } from '../service/toolDatabase.js';
import { blobStoreOf } from '../wiring/outside.js';
import { HEADER_NAME, hasOurSchema, makeHeader, placeArchive } from './archive.js';
import { inBytes, ProgressLine } from './words.js';

/** The last entry of a backup. */
export interface BackupManifest extends Manifest {
  start_lsn: string;
  stop_lsn: string;
  /** The totals at a moment within the backup, which also contains all commits between that moment and stop_lsn. */
  books: BookReading;
  /** Whether the bills were unchanged at the backup's end: a restore then has exactly the billed amounts of `books`. */
  billed_settled: boolean;
  /** Uploaded files: their number in the backup, or their bucket. Absent in older backups. */
  blobs?: { files: number; bytes: number } | { bucket: string };
  /** Size of the cluster's files without the log, as Postgres estimated it. */
  estimated_bytes: number;
  content_bytes: number;
  took_ms: number;
}

export interface TakenBackup {
  archive: FinishedArchive;
  manifest: Omit<BackupManifest, 'files'>;
  files: string[];
}

/** Folders of the cluster that hold the log. */
const LOG_FOLDER = 'pg/pg_wal/';

/**
 * Backs an installation with an embedded Postgres up into one file, while the service runs or is stopped. The file gets
 * its final name once it is complete and on disk; a kill at any moment leaves the service unchanged.
 * @throws StartError with one sentence for causes that the user can fix.
 */
export async function takeBackup(config: Config, to: string | undefined): Promise<TakenBackup> {
  refuseOwnDatabase(config, './trueup backup');
  const { dataDir } = config;
  if (!statSync(dataDir, { throwIfNoEntry: false })?.isDirectory())
    throw new StartError(`There is nothing to back up in DATA_DIR ${dataDir}: no npm start has run on it.`);
  const release = lockBackups(dataDir);
  try {
    return await withEmbeddedCluster(config, (url) => writeBackup(config, url, to));
  } finally {
    release();
  }
}

function lockBackups(dataDir: string): () => void {
  const lock = takeFileLock(join(dataDir, 'backup.lock'));
  if ('heldBy' in lock)
    throw new StartError(`Process ${lock.heldBy} is backing ${dataDir} up: wait until it is done.`);
  return lock.release;
}

async function writeBackup(config: Config, url: string, to: string | undefined): Promise<TakenBackup> {
  const { dataDir } = config;
  const began = performance.now();
  const now = new Date();
  const database = await describeDatabase(url);
  if (!database)
    throw new StartError(`There is nothing to back up in DATA_DIR ${dataDir}: no npm start has run on it.`);
  const header = makeHeader('backup', database, now);
  const files = readInstanceFiles(dataDir);
  const writer = new ArchiveWriter(placeArchive(to, join(dataDir, 'backups'), 'backup', now), now.getTime());
  let sampler: BookSampler | undefined;
  let backup: BaseBackup | undefined;
  try {
    await writer.addBytes(HEADER_NAME, Buffer.from(`${JSON.stringify(header, null, 1)}\n`));
    sampler = await BookSampler.start(url, { billed: hasOurSchema(header) });
    backup = await openBaseBackup(url);
    await addCluster(writer, backup);
    const stop = await backup.stopLsn();
    const { books, billedSettled } = await sampler.finish(stop);
    refuseChangedFiles(files, readInstanceFiles(dataDir));
    for (const { name, bytes, mode } of files) await writer.addBytes(`data/${name}`, bytes, mode);
    const blobs = await addFolder(writer, dataDir, BLOBS_NAME);
    await addFolder(writer, dataDir, ANCHORS_NAME);
    const manifest = {
      start_lsn: backup.startLsn,
      stop_lsn: stop,
      books,
      billed_settled: billedSettled,
      blobs: config.blobs.store === 's3' ? { bucket: blobStoreOf(config).place } : blobs,
      estimated_bytes: backup.estimatedBytes,
      content_bytes: writer.contentBytes,
      took_ms: Math.round(performance.now() - began),
    };
    return { archive: await writer.finish(manifest), manifest, files: files.map(({ name }) => name) };
  } catch (error) {
    throw explainBackupError(error);
  } finally {
    writer.discard();
    await backup?.close();
    await sampler?.close();
  }
}

/** Adds the cluster's files as the server sends them, under `pg/`. */
async function addCluster(writer: ArchiveWriter, backup: BaseBackup): Promise<void> {
  const progress = new ProgressLine();
  for await (const entry of readTar(backup.tar)) {
    const path = `pg/${entry.path.replace(/^\.\//, '').replace(/\/$/, '')}`;
    if (entry.type === 'directory') await writer.addDirectory(path, entry.mode);
    else await writer.addStream({ ...entry, path }, entry.body);
    const part = path.startsWith(LOG_FOLDER)
      ? 'write-ahead log'
      : `of about ${inBytes(backup.estimatedBytes)}`;
    progress.show(`${inBytes(writer.contentBytes)} ${part}, ${inBytes(writer.sizeBytes)} written`);
  }
  progress.clear();
}

function explainBackupError(error: unknown): unknown {
  if (error instanceof BaseBackupError) return new StartError(`No backup was made: ${error.message}.`);
  const translated = translatePgError(error);
  if (translated instanceof DomainError)
    return new StartError(
      `Postgres went away or could not go on while the backup ran (${(error as Error).message}): no backup was made; run it again.`,
      { cause: error },
    );
  if ((error as { code?: string }).code === 'XX001')
    return new StartError(
      `Postgres found a damaged page in its files, so no backup was made (${(error as Error).message}): keep every older backup, and look at logs/postgres.log in DATA_DIR.`,
      { cause: error },
    );
  return error;
}

/** Files of a data directory that belong to this machine or the running start, and to no backup. */
const OF_THIS_MACHINE = new Set(['lock', 'backup.lock', 'runtime.json', 'ports.json', 'pg-location']);
/** Folder of uploaded files. */
const BLOBS_NAME = 'blobs';
/** Largest file that is treated as a key or the like. */
const FILE_BYTES_MAX = 1_048_576;

/** A small file of the data directory: a key, a password. */
interface InstanceFile {
  name: string;
  mode: number;
  bytes: Buffer;
}

/** All files directly in the data directory, of any version, except those of this machine. */
function readInstanceFiles(dataDir: string): InstanceFile[] {
  return readdirSync(dataDir)
    .filter((name) => !name.startsWith('.') && !OF_THIS_MACHINE.has(name) && !/^.+\.\d+$/.test(name))
    .sort()
    .flatMap((name) => {
      const found = lstatSync(join(dataDir, name), { throwIfNoEntry: false });
      if (!found?.isFile() || found.size > FILE_BYTES_MAX) return [];
      return [{ name, mode: found.mode & 0o777, bytes: readFileSync(join(dataDir, name)) }];
    });
}

/** @throws StartError when a key was replaced during the backup: it might not decrypt the backup's data. */
function refuseChangedFiles(before: readonly InstanceFile[], after: readonly InstanceFile[]): void {
  const changed = after.find(
    ({ name, bytes }) => !before.find((file) => file.name === name)?.bytes.equals(bytes),
  );
  const gone = before.find(({ name }) => !after.some((file) => file.name === name));
  const name = changed?.name ?? gone?.name;
  if (name !== undefined)
    throw new StartError(`${name} was replaced while the backup ran, so the two may not fit: run it again.`);
}

/** Adds an existing folder with all its content under `data/`; returns its number of files and bytes. */
async function addFolder(
  writer: ArchiveWriter,
  dataDir: string,
  folder: string,
): Promise<{ files: number; bytes: number }> {
  const added = { files: 0, bytes: 0 };
  const found = statSync(join(dataDir, folder), { throwIfNoEntry: false });
  if (found === undefined) return added;
  await writer.addDirectory(`data/${folder}`, found.mode & 0o777);
  for (const entry of readdirSync(join(dataDir, folder), { withFileTypes: true })) {
    // Files that are being stored.
    if (entry.name.startsWith('.')) continue;
    const path = `${folder}/${entry.name}`;
    const { files, bytes } = entry.isDirectory()
      ? await addFolder(writer, dataDir, path)
      : { files: 1, bytes: entry.isFile() ? await addFile(writer, dataDir, path) : undefined };
    if (bytes === undefined) continue;
    added.files += files;
    added.bytes += bytes;
  }
  return added;
}

/** Returns the file's size; undefined: it was deleted meanwhile. */
async function addFile(writer: ArchiveWriter, dataDir: string, path: string): Promise<number | undefined> {
  let file: number;
  try {
    file = openSync(join(dataDir, path), 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const { size, mode } = fstatSync(file);
    // A file of anchors may grow meanwhile: its present bytes are added.
    const bytes: AsyncIterable<Buffer> =
      size === 0 ? Readable.from([]) : createReadStream('', { fd: file, end: size - 1, autoClose: false });
    await writer.addStream({ path: `data/${path}`, sizeBytes: size, mode: mode & 0o777 }, bytes);
    return size;
  } finally {
    closeSync(file);
  }
}
