import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { createGunzip, createInflate, gunzipSync, inflateSync } from 'node:zlib';
import { DomainError } from '../../domain/errors.js';
import { parseJson } from '../../domain/parseJson.js';

/** Largest JSON body outside ingest, bytes. */
export const JSON_BODY_BYTES_MAX = 1_048_576;
/**
 * Largest inflated size of a body that is inflated synchronously, which is faster than a stream; it takes some
 * milliseconds.
 */
const SYNC_INFLATED_BYTES_MAX = 1_048_576;
/** Largest compressed size that is inflated synchronously: a longer body probably exceeds SYNC_INFLATED_BYTES_MAX. */
const SYNC_INFLATE_BYTES_MAX = 262_144;

/** Longest time to receive a body, milliseconds: a slower sender holds a slot that others need. */
export const BODY_TIME_MAX_MS = 60_000;

type Encoding = 'identity' | 'gzip' | 'deflate';

/** A request's unread body. */
export class IncomingBody {
  /**
   * Digest of a streamed body's content, set by its reader after the last byte. Different bytes can have the same
   * content.
   */
  contentDigest: string | undefined;
  readonly #request: IncomingMessage;
  /** Called after the whole body is received and before it is parsed. */
  readonly whenRead: () => void | Promise<void>;
  readonly #hold: (bytes: number) => void;

  /** `hold` receives the number of the body's bytes in memory, and throws when they exceed the limit. */
  constructor(
    request: IncomingMessage,
    { whenRead, hold }: { whenRead?: () => void | Promise<void>; hold?: (bytes: number) => void } = {},
  ) {
    this.#request = request;
    this.whenRead = whenRead ?? (() => undefined);
    this.#hold = hold ?? (() => undefined);
  }

  /** Media type in lower case without parameters; '' without the header. */
  get mediaType(): string {
    return (this.#request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  }

  get contentType(): string {
    return this.#request.headers['content-type'] ?? '';
  }

  /** The declared Content-Length, bytes; undefined for a chunked body. */
  get declaredBytes(): number | undefined {
    const header = this.#request.headers['content-length'];
    return header === undefined ? undefined : Number(header);
  }

  /** Whether the request was sent without a body (RFC 9112, 6.3). */
  get isAbsent(): boolean {
    return this.#request.headers['transfer-encoding'] === undefined && !this.declaredBytes;
  }

  /** The raw request stream, for streamed bodies (multipart). */
  get stream(): Readable {
    return this.#request;
  }

  /**
   * Reads and inflates the whole body. Errors: body_too_slow; payload_too_large beyond `maxBytes` as sent or inflated;
   * unsupported_media_type for an encoding other than gzip and deflate; invalid_encoding for broken compression; those
   * of `whenRead` and `hold`.
   */
  async bytes(maxBytes: number, timeMaxMs = BODY_TIME_MAX_MS): Promise<Buffer> {
    const encoding = readEncoding(this.#request.headers['content-encoding']);
    const declared = Number(this.#request.headers['content-length'] ?? 0);
    if (declared > maxBytes) throw tooLarge(maxBytes);
    const raw = await collect(this.#request, maxBytes, timeMaxMs, this.#hold);
    const judged = this.whenRead();
    if (judged) await judged;
    if (encoding === 'identity') return raw;
    return inflate(raw, encoding, maxBytes, (bytes) => this.#hold(raw.length + bytes));
  }
}

function readEncoding(header: string | undefined): Encoding {
  const name = (header ?? '').trim().toLowerCase();
  if (name === '' || name === 'identity') return 'identity';
  if (name === 'gzip' || name === 'x-gzip') return 'gzip';
  if (name === 'deflate') return 'deflate';
  throw new DomainError(
    'unsupported_media_type',
    `content-encoding: ${name.slice(0, 40)} is not read; send gzip, deflate or none`,
    {
      issues: [{ in: 'header', field: 'content-encoding', message: 'send gzip, deflate or none' }],
    },
  );
}

function tooLarge(maxBytes: number): DomainError {
  return new DomainError(
    'payload_too_large',
    `the body is larger than ${maxBytes} bytes, on the wire or inflated; send it in parts`,
  );
}

function tooSlow(timeMaxMs: number): DomainError {
  return new DomainError(
    'body_too_slow',
    `the body was not there within ${timeMaxMs / 1_000} seconds; send it again, in smaller parts on a slow line`,
  );
}

/**
 * Reads a stream into one buffer. Excess data is read and dropped, so that the client reads the answer and its
 * connection stays usable.
 */
function collect(
  stream: Readable,
  maxBytes: number,
  timeMaxMs: number,
  hold: (bytes: number) => void,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    // The listeners stay, because removing them from each request costs more than calls that do nothing.
    let isOver = false;
    const finish = (done: () => void) => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      done();
    };
    const refuse = (error: unknown) =>
      finish(() => {
        chunks.length = 0;
        stream.resume();
        reject(error);
      });
    const onData = (chunk: Buffer) => {
      if (isOver) return;
      size += chunk.length;
      try {
        if (size > maxBytes) throw tooLarge(maxBytes);
        hold(size);
        chunks.push(chunk);
      } catch (error) {
        refuse(error);
      }
    };
    const onEnd = () =>
      finish(() => {
        resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
        // The request outlives its body, which need not stay in memory until the answer.
        chunks.length = 0;
      });
    const onCut = () =>
      finish(() =>
        reject(new DomainError('invalid_body', 'the body ended before it was complete; send it again')),
      );
    const timer = setTimeout(() => refuse(tooSlow(timeMaxMs)), timeMaxMs);
    stream.on('data', onData);
    stream.once('end', onEnd);
    stream.on('error', onCut);
    stream.once('close', onCut);
  });
}

function inflateFailure(error: unknown, maxBytes: number): DomainError {
  if (isTooLong(error)) return tooLarge(maxBytes);
  return new DomainError(
    'invalid_encoding',
    'the body does not inflate by its content-encoding; compress it again',
  );
}

function isTooLong(error: unknown): boolean {
  return (
    typeof error === 'object' && error !== null && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
  );
}

async function inflate(
  raw: Buffer,
  encoding: 'gzip' | 'deflate',
  maxBytes: number,
  hold: (bytes: number) => void,
): Promise<Buffer> {
  const atOnce = raw.length <= SYNC_INFLATE_BYTES_MAX ? inflateAtOnce(raw, encoding, maxBytes) : undefined;
  if (atOnce) {
    hold(atOnce.length);
    return atOnce;
  }
  const inflater = encoding === 'gzip' ? createGunzip() : createInflate();
  const source = Readable.from([raw]).pipe(inflater);
  const broken = new Promise<never>((_, reject) => {
    inflater.once('error', (error) => reject(inflateFailure(error, maxBytes)));
  });
  try {
    return await Promise.race([collect(source, maxBytes, BODY_TIME_MAX_MS, hold), broken]);
  } finally {
    inflater.destroy();
  }
}

/** Inflates synchronously; undefined where the result is so large that other requests would wait. */
function inflateAtOnce(raw: Buffer, encoding: 'gzip' | 'deflate', maxBytes: number): Buffer | undefined {
  try {
    const limit = { maxOutputLength: Math.min(maxBytes, SYNC_INFLATED_BYTES_MAX) };
    return encoding === 'gzip' ? gunzipSync(raw, limit) : inflateSync(raw, limit);
  } catch (error) {
    if (isTooLong(error) && maxBytes > SYNC_INFLATED_BYTES_MAX) return undefined;
    throw inflateFailure(error, maxBytes);
  }
}

/**
 * Parses JSON of which every text can be stored: Postgres stores neither NUL nor lone surrogates. Ingest strips these
 * characters. Input of people is refused instead, so that the stored text equals the sent one. Errors: those of
 * parseJson, and invalid_body with the path.
 */
export function parseStorableJson(bytes: Buffer): unknown {
  const value = parseJson(bytes);
  const place = findUnstorable(value, []);
  if (!place) return value;
  const field = place.join('.') || 'body';
  const message =
    place.at(-1) === PROTOTYPE
      ? 'is not known here; leave it out'
      : 'holds a character that cannot be stored (NUL, or half of a surrogate pair); take it out';
  throw new DomainError('invalid_body', `${field}: ${message}`, { issues: [{ in: 'body', field, message }] });
}

/** The one field name that JavaScript objects treat specially; schemas with free names would drop it silently. */
const PROTOTYPE = '__proto__';

/** NUL, or a lone surrogate: with the flag u a pair is one character. */
const UNSTORABLE = /[\0\ud800-\udfff]/u;

/**
 * Path of the first text that cannot be stored, or of the first field `__proto__`. assertJsonDepth bounds the depth.
 */
function findUnstorable(value: unknown, path: readonly string[]): readonly string[] | undefined {
  if (typeof value === 'string') return isStorable(value) ? undefined : path;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    if (key === PROTOTYPE) return [...path, key];
    if (!isStorable(key)) return path;
    const found = findUnstorable(inner, [...path, key]);
    if (found) return found;
  }
  return undefined;
}

function isStorable(text: string): boolean {
  return !UNSTORABLE.test(text);
}
