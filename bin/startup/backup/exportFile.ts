import { join } from 'node:path';
import type { Manifest } from '../../../platform/archive/archiveReader.js';
import { ArchiveWriter, type FinishedArchive } from '../../../platform/archive/archiveWriter.js';
import type { Config } from '../../../platform/config.js';
import { StartError } from '../../../platform/startError.js';
import { describeDatabase } from '../../../usecases/installation/backup/catalogue.js';
import {
  type ExportOutcome,
  type ExportSchema,
  exportData,
} from '../../../usecases/installation/backup/dataExport.js';
import { withEmbeddedCluster } from '../embeddedCluster.js';
import { explainDatabaseError } from '../firstStart.js';
import { type ArchiveHeader, HEADER_NAME, hasOurSchema, makeHeader } from './archiveHeader.js';
import { placeArchive } from './archivePlace.js';
import { inBytes, ProgressLine } from './words.js';

/** The first entry of an export. */
export interface ExportHeader extends ArchiveHeader {
  schema: ExportSchema;
}

/** The last entry of an export. */
export interface ExportManifest extends Manifest, ExportOutcome {}

/** Where a part of a table lies in an export. */
export const PART_PATH = /^tables\/([a-z0-9_]+)\/\d{6}\.copy$/;

/**
 * Writes every row of the service's database into one file, in a form that another major version of Postgres reads.
 * @throws StartError with one sentence for what the user can mend.
 */
export async function exportToFile(
  config: Config,
  to: string | undefined,
): Promise<{ archive: FinishedArchive; outcome: ExportOutcome }> {
  const path = placeArchive(to, join(config.dataDir, 'backups'), 'export', new Date());
  if (config.databaseUrl === undefined) return withEmbeddedCluster(config, (url) => writeExport(url, path));
  return writeExport(config.databaseDirectUrl ?? config.databaseUrl, path);
}

async function writeExport(
  url: string,
  path: string,
): Promise<{ archive: FinishedArchive; outcome: ExportOutcome }> {
  const now = new Date();
  const database = await describeDatabase(url).catch((error: unknown) => {
    throw explainDatabaseError(error, url);
  });
  if (!database || !hasOurSchema(database))
    throw new StartError('The database is not of this version: run npm start or npm run db:migrate first.');
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
    return { archive: await writer.finish(outcome), outcome };
  } catch (error) {
    throw explainDatabaseError(error, url);
  } finally {
    progress.clear();
    writer.discard();
  }
}
