import { ExactNumber } from '../../domain/billing/pageRow.js';
import { DomainError } from '../../domain/errors.js';

/** A scalar with numbers kept as their text. */
export type JsonScalar = null | boolean | string | ExactNumber;

/** Receives parse events while bytes arrive. A key precedes its value. */
export interface JsonHandler {
  startObject(): void;
  endObject(): void;
  startArray(): void;
  endArray(): void;
  key(name: string): void;
  scalar(value: JsonScalar): void;
  /** A complete document has ended; another may follow after optional white space. */
  endDocument(): void;
}

/** Longest string or number of a page. */
const TOKEN_BYTES_MAX = 1_048_576;
/** Deepest nesting of a page. */
const DEPTH_MAX = 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const NEWLINE = 0x0a;
const LITERALS: Record<string, null | boolean> = { true: true, false: false, null: null };
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The tokens that may come next inside the innermost container. */
type Expect = 'value' | 'valueOrEnd' | 'keyOrEnd' | 'key' | 'colon' | 'commaOrEnd';

/**
 * Parses JSON from chunks of bytes in memory that does not grow with the file, and reports line and column of faults.
 * JSON.parse does neither, and it converts numbers to doubles.
 */
export class JsonEvents {
  readonly #handler: JsonHandler;
  #rest: Buffer = Buffer.alloc(0);
  #line = 1;
  /** Bytes of the file before the current line, and before the current buffer. */
  #lineStart = 0;
  #base = 0;
  #stack: ('{' | '[')[] = [];
  #expect: Expect = 'value';
  #first = true;
  /** Position of the current token, for faults that the handler finds. */
  #tokenLine = 1;
  #tokenColumn = 1;

  constructor(handler: JsonHandler) {
    this.#handler = handler;
  }

  /** Line and column (both from 1, columns in bytes) of the last token. */
  get position(): { line: number; column: number } {
    return { line: this.#tokenLine, column: this.#tokenColumn };
  }

  /** Error invalid_billing_file with line and column. */
  write(chunk: Buffer): void {
    const buffer = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at =
      this.#first && buffer.length >= 3 && buffer[0] === 0xef && buffer[1] === 0xbb && buffer[2] === 0xbf
        ? 3
        : 0;
    this.#first = false;
    while (at < buffer.length) {
      const next = this.#token(buffer, at, false);
      if (next < 0) break;
      at = next;
    }
    this.#rest = buffer.subarray(at);
    this.#base += at;
    if (this.#rest.length > TOKEN_BYTES_MAX) this.#fail(0, `a value is longer than ${TOKEN_BYTES_MAX} bytes`);
  }

  /** Ends the input. Error: invalid_billing_file in the middle of a document. */
  end(): void {
    if (this.#rest.length > 0) this.#token(this.#rest, 0, true);
    if (this.#stack.length > 0) this.#fail(this.#rest.length, 'the file ends in the middle of a page');
  }

  /** Parses one token at `at` and returns the position after it; -1 when it may continue in the next chunk. */
  #token(buffer: Buffer, at: number, isLast: boolean): number {
    const byte = buffer[at] as number;
    if (byte === NEWLINE) {
      this.#line += 1;
      this.#lineStart = this.#base + at + 1;
      return at + 1;
    }
    if (byte === 0x20 || byte === 0x09 || byte === 0x0d) return at + 1;
    this.#tokenLine = this.#line;
    this.#tokenColumn = this.#base + at - this.#lineStart + 1;
    if (byte === QUOTE) return this.#string(buffer, at, isLast);
    switch (byte) {
      case 0x7b:
        return this.#open(at, '{');
      case 0x5b:
        return this.#open(at, '[');
      case 0x7d:
        return this.#close(at, '{');
      case 0x5d:
        return this.#close(at, '[');
      case 0x3a:
        if (this.#expect !== 'colon') this.#fail(at, 'a colon is out of place');
        this.#expect = 'value';
        return at + 1;
      case 0x2c:
        if (this.#expect !== 'commaOrEnd') this.#fail(at, 'a comma is out of place');
        this.#expect = this.#stack[this.#stack.length - 1] === '{' ? 'key' : 'value';
        return at + 1;
      default:
        return this.#bare(buffer, at, isLast);
    }
  }

  #open(at: number, kind: '{' | '['): number {
    this.#wantValue(at);
    if (this.#stack.length >= DEPTH_MAX) this.#fail(at, `the page nests deeper than ${DEPTH_MAX} levels`);
    this.#stack.push(kind);
    this.#expect = kind === '{' ? 'keyOrEnd' : 'valueOrEnd';
    if (kind === '{') this.#handler.startObject();
    else this.#handler.startArray();
    return at + 1;
  }

  #close(at: number, kind: '{' | '['): number {
    const empty = kind === '{' ? 'keyOrEnd' : 'valueOrEnd';
    if (
      this.#stack[this.#stack.length - 1] !== kind ||
      (this.#expect !== 'commaOrEnd' && this.#expect !== empty)
    ) {
      this.#fail(at, 'a closing bracket is out of place');
    }
    this.#stack.pop();
    if (kind === '{') this.#handler.endObject();
    else this.#handler.endArray();
    this.#valueDone();
    return at + 1;
  }

  #string(buffer: Buffer, at: number, isLast: boolean): number {
    const end = findStringEnd(buffer, at + 1);
    if (end < 0) {
      if (isLast) this.#fail(at, 'a string has no closing quote');
      return -1;
    }
    const text = this.#decode(buffer, at, end);
    if (this.#expect === 'keyOrEnd' || this.#expect === 'key') {
      this.#expect = 'colon';
      this.#handler.key(text);
      return end + 1;
    }
    this.#wantValue(at);
    this.#handler.scalar(text);
    this.#valueDone();
    return end + 1;
  }

  #decode(buffer: Buffer, at: number, end: number): string {
    const raw = buffer.toString('utf8', at, end + 1);
    try {
      return JSON.parse(raw) as string;
    } catch {
      return this.#fail(at, 'a string holds a control character or a broken escape');
    }
  }

  #bare(buffer: Buffer, at: number, isLast: boolean): number {
    let end = at;
    while (end < buffer.length && isBareByte(buffer[end] as number)) end += 1;
    if (end === buffer.length && !isLast) return -1;
    const text = buffer.toString('latin1', at, end);
    const value = Object.hasOwn(LITERALS, text)
      ? (LITERALS[text] as null | boolean)
      : NUMBER.test(text)
        ? new ExactNumber(text)
        : undefined;
    if (value === undefined)
      this.#fail(at, `"${printable(buffer.toString('latin1', at, Math.max(end, at + 1)))}" is not JSON`);
    this.#wantValue(at);
    this.#handler.scalar(value as JsonScalar);
    this.#valueDone();
    return end;
  }

  #wantValue(at: number): void {
    if (this.#expect === 'value' || this.#expect === 'valueOrEnd') return;
    this.#fail(
      at,
      this.#expect === 'colon'
        ? 'a colon is missing'
        : this.#expect === 'commaOrEnd'
          ? 'a comma is missing'
          : 'a key is missing',
    );
  }

  #valueDone(): void {
    if (this.#stack.length > 0) {
      this.#expect = 'commaOrEnd';
      return;
    }
    this.#expect = 'value';
    this.#handler.endDocument();
  }

  #fail(at: number, reason: string): never {
    throw faultAt({ line: this.#line, column: this.#base + at - this.#lineStart + 1 }, reason);
  }
}

export function faultAt(place: { line: number; column: number }, reason: string): DomainError {
  return new DomainError('invalid_billing_file', `line ${place.line}, column ${place.column}: ${reason}`);
}

function findStringEnd(buffer: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const quote = buffer.indexOf(QUOTE, at);
    if (quote < 0) return -1;
    let slashes = 0;
    while (quote - slashes - 1 >= from && buffer[quote - slashes - 1] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return quote;
    at = quote + 1;
  }
}

/** Letters, digits, sign and point, of which literals and numbers consist. */
function isBareByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    (byte >= 0x41 && byte <= 0x5a) ||
    byte === 0x2b ||
    byte === 0x2d ||
    byte === 0x2e
  );
}

function printable(text: string): string {
  return text.slice(0, 20).replace(/[^\x20-\x7e]/g, '?');
}
