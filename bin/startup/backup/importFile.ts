import { migrate } from '../../../db/migrate.js';
import { readArchive } from '../../../platform/archive/archiveReader.js';
import type { Config } from '../../../platform/config.js';
import { openDataDir } from '../../../platform/embedded/dataDir.js';
import { startPostgres } from '../../../platform/embedded/postgres.js';
import { StartError } from '../../../platform/startError.js';
import type { BookTotals } from '../../../usecases/installation/backup/bookTotals.js';
import {
  checkImportedBooks,
  type DataImport,
  ImportRefused,
  openImport,
} from '../../../usecases/installation/backup/dataImport.js';
import { explainDatabaseError } from '../firstStart.js';
import { HEADER_NAME, hasOurSchema, readHeader } from './archiveHeader.js';
import { type ExportHeader, type ExportManifest, PART_PATH } from './exportFile.js';
import { inBytes, ProgressLine } from './words.js';

export interface ImportedData {
  header: ExportHeader;
  books: BookTotals[];
  rows: number;
}

/**
 * Brings an export into an empty database: the one that DATABASE_URL names, else a new embedded one. The schema is made
 * first, as far as the export's was, and brought up to date afterwards; the rows come in one transaction. The books are
 * compared before it commits, or at the end where migrations lie between.
 * @throws StartError with one sentence for what the user can mend; the database then holds none of the rows.
 */
export async function importFromFile(config: Config, file: string): Promise<ImportedData> {
  const header = await readHeader<ExportHeader>(file, 'export');
  if (config.databaseUrl !== undefined)
    return readInto(config.databaseDirectUrl ?? config.databaseUrl, file, header);
  const dataDir = openDataDir(config.dataDir);
  try {
    const server = await startPostgres({ dataDir: config.dataDir, cacheDir: config.cacheDir });
    try {
      return await readInto(server.url, file, header);
    } finally {
      await server.stop();
    }
  } finally {
    dataDir.release();
  }
}

async function readInto(url: string, file: string, header: ExportHeader): Promise<ImportedData> {
  let opened: DataImport | undefined;
  const progress = new ProgressLine();
  try {
    await migrate(url, header.migrations.at(-1));
    opened = await openImport(url, header.schema);
    const manifest = await readParts(file, opened, progress);
    await opened.finish(manifest, hasOurSchema(header));
    await migrate(url);
    const books = await checkImportedBooks(url, manifest.books);
    return { header, books, rows: manifest.tables.reduce((sum, table) => sum + table.rows, 0) };
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

async function readParts(file: string, data: DataImport, progress: ProgressLine): Promise<ExportManifest> {
  let bytes = 0;
  return readArchive<ExportManifest>(file, async (entry) => {
    const table = PART_PATH.exec(entry.path)?.[1];
    if (table === undefined) {
      if (entry.path !== HEADER_NAME)
        throw new ImportRefused(`the export holds ${entry.path}, which has no place`);
      for await (const _ of entry.body);
      return;
    }
    await data.part(table, entry.body);
    bytes += entry.sizeBytes;
    progress.show(`${table}: ${inBytes(bytes)} imported`);
  });
}
