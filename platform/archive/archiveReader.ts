import { createHash } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { basename } from 'node:path';
import { createGunzip } from 'node:zlib';
import { StartError } from '../startError.js';
import { type ArchivedFile, MANIFEST_NAME } from './archiveWriter.js';
import { type OpenTarEntry, readTar, TarError } from './tar.js';

const READ_CHUNK_BYTES = 262_144;
/** Largest file that is held in memory as a whole, bytes: headers and manifests, never data. */
const TEXT_BYTES_MAX = 256 * 1_048_576;

/** The fields of a manifest that every archive has. */
export interface Manifest {
  files: ArchivedFile[];
}

/**
 * Reads an archive from its first entry to its last. `take` receives each entry but the manifest and reads its body;
 * then every file's sha256 is compared with the manifest's, and the manifest is returned.
 * @throws StartError when the file cannot be read, is damaged or truncated, or differs from its manifest.
 */
export async function readArchive<M extends Manifest>(
  path: string,
  take: (entry: OpenTarEntry) => Promise<void>,
): Promise<M> {
  const seen = new Map<string, { sizeBytes: number; sha256: string }>();
  let manifest: M | undefined;
  try {
    for await (const entry of readTar(openGunzip(path), { toEnd: true })) {
      if (manifest !== undefined) throw new TarError(`${entry.path} follows its end`);
      if (entry.path === MANIFEST_NAME) {
        manifest = JSON.parse(await readText(entry.body)) as M;
        continue;
      }
      if (!isSafePath(entry.path)) throw new TarError(`it holds the path ${entry.path}`);
      if (seen.has(entry.path)) throw new TarError(`it holds ${entry.path} twice`);
      const hash = createHash('sha256');
      await take({ ...entry, body: hashed(entry.body, (piece) => hash.update(piece)) });
      if (entry.type === 'file')
        seen.set(entry.path, { sizeBytes: entry.sizeBytes, sha256: hash.digest('hex') });
    }
    if (manifest === undefined) throw new TarError('it has no manifest at its end');
    compareFiles(seen, manifest);
    return manifest;
  } catch (error) {
    throw explainReadError(error, path);
  }
}

/**
 * The text of an archive's first entry, which identifies the archive, without reading the rest.
 * @throws StartError when it cannot be read or the entry has another name.
 */
export async function readFirstEntry(path: string, name: string): Promise<string> {
  try {
    for await (const entry of readTar(openGunzip(path))) {
      if (entry.path !== name) break;
      return await readText(entry.body);
    }
  } catch (error) {
    throw explainReadError(error, path);
  }
  throw new StartError(`${path} is no archive of Trueup: give a file that backup or export data wrote.`);
}

/** A small file's whole text. */
export async function readText(body: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const piece of body) {
    length += piece.length;
    if (length > TEXT_BYTES_MAX) throw new TarError('its manifest is too large');
    parts.push(piece);
  }
  return Buffer.concat(parts).toString('utf8');
}

async function* openGunzip(path: string): AsyncGenerator<Buffer, void, undefined> {
  if (!existsSync(path)) throw new StartError(`There is no file ${path}.`);
  const file = createReadStream(path, { highWaterMark: READ_CHUNK_BYTES });
  const gunzip = createGunzip({ chunkSize: READ_CHUNK_BYTES });
  file.once('error', (error) => gunzip.destroy(error));
  file.pipe(gunzip);
  try {
    yield* gunzip as AsyncIterable<Buffer>;
  } finally {
    gunzip.destroy();
    file.destroy();
  }
}

async function* hashed(
  body: AsyncIterable<Buffer>,
  update: (piece: Buffer) => unknown,
): AsyncGenerator<Buffer, void, undefined> {
  for await (const piece of body) {
    update(piece);
    yield piece;
  }
}

/** Whether the path stays inside the folder that the archive is unpacked into. */
function isSafePath(path: string): boolean {
  const parts = path.replace(/\/$/, '').split('/');
  return !path.startsWith('/') && !path.includes('\0') && !parts.some((part) => part === '' || part === '..');
}

function compareFiles(
  seen: ReadonlyMap<string, { sizeBytes: number; sha256: string }>,
  { files }: Manifest,
): void {
  if (files.length !== seen.size) throw new TarError(`it holds ${seen.size} files and lists ${files.length}`);
  for (const { path, size_bytes, sha256 } of files) {
    const found = seen.get(path);
    if (found?.sha256 !== sha256 || found.sizeBytes !== size_bytes)
      throw new TarError(`${path} in it does not have the sha256 that its manifest states`);
  }
}

function explainReadError(error: unknown, path: string): unknown {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (error instanceof TarError || error instanceof SyntaxError || code.startsWith('Z_')) {
    const why = error instanceof TarError ? message : 'its compression or its manifest is broken';
    return new StartError(`${basename(path)} is damaged or no archive of Trueup: ${why}.`, { cause: error });
  }
  if (code === 'EACCES' || code === 'EISDIR')
    return new StartError(`${path} cannot be read (${code}): give the path of a file that is yours.`, {
      cause: error,
    });
  return error;
}
