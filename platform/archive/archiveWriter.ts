import { createHash, type Hash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { finished } from 'node:stream/promises';
import { promisify } from 'node:util';
import { constants, createGzip, type Gzip, gzip } from 'node:zlib';
import { isAlive } from '../embedded/processTable.js';
import { StartError } from '../startError.js';
import { encodeTarHeader, TAR_END, tarPadding } from './tar.js';

/** A file of an archive, as its manifest lists it. */
export interface ArchivedFile {
  path: string;
  size_bytes: number;
  sha256: string;
}

export interface FinishedArchive {
  path: string;
  sizeBytes: number;
  /** Of the whole file. */
  sha256: string;
}

/** The last entry of every archive: its files, with the sha256 of each. */
export const MANIFEST_NAME = 'manifest.json';

/** Half the time of the default level for a tenth more bytes, so that a backup ends soon. */
const GZIP_LEVEL = constants.Z_BEST_SPEED;
const GZIP_CHUNK_BYTES = 262_144;
const FILE_MODE = 0o600;

/**
 * Writes a tar.gz under a temporary name and renames it when it is complete and on disk, so that the final name never
 * has a partial archive. Only its owner may read it.
 */
export class ArchiveWriter {
  readonly #path: string;
  readonly #draft: string;
  readonly #file: number;
  readonly #gzip: Gzip;
  readonly #written: Promise<void>;
  readonly #hash: Hash = createHash('sha256');
  readonly #files: ArchivedFile[] = [];
  readonly #nowSeconds: number;
  #sizeBytes = 0;

  /** @throws StartError when the file already exists or cannot be created. */
  constructor(path: string, nowMs: number) {
    if (existsSync(path)) throw new StartError(`${path} is there already: give another name.`);
    removeAbandonedDrafts(path);
    this.#path = path;
    this.#draft = `${path}.partial-${process.pid}`;
    this.#nowSeconds = Math.floor(nowMs / 1_000);
    try {
      this.#file = openSync(this.#draft, 'wx', FILE_MODE);
    } catch (error) {
      throw explainWriteError(error, path);
    }
    this.#gzip = createGzip({ level: GZIP_LEVEL, chunkSize: GZIP_CHUNK_BYTES });
    this.#gzip.on('data', (bytes: Buffer) => this.#store(bytes));
    this.#written = finished(this.#gzip);
    // The next write awaits it; until then its failure must not crash the process.
    this.#written.catch(() => undefined);
    process.once('exit', this.#removeDraft);
  }

  /** Bytes of the archive so far. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Bytes of the files in it so far. */
  get contentBytes(): number {
    return this.#files.reduce((sum, file) => sum + file.size_bytes, 0);
  }

  async addDirectory(path: string, mode: number): Promise<void> {
    await this.#write(encodeTarHeader({ path, type: 'directory', sizeBytes: 0, mode }, this.#nowSeconds));
  }

  async addBytes(path: string, bytes: Buffer, mode = FILE_MODE): Promise<void> {
    await this.addStream({ path, sizeBytes: bytes.length, mode }, [bytes]);
  }

  /** Adds a file whose size is known before its bytes are. */
  async addStream(
    entry: { path: string; sizeBytes: number; mode: number },
    bytes: AsyncIterable<Buffer> | Iterable<Buffer>,
  ): Promise<void> {
    await this.#write(encodeTarHeader({ ...entry, type: 'file' }, this.#nowSeconds));
    const hash = createHash('sha256');
    let written = 0;
    for await (const piece of bytes) {
      written += piece.length;
      if (written > entry.sizeBytes) break;
      hash.update(piece);
      await this.#write(piece);
    }
    if (written !== entry.sizeBytes)
      throw new StartError(`${entry.path} changed while it was read: try again.`);
    await this.#write(tarPadding(entry.sizeBytes));
    this.#files.push({ path: entry.path, size_bytes: entry.sizeBytes, sha256: hash.digest('hex') });
  }

  /**
   * Adds the manifest with the list of all files, syncs everything to disk and renames the archive to its final name.
   */
  async finish(manifest: object): Promise<FinishedArchive> {
    const text = JSON.stringify({ ...manifest, files: this.#files }, null, 1);
    await this.addBytes(MANIFEST_NAME, Buffer.from(`${text}\n`));
    await this.#write(TAR_END);
    this.#gzip.end();
    try {
      await this.#written;
      fsyncSync(this.#file);
      closeSync(this.#file);
      if (existsSync(this.#path))
        throw new StartError(`${this.#path} appeared meanwhile: give another name.`);
      renameSync(this.#draft, this.#path);
      syncFolder(dirname(this.#path));
    } catch (error) {
      throw explainWriteError(error, this.#path);
    }
    return { path: this.#path, sizeBytes: this.#sizeBytes, sha256: this.#hash.digest('hex') };
  }

  /** Deletes the unfinished archive. */
  discard(): void {
    this.#gzip.destroy();
    this.#removeDraft();
    process.off('exit', this.#removeDraft);
  }

  readonly #removeDraft = () => rmSync(this.#draft, { force: true });

  #store(bytes: Buffer): void {
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at);
      this.#hash.update(bytes);
      this.#sizeBytes += bytes.length;
    } catch (error) {
      this.#gzip.destroy(error as Error);
    }
  }

  async #write(bytes: Buffer): Promise<void> {
    if (bytes.length === 0) return;
    try {
      if (this.#gzip.destroyed) await this.#written;
      if (!this.#gzip.write(bytes)) await this.#drained();
    } catch (error) {
      throw explainWriteError(error, this.#path);
    }
  }

  #drained(): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = () => {
        this.#gzip.off('drain', settle).off('close', settle);
        if (this.#gzip.destroyed) this.#written.then(() => resolve(), reject);
        else resolve();
      };
      this.#gzip.once('drain', settle).once('close', settle);
    });
  }
}

/** Deletes drafts of killed processes in the same folder. */
function removeAbandonedDrafts(path: string): void {
  const folder = dirname(path);
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    const pid = Number(/^.+\.tar\.gz\.partial-(\d+)$/.exec(name)?.[1]);
    if (pid && !isAlive(pid)) rmSync(join(folder, name), { force: true });
  }
}

/** Syncs a folder, which makes a rename in it durable. */
export function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function explainWriteError(error: unknown, path: string): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new StartError(
      `The disk of ${dirname(path)} is full: free some space, or write ${basename(path)} to another disk with --to.`,
      { cause: error },
    );
  if (code === 'EFBIG')
    return new StartError(
      `${basename(path)} grows larger than files may be here (ulimit -f, or the file system): write it elsewhere with --to.`,
      { cause: error },
    );
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS' || code === 'ENOENT' || code === 'ENOTDIR')
    return new StartError(
      `${path} cannot be written (${code}): give the path of a file in a folder that is yours with --to.`,
      { cause: error },
    );
  return error;
}

const compress = promisify(gzip);
const PACKED_MODE = 0o644;

/**
 * Files as one tar.gz in memory, in order. Equal files result in equal bytes, because each has `modifiedSeconds` as its
 * time.
 */
export function packBytes(
  files: readonly { name: string; bytes: Buffer }[],
  modifiedSeconds: number,
): Promise<Buffer> {
  const parts = files.flatMap(({ name, bytes }) => [
    encodeTarHeader(
      { path: name, type: 'file', sizeBytes: bytes.length, mode: PACKED_MODE },
      modifiedSeconds,
    ),
    bytes,
    tarPadding(bytes.length),
  ]);
  return compress(Buffer.concat([...parts, TAR_END]), { level: constants.Z_BEST_SPEED });
}
