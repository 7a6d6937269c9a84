import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { countSealedByKey } from '../../db/access/sealedSecrets.js';
import type { Config } from '../../platform/config.js';
import { openDataDir } from '../../platform/embedded/dataDir.js';
import { startPostgres } from '../../platform/embedded/postgres.js';
import { preparePostgresBinaries } from '../../platform/embedded/postgresBinaries.js';
import { type ClusterPlace, placeCluster } from '../../platform/embedded/postgresPlace.js';
import { MonthlyLines } from '../../platform/monthlyLines.js';
import { missingKeySentence } from '../../platform/secretKeys.js';
import { StartError } from '../../platform/startError.js';
import {
  type RestoredBooks,
  readRestoredBooks,
  sumBooks,
} from '../../usecases/installation/backup/bookTotals.js';
import {
  ANCHORS_NAME,
  carryAnchors,
  outsideAnchorFolder,
  recordRestore,
} from '../auditLog/verifyAuditLogs.js';
import { useToolDatabase } from '../service/prepareDatabase.js';
import { refuseOwnDatabase } from '../service/toolDatabase.js';
import { findSecretKeys } from '../wiring/requirements.js';
import {
  type ArchiveHeader,
  hasOurSchema,
  majorOf,
  moveAside,
  putInPlace,
  readHeader,
  refuseData,
  removeStaging,
  stagingOf,
  type UnpackTarget,
  unpackBackup,
} from './archive.js';
import type { BackupManifest } from './takeBackup.js';
import { describeBooks, inSeconds } from './words.js';

export interface RestoreOptions {
  file: string;
  /** Absolute; the target data directory. */
  dataDir: string;
  /** Whether existing data are moved aside. */
  replace: boolean;
}

export interface RestoredInstallation {
  header: ArchiveHeader;
  manifest: BackupManifest;
  books: RestoredBooks;
  /** A sentence about a problem of the secret key; undefined: none. */
  keyProblem: string | undefined;
  /** The folder with the former data; undefined: there were none. */
  aside: string | undefined;
  tookMs: number;
}

/**
 * Restores a backup into an unused data directory. It is unpacked beside its final place and compared file by file;
 * Postgres replays its log there, and the totals are read; only then is it moved to its place.
 * @throws StartError with one sentence for causes that the user can fix; the data directory is then unchanged.
 */
export async function restoreBackup(config: Config, options: RestoreOptions): Promise<RestoredInstallation> {
  refuseOwnDatabase(config, './trueup restore');
  const began = performance.now();
  const header = await readHeader(options.file, 'backup');
  refuseOtherServer(header, config);
  const dataDir = openDataDir(options.dataDir);
  try {
    const place = placeCluster(options.dataDir);
    refuseData(options.dataDir, place, options.replace);
    const staging = stagingOf(options.dataDir, place);
    removeStaging(staging);
    try {
      const manifest = await unpackBackup(options.file, staging);
      const outside = outsideAnchorFolder(config);
      const anchors = new MonthlyLines(outside ?? join(staging.filesFolder, ANCHORS_NAME));
      if (outside === undefined && options.replace)
        carryAnchors(join(options.dataDir, ANCHORS_NAME), anchors.folder);
      const { marks, ...found } = await tryCluster(config, staging, header, manifest, anchors);
      if (outside === undefined) anchors.append(marks, new Date());
      const names = new Set([...namesOf(manifest), ...(anchors.folder === outside ? [] : [ANCHORS_NAME])]);
      const aside = options.replace ? moveAside(options.dataDir, place, new Date()) : undefined;
      putInPlace(
        staging,
        options.dataDir,
        place,
        [...names].filter((name) => existsSync(join(staging.filesFolder, name))),
      );
      if (outside !== undefined) anchors.append(marks, new Date());
      return { header, manifest, ...found, aside, tookMs: Math.round(performance.now() - began) };
    } finally {
      removeStaging(staging);
    }
  } finally {
    dataDir.release();
  }
}

/** @throws StartError for a cluster that this Postgres or this platform cannot read. */
function refuseOtherServer(header: ArchiveHeader, config: Config): void {
  const { version } = preparePostgresBinaries(config.cacheDir, undefined);
  const [theirs, ours] = [majorOf(header.postgres_version), majorOf(version)];
  if (theirs !== ours)
    throw new StartError(
      `The backup is of Postgres ${theirs} and this version brings Postgres ${ours}: restore it with Trueup ${header.trueup_version}, then move the data by ./trueup export data and ./trueup import data.`,
    );
  if (header.architecture !== process.arch || header.platform !== process.platform)
    throw new StartError(
      `The backup is of a ${header.platform} ${header.architecture} machine and this is ${process.platform} ${process.arch}, which may not read its files: restore it on such a machine, then move the data by ./trueup export data and ./trueup import data.`,
    );
}

/** Entries of the data directory that the backup contains. */
function namesOf(manifest: BackupManifest): string[] {
  const names = manifest.files.flatMap(({ path }) => /^data\/([^/]+)/.exec(path)?.[1] ?? []);
  return [...new Set(names)];
}

/** Starts Postgres on the unpacked cluster, which replays the log to its end; then reads the totals. */
async function tryCluster(
  config: Config,
  staging: UnpackTarget,
  header: ArchiveHeader,
  manifest: BackupManifest,
  anchors: MonthlyLines,
): Promise<Pick<RestoredInstallation, 'books' | 'keyProblem'> & { marks: string[] }> {
  if (!existsSync(join(staging.filesFolder, 'postgres-password')))
    throw new StartError(
      'The backup holds no postgres-password, so its database cannot be opened: it is damaged.',
    );
  const place: ClusterPlace = { directory: staging.clusterFolder, runAs: staging.runAs };
  const server = await startPostgres({ dataDir: staging.filesFolder, cacheDir: config.cacheDir, place });
  try {
    const isOurs = hasOurSchema(header);
    const books = await readRestoredBooks(server.url, manifest, { billed: isOurs });
    if (!isOurs) return { books, keyProblem: undefined, marks: [] };
    return {
      books,
      keyProblem: await findKeyProblem(config, server.url, staging.filesFolder),
      marks: await markRestore(config, server.url, staging.filesFolder, header, anchors),
    };
  } finally {
    await server.stop();
  }
}

/** Records the restore in the audit log, and the places where each chain continues in its anchors. */
async function markRestore(
  config: Config,
  url: string,
  filesFolder: string,
  header: ArchiveHeader,
  anchors: MonthlyLines,
): Promise<string[]> {
  const keys = findSecretKeys(config, filesFolder);
  if (!keys) return [];
  return useToolDatabase(url, (database) =>
    recordRestore(database, keys, { takenAt: header.created_at }, anchors.listFiles()),
  );
}

/** The message of the next start, with this command's settings, about the encrypted data in the backup. */
async function findKeyProblem(config: Config, url: string, filesFolder: string): Promise<string | undefined> {
  const sealed = await useToolDatabase(url, countSealedByKey);
  if (sealed.size === 0) return undefined;
  const keys = findSecretKeys(config, filesFolder);
  if (keys) return missingKeySentence(sealed, keys);
  return `the backup holds no secret-key: providers' credentials or webhook secrets in it were sealed with ${[...sealed.keys()].join(', ')}; start with the TRUEUP_SECRET_KEY that the installation had.`;
}

/** The report of a restore for people: its place, the totals, the next steps. */
export function restoreReport(restored: RestoredInstallation, dataDir: string, usualDataDir: string): string {
  const { header, manifest, books, aside, keyProblem } = restored;
  const then = manifest.books;
  const lines = [
    `Restored ${dataDir} in ${inSeconds(restored.tookMs)}: the backup of ${header.created_at} by Trueup ${header.trueup_version}, every file matches the manifest.`,
    `  books at ${then.at}: ${describeBooks(then.organizations)}`,
    `  restored:                          ${describeBooks(books.now)}`,
    ...moreSince(restored),
  ];
  if (books.differences.length > 0)
    lines.push(
      '  The books differ. The data is in place; keep the backup, and report this:',
      ...books.differences,
    );
  else lines.push('  The events of that moment add up to the same, and so do the totals of now.');
  if (!hasOurSchema(header)) lines.push('  It is of an earlier version: npm start brings it up to date.');
  if (manifest.blobs && 'bucket' in manifest.blobs)
    lines.push(`  Uploaded files are in ${manifest.blobs.bucket}: start with the same settings S3_….`);
  if (aside !== undefined) lines.push(`  What was there before lies in ${aside}.`);
  if (keyProblem !== undefined) lines.push(`  Secret key: ${keyProblem}`);
  const start = dataDir === usualDataDir ? 'npm start' : `DATA_DIR=${dataDir} npm start`;
  lines.push(`  Next: ${start}. Runs that were under way go on by themselves.`);
  return lines.join('\n');
}

/** Calls and bills that were committed between the reading of the totals and the backup's end. */
function moreSince({ manifest, books }: RestoredInstallation): string[] {
  const [then, now] = [sumBooks(manifest.books.organizations), sumBooks(books.now)];
  const lines: string[] = [];
  const more = now.calls - then.calls;
  if (more !== 0 || now.costUsd !== then.costUsd)
    lines.push(`  ${more} calls more came between that moment and the backup's end at ${manifest.stop_lsn}.`);
  if (now.billedUsd === null || then.billedUsd === null || now.billedUsd === then.billedUsd) return lines;
  if (!manifest.billed_settled)
    lines.push('  Bills were being stored while the backup ran: what they add up to is of its end.');
  return lines;
}
