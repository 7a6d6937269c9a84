import { statSync } from 'node:fs';
import { join } from 'node:path';
import { translatePgError } from '../../../db/pgErrors.js';
import { DomainError } from '../../../domain/errors.js';
import type { Manifest } from '../../../platform/archive/archiveReader.js';
import { ArchiveWriter, type FinishedArchive } from '../../../platform/archive/archiveWriter.js';
import { readTar } from '../../../platform/archive/tar.js';
import type { Config } from '../../../platform/config.js';
import { takeFileLock } from '../../../platform/embedded/fileLock.js';
import { StartError } from '../../../platform/startError.js';
import {
  type BaseBackup,
  BaseBackupError,
  openBaseBackup,
} from '../../../usecases/installation/backup/baseBackup.js';
import { BookSampler } from '../../../usecases/installation/backup/bookSampler.js';
import type { BookReading } from '../../../usecases/installation/backup/bookTotals.js';
import { describeDatabase } from '../../../usecases/installation/backup/catalogue.js';
import { refuseOwnDatabase, withEmbeddedCluster } from '../embeddedCluster.js';
import { HEADER_NAME, hasOurSchema, makeHeader } from './archiveHeader.js';
import { placeArchive } from './archivePlace.js';
import { addFolders, readInstanceFiles, refuseChangedFiles } from './instanceFiles.js';
import { inBytes, ProgressLine } from './words.js';

/** What stands at a backup's end. */
export interface BackupManifest extends Manifest {
  start_lsn: string;
  stop_lsn: string;
  /** The books at an instant that the backup holds: all of it, and what was committed between it and stop_lsn besides. */
  books: BookReading;
  /** The bills said the same when the backup was over: a restore has exactly books' billed amounts. */
  billed_settled: boolean;
  /** Sizes of the cluster's files without the log, as Postgres expected them. */
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
 * Backs an installation with an embedded Postgres up into one file, while the service runs or without it. Nothing has
 * the final name before all of it is on disk; killed at any moment it leaves the service as it was.
 * @throws StartError with one sentence for what the user can mend.
 */
export async function takeBackup(config: Config, to: string | undefined): Promise<TakenBackup> {
  refuseOwnDatabase(config, 'npm run backup');
  const { dataDir } = config;
  if (!statSync(dataDir, { throwIfNoEntry: false })?.isDirectory())
    throw new StartError(`There is nothing to back up in DATA_DIR ${dataDir}: no npm start has run on it.`);
  const release = lockBackups(dataDir);
  try {
    return await withEmbeddedCluster(config, (url) => writeBackup(dataDir, url, to));
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

async function writeBackup(dataDir: string, url: string, to: string | undefined): Promise<TakenBackup> {
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
    await addFolders(writer, dataDir);
    const manifest = {
      start_lsn: backup.startLsn,
      stop_lsn: stop,
      books,
      billed_settled: billedSettled,
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

/** The cluster's files as the server sends them, under `pg/`. */
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
