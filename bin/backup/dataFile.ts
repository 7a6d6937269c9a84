import { join } from 'node:path';
import { type BlobStore, isBlobKey } from '../../adapters/blobs/blobStore.js';
import { migrate } from '../../db/migrate.js';
import { type Manifest, readArchive } from '../../platform/archive/archiveReader.js';
import { ArchiveWriter, type FinishedArchive } from '../../platform/archive/archiveWriter.js';
import type { Config } from '../../platform/config.js';
import { openDataDir } from '../../platform/embedded/dataDir.js';
import { startPostgres } from '../../platform/embedded/postgres.js';
import { StartError } from '../../platform/startError.js';
import type { BookTotals } from '../../usecases/installation/backup/bookTotals.js';
import { describeDatabase } from '../../usecases/installation/backup/catalogue.js';
import {
  type ExportOutcome,
  type ExportSchema,
  exportData,
} from '../../usecases/installation/backup/dataExport.js';
import {
  checkImportedBooks,
  type DataImport,
  ImportRefused,
  openImport,
} from '../../usecases/installation/backup/dataImport.js';
import { explainDatabaseError } from '../service/prepareDatabase.js';
import { withEmbeddedCluster } from '../service/toolDatabase.js';
import { blobStoreOf } from '../wiring/outside.js';
import {
  type ArchiveHeader,
  HEADER_NAME,
  hasOurSchema,
  makeHeader,
  passHeader,
  placeArchive,
  readHeader,
} from './archive.js';
import { inBytes, ProgressLine } from './words.js';

/** The first entry of an export. */
interface ExportHeader extends ArchiveHeader {
  schema: ExportSchema;
}

/** The last entry of an export. */
export interface ExportManifest extends Manifest, ExportOutcome {}

/** Path of a part of a table in an export. */
const PART_PATH = /^tables\/([a-z0-9_]+)\/\d{6}\.copy$/;
/** Path of an uploaded file in an export, by its key. */
const BLOB_PATH = /^blobs\/(.+)$/;
const BLOB_MODE = 0o600;

interface WrittenExport {
  archive: FinishedArchive;
  outcome: ExportOutcome;
  /** Number of its uploaded files; undefined: they stay in their bucket. */
  blobs: number | undefined;
}

/**
 * Writes all rows of the service's database to one file, in a form that other major versions of Postgres read, and the
 * uploaded files, unless they are in a bucket.
 * @throws StartError with one sentence for causes that the user can fix.
 */
export async function exportToFile(config: Config, to: string | undefined): Promise<WrittenExport> {
  const path = placeArchive(to, join(config.dataDir, 'backups'), 'export', new Date());
  const blobs = blobStoreOf(config);
  if (config.databaseUrl === undefined)
    return withEmbeddedCluster(config, (url) => writeExport(url, blobs, path));
  return writeExport(config.databaseDirectUrl ?? config.databaseUrl, blobs, path);
}

async function writeExport(url: string, store: BlobStore, path: string): Promise<WrittenExport> {
  const now = new Date();
  const database = await describeDatabase(url).catch((error: unknown) => {
    throw explainDatabaseError(error, url);
  });
  if (!database || !hasOurSchema(database))
    throw new StartError('The database is not of this version: run npm start or ./trueup migrate first.');
  const writer = new ArchiveWriter(path, now.getTime());
  const progress = new ProgressLine();
  try {
    const outcome = await exportData(url, {
      async begin(schema) {
        const header: ExportHeader = { ...makeHeader('export', database, now), schema };
        await writer.addBytes(HEADER_NAME, Buffer.from(`${JSON.stringify(header, null, 1)}\n`));
      },
      async part(table, ordinal, bytes) {
        await writer.addBytes(`tables/${table}/${String(ordinal).padStart(6, '0')}.copy`, bytes);
        progress.show(`${table}: ${inBytes(writer.contentBytes)} read, ${inBytes(writer.sizeBytes)} written`);
      },
    });
    const blobs = store.kind === 's3' ? undefined : await addBlobs(writer, store);
    return { archive: await writer.finish(outcome), outcome, blobs };
  } catch (error) {
    throw explainDatabaseError(error, url);
  } finally {
    progress.clear();
    writer.discard();
  }
}

/** Adds the uploaded files after the rows: a file that was uploaded meanwhile is a surplus, and none is missing. */
async function addBlobs(writer: ArchiveWriter, store: BlobStore): Promise<number> {
  let count = 0;
  for await (const { key } of store.stream('')) {
    const { sizeBytes, stream } = await store.get(key);
    await writer.addStream({ path: `blobs/${key}`, sizeBytes, mode: BLOB_MODE }, stream);
    count += 1;
  }
  return count;
}

interface ImportedData {
  header: ExportHeader;
  /** Number of uploaded files. */
  blobs: number;
  books: BookTotals[];
  rows: number;
}

/**
 * Imports an export into an empty database: the one that DATABASE_URL names, else a new embedded one. The schema is
 * first created at the export's version and migrated afterwards; the rows are stored in one transaction. The totals are
 * compared before it commits, or after the migrations between.
 * @throws StartError with one sentence for causes that the user can fix; the database then has none of the rows, and a
 * repeated import replaces uploaded files that were already stored.
 */
export async function importFromFile(config: Config, file: string): Promise<ImportedData> {
  const header = await readHeader<ExportHeader>(file, 'export');
  const blobs = blobStoreOf(config);
  if (config.databaseUrl !== undefined)
    return readInto(config.databaseDirectUrl ?? config.databaseUrl, blobs, file, header);
  const dataDir = openDataDir(config.dataDir);
  try {
    const server = await startPostgres({ dataDir: config.dataDir, cacheDir: config.cacheDir });
    try {
      return await readInto(server.url, blobs, file, header);
    } finally {
      await server.stop();
    }
  } finally {
    dataDir.release();
  }
}

async function readInto(
  url: string,
  store: BlobStore,
  file: string,
  header: ExportHeader,
): Promise<ImportedData> {
  let opened: DataImport | undefined;
  const progress = new ProgressLine();
  try {
    await migrate(url, header.migrations.at(-1));
    opened = await openImport(url, header.schema);
    const { manifest, blobs } = await readParts(file, opened, store, progress);
    await opened.finish(manifest, hasOurSchema(header));
    await migrate(url);
    const books = await checkImportedBooks(url, manifest.books);
    return { header, blobs, books, rows: manifest.tables.reduce((sum, table) => sum + table.rows, 0) };
  } catch (error) {
    if (error instanceof ImportRefused) throw new StartError(`Nothing was imported: ${error.message}.`);
    const { code = '', message } = error as { code?: string; message: string };
    // Class 23: a constraint; class 22: a value.
    if (/^2[23]/.test(code))
      throw new StartError(
        `Nothing was imported: a row of the export breaks a rule of the database (${message}).`,
        {
          cause: error,
        },
      );
    throw explainDatabaseError(error, url);
  } finally {
    progress.clear();
    await opened?.close();
  }
}

async function readParts(
  file: string,
  data: DataImport,
  store: BlobStore,
  progress: ProgressLine,
): Promise<{ manifest: ExportManifest; blobs: number }> {
  let bytes = 0;
  let blobs = 0;
  const manifest = await readArchive<ExportManifest>(file, async (entry) => {
    const key = BLOB_PATH.exec(entry.path)?.[1];
    if (key !== undefined && entry.type === 'file' && isBlobKey(key)) {
      await store.put(key, entry.body, { bytesMax: entry.sizeBytes });
      blobs += 1;
      return;
    }
    const table = PART_PATH.exec(entry.path)?.[1];
    if (table === undefined) return passHeader(entry);
    await data.part(table, entry.body);
    bytes += entry.sizeBytes;
    progress.show(`${table}: ${inBytes(bytes)} imported`);
  });
  return { manifest, blobs };
}
