/**
 * The protobuf wire format, as far as reading needs it: tags, varints, fixed numbers, lengths, and skipping unknown
 * fields (protobuf.dev, "Encoding").
 */
import { DomainError } from '../../domain/errors.js';

/** Wire types; proto3 does not write 3 and 4 (groups), which are refused. */
export const VARINT = 0;
export const FIXED64 = 1;
export const LENGTH = 2;
export const FIXED32 = 5;

const VARINT_BYTES_MAX = 10;
/** Longest key in the cache, bytes. */
const KEY_BYTES_MAX = 64;
const KEY_SLOTS = 4_096;

/**
 * Cache of keys by a hash of their bytes; a new key replaces the slot's. The same few names come with every span, and a
 * cached string is neither created nor hashed again.
 */
const keys: (string | undefined)[] = new Array(KEY_SLOTS).fill(undefined);

/** Most messages in one body: one can take two bytes, and costs memory many times its size. */
const MESSAGES_MAX = 2_000_000;

export class WireReader {
  at = 0;
  #messages = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.isBuffer(bytes)
      ? bytes
      : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get length(): number {
    return this.#bytes.length;
  }

  /** Counts a message before it is read. @throws DomainError too_many_items beyond two million. */
  enter(): void {
    this.#messages += 1;
    if (this.#messages > MESSAGES_MAX) {
      throw new DomainError(
        'too_many_items',
        `the body holds more than ${MESSAGES_MAX} values; send fewer spans at once`,
      );
    }
  }

  /** A varint of at most 32 bits: tags, lengths, enums, booleans. Higher bits are cut, as protobuf specifies. */
  uint32(): number {
    const bytes = this.#bytes;
    let value = 0;
    for (let index = 0; index < VARINT_BYTES_MAX; index += 1) {
      if (this.at >= bytes.length) break;
      const byte = bytes[this.at++] as number;
      if (index < 5) value |= (byte & 0x7f) << (7 * index);
      if (byte < 0x80) return value >>> 0;
    }
    throw malformed('a varint does not end');
  }

  /** A signed 64-bit varint: a number while exact, else a bigint. */
  int64(): number | bigint {
    const bytes = this.#bytes;
    let low = 0;
    let high = 0;
    for (let index = 0; index < VARINT_BYTES_MAX; index += 1) {
      if (this.at >= bytes.length) break;
      const byte = bytes[this.at++] as number;
      const part = byte & 0x7f;
      if (index < 4) low |= part << (7 * index);
      else if (index === 4) {
        low |= part << 28;
        high = part >>> 4;
      } else if (index < 10) high |= part << (7 * index - 32);
      if (byte < 0x80) return signed(low >>> 0, high | 0);
    }
    throw malformed('a varint does not end');
  }

  /** An unsigned 64-bit number of fixed length. */
  fixed64(): bigint {
    this.#need(8);
    const value = this.#bytes.readBigUInt64LE(this.at);
    this.at += 8;
    return value;
  }

  double(): number {
    this.#need(8);
    const value = this.#bytes.readDoubleLE(this.at);
    this.at += 8;
    return value;
  }

  /** The end of the length-delimited field that starts here; moves the position to its first byte. */
  end(limit: number): number {
    const length = this.uint32();
    const end = this.at + length;
    if (end > limit) throw malformed('a field is longer than what holds it');
    return end;
  }

  /** UTF-8 text up to `end`; invalid bytes become replacement characters, which are stripped later. */
  text(end: number): string {
    const text = this.#bytes.toString('utf8', this.at, end);
    this.at = end;
    return text;
  }

  /** `text` with a cache, for frequent names. */
  key(end: number): string {
    const start = this.at;
    if (end - start > KEY_BYTES_MAX) return this.text(end);
    const bytes = this.#bytes;
    let hash = 0x811c9dc5;
    for (let index = start; index < end; index += 1)
      hash = Math.imul(hash ^ (bytes[index] as number), 0x01000193);
    const slot = (hash ^ (hash >>> 15)) & (KEY_SLOTS - 1);
    const known = keys[slot];
    if (known !== undefined && this.#equals(known, start, end)) {
      this.at = end;
      return known;
    }
    const text = this.text(end);
    keys[slot] = text;
    return text;
  }

  /** Whether the bytes equal this text; false for text outside ASCII, which is decoded each time. */
  #equals(text: string, start: number, end: number): boolean {
    if (text.length !== end - start) return false;
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index);
      if (code !== this.#bytes[start + index] || code > 0x7f) return false;
    }
    return true;
  }

  hex(end: number): string {
    const text = this.#bytes.toString('hex', this.at, end);
    this.at = end;
    return text;
  }

  base64(end: number): string {
    const text = this.#bytes.toString('base64', this.at, end);
    this.at = end;
    return text;
  }

  /** Skips a field with an unknown number. */
  skip(wireType: number, limit: number): void {
    if (wireType === VARINT) this.int64();
    else if (wireType === FIXED64) this.at += 8;
    else if (wireType === LENGTH) this.at = this.end(limit);
    else if (wireType === FIXED32) this.at += 4;
    else throw malformed(`wire type ${wireType} is not one of proto3`);
    if (this.at > limit) throw malformed('a field is longer than what holds it');
  }

  #need(count: number): void {
    if (this.at + count > this.#bytes.length) throw malformed('the message ends inside a field');
  }
}

const TWO_TO_32 = 4_294_967_296;

function signed(low: number, high: number): number | bigint {
  const value = high * TWO_TO_32 + low;
  return Number.isSafeInteger(value) ? value : (BigInt(high) << 32n) | BigInt(low);
}

export function malformed(what: string): DomainError {
  return new DomainError('invalid_protobuf', `The body is not an OTLP request in protobuf: ${what}.`);
}
