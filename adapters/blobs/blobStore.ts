import type { Readable } from 'node:stream';

/** A stored file. */
export interface Blob {
  key: string;
  sizeBytes: number;
}

/** Size and hash of the stored bytes. */
export interface StoredBytes {
  /** Hex. */
  sha256: string;
  sizeBytes: number;
}

/**
 * Storage for files that are too large for the database, such as uploaded invoices, by keys such as
 * `invoices/<organization>/<id>.pdf`. A stored file is complete and on disk: an interrupted `put` leaves nothing under
 * its key, and a repeated `put` leaves the same file. Errors are DomainErrors: `storage_full` for a full disk,
 * `service_unavailable` where S3 does not answer or refuses.
 */
export interface BlobStore {
  readonly kind: 'file' | 's3';
  /** The folder or the bucket, for messages to operators. */
  readonly place: string;
  /**
   * Stores the bytes as they arrive and replaces the key's former file. Error: `payload_too_large` beyond `bytesMax`;
   * errors of the source are rethrown.
   */
  put(key: string, bytes: AsyncIterable<Uint8Array>, options: { bytesMax: number }): Promise<StoredBytes>;
  /** Opens a file; the caller must read the stream to its end or destroy it. Error: `not_found`. */
  get(key: string): Promise<{ sizeBytes: number; stream: Readable }>;
  exists(key: string): Promise<boolean>;
  /** Does nothing where the file does not exist. */
  delete(key: string): Promise<void>;
  /** All files below a folder such as `invoices/<organization>/`, or of the whole store for an empty text; by key. */
  stream(folder: string): AsyncIterable<Blob>;
  /** Verifies that files can be stored and read. Throws an error with a message for operators. */
  check(): Promise<void>;
}

/** Fits a name in a tar archive and in every file system. */
const KEY_LENGTH_MAX = 200;
const PART = '[a-z0-9][a-z0-9_-]{0,79}';
const FOLDER = new RegExp(`^(?:${PART}/)*$`);
/**
 * Lower case, because some file systems do not distinguish case. Only a file's name has a dot, so that no file is a
 * folder.
 */
const KEY = new RegExp(`^(?:${PART}/)+${PART}\\.[a-z0-9]{1,8}$`);

export function isBlobKey(text: string): boolean {
  return text.length <= KEY_LENGTH_MAX && KEY.test(text);
}

/** @throws RangeError for a key that could leave the store, or that some stores cannot hold. */
export function refuseUnsafeKey(key: string): void {
  if (!isBlobKey(key)) throw new RangeError(`${JSON.stringify(key)} is no key of the blob store`);
}

/** @throws RangeError unless the text is empty or a folder of keys with a trailing slash. */
export function refuseUnsafeFolder(folder: string): void {
  if (folder.length > KEY_LENGTH_MAX || !FOLDER.test(folder))
    throw new RangeError(`${JSON.stringify(folder)} is no folder of the blob store`);
}
