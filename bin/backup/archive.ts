import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { MIGRATIONS } from '../../db/migrations/index.js';
import { readFirstEntry } from '../../platform/archive/archiveReader.js';
import { TRUEUP_VERSION } from '../../platform/serverLimits.js';
import { StartError } from '../../platform/startError.js';

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
