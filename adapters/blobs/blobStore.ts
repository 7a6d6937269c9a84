import type { Readable } from 'node:stream';

/** A stored file. */
export interface Blob {
  key: string;
  sizeBytes: number;
}

/** What a file was stored with. */
export interface StoredBytes {
  /** Hex. */
  sha256: string;
  sizeBytes: number;
}

/**
 * Files that are too large for the database, such as uploaded invoices, by keys such as `invoices/<organization>/<id>.pdf`.
 * A stored file is whole and on disk: an interrupted `put` leaves nothing under its key, and the same `put` repeated
 * leaves the same file. Errors are DomainErrors: `storage_full` for a full disk, `service_unavailable` where S3 does not
 * answer or refuses.
 */
export interface BlobStore {
  readonly kind: 'file' | 's3';
  /** The folder or the bucket, for messages to operators. */
  readonly place: string;
  /**
   * Stores the bytes as they arrive, in place of what the key had. Error `payload_too_large` beyond `bytesMax`; an error
   * of the source is passed on.
   */
  put(key: string, bytes: AsyncIterable<Uint8Array>, options: { bytesMax: number }): Promise<StoredBytes>;
  /** Opens a file; the caller reads the stream to its end or destroys it. Error `not_found`. */
  get(key: string): Promise<{ sizeBytes: number; stream: Readable }>;
  exists(key: string): Promise<boolean>;
  /** Does nothing where there is no such file. */
  delete(key: string): Promise<void>;
  /** All files below a folder such as `invoices/<organization>/`, or of the whole store where it is empty; by key. */
  stream(folder: string): AsyncIterable<Blob>;
  /** Whether files can be stored and read. Error with a sentence for an operator. */
  check(): Promise<void>;
}

/** Fits into a name in a tar archive, and into the names of every file system. */
const KEY_LENGTH_MAX = 200;
const PART = '[a-z0-9][a-z0-9_-]{0,79}';
const FOLDER = new RegExp(`^(?:${PART}/)*$`);
/** Lower case, because some file systems do not distinguish cases; only a file's name has a dot, so no file is a folder. */
const KEY = new RegExp(`^(?:${PART}/)+${PART}\\.[a-z0-9]{1,8}$`);

export function isBlobKey(text: string): boolean {
  return text.length <= KEY_LENGTH_MAX && KEY.test(text);
}

/** @throws RangeError for a key that could lead out of the store, or that not every store can hold. */
export function refuseUnsafeKey(key: string): void {
  if (!isBlobKey(key)) throw new RangeError(`${JSON.stringify(key)} is no key of the blob store`);
}

/** @throws RangeError for anything but folders of keys with a slash at the end, and the empty text. */
export function refuseUnsafeFolder(folder: string): void {
  if (folder.length > KEY_LENGTH_MAX || !FOLDER.test(folder))
    throw new RangeError(`${JSON.stringify(folder)} is no folder of the blob store`);
}
