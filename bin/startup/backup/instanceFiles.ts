import { createReadStream, existsSync, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { ArchiveWriter } from '../../../platform/archive/archiveWriter.js';
import { StartError } from '../../../platform/startError.js';
import { ANCHORS_NAME } from './restoredAuditLog.js';

/** What of a data directory belongs to this machine or to the start that is running, and so into no backup. */
const OF_THIS_MACHINE = new Set(['lock', 'backup.lock', 'runtime.json', 'ports.json', 'pg-location']);
/** Folders whose files belong to the installation. The workflow engine's are not among them (docs/decisions/0038). */
const FOLDERS = ['blobs', ANCHORS_NAME];
/** Keys and the like; a larger file is no such thing. */
const FILE_BYTES_MAX = 1_048_576;

/** A small file of the data directory: a key, a password. */
export interface InstanceFile {
  name: string;
  mode: number;
  bytes: Buffer;
}

/** The files that lie in the data directory itself, whatever a version puts there, but for those of this machine. */
export function readInstanceFiles(dataDir: string): InstanceFile[] {
  return readdirSync(dataDir)
    .filter((name) => !name.startsWith('.') && !OF_THIS_MACHINE.has(name) && !/^.+\.\d+$/.test(name))
    .sort()
    .flatMap((name) => {
      const found = lstatSync(join(dataDir, name), { throwIfNoEntry: false });
      if (!found?.isFile() || found.size > FILE_BYTES_MAX) return [];
      return [{ name, mode: found.mode & 0o777, bytes: readFileSync(join(dataDir, name)) }];
    });
}

/** @throws StartError when a key was replaced while the backup ran: it might not open what the backup holds. */
export function refuseChangedFiles(before: readonly InstanceFile[], after: readonly InstanceFile[]): void {
  const changed = after.find(
    ({ name, bytes }) => !before.find((file) => file.name === name)?.bytes.equals(bytes),
  );
  const gone = before.find(({ name }) => !after.some((file) => file.name === name));
  const name = changed?.name ?? gone?.name;
  if (name !== undefined)
    throw new StartError(`${name} was replaced while the backup ran, so the two may not fit: run it again.`);
}

/** Adds a folder's files with all below it, under `data/`. */
export async function addFolders(writer: ArchiveWriter, dataDir: string): Promise<void> {
  for (const folder of FOLDERS)
    if (existsSync(join(dataDir, folder))) await addFolder(writer, dataDir, folder);
}

async function addFolder(writer: ArchiveWriter, dataDir: string, folder: string): Promise<void> {
  await writer.addDirectory(`data/${folder}`, statSync(join(dataDir, folder)).mode & 0o777);
  for (const entry of readdirSync(join(dataDir, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) await addFolder(writer, dataDir, path);
    if (!entry.isFile()) continue;
    const { size, mode } = statSync(join(dataDir, path));
    // A file of anchors may grow meanwhile: what is there now is what is taken.
    const bytes: AsyncIterable<Buffer> =
      size === 0 ? Readable.from([]) : createReadStream(join(dataDir, path), { end: size - 1 });
    await writer.addStream({ path: `data/${path}`, sizeBytes: size, mode: mode & 0o777 }, bytes);
  }
}
