import { createHash } from 'node:crypto';
import { type FileHandle, open, rm, writeFile } from 'node:fs/promises';
import { DomainError } from '../../domain/errors.js';
import type { StoredBytes } from './blobStore.js';

const DISK_FULL_RETRY_SECONDS = 30;
const FILE_MODE = 0o600;

/** A file that is being stored; the caller closes it. */
export interface Draft extends StoredBytes {
  file: FileHandle;
}

/** Writes bytes to a new file as they arrive. A failure leaves no file. */
export async function writeDraft(
  path: string,
  bytes: AsyncIterable<Uint8Array>,
  bytesMax: number,
): Promise<Draft> {
  const hash = createHash('sha256');
  let sizeBytes = 0;
  const counted = async function* () {
    for await (const piece of bytes) {
      sizeBytes += piece.length;
      if (sizeBytes > bytesMax)
        throw new DomainError('payload_too_large', `The file is larger than ${bytesMax} bytes.`);
      hash.update(piece);
      yield piece;
    }
  };
  const file = await open(path, 'wx+', FILE_MODE).catch(rethrowAsStorageError);
  try {
    await writeFile(file, counted());
    return { file, sha256: hash.digest('hex'), sizeBytes };
  } catch (error) {
    await file.close();
    await rm(path, { force: true });
    return rethrowAsStorageError(error);
  }
}

export function rethrowAsStorageError(error: unknown): never {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT')
    throw new DomainError('storage_full', 'The disk for files is full: free some space, then try again.', {
      retryAfterSeconds: DISK_FULL_RETRY_SECONDS,
      cause: error,
    });
  throw error;
}
