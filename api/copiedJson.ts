import { COPIED_ESCAPES, COPIED_NULL } from '../domain/copiedText.js';

/**
 * The form of a copied value in JSON. `json`: a number or a list, which Postgres writes as JSON; an absent `list` is
 * empty. `id`: a uuid as the public id of an event. `time`: as isoFromMicros writes it.
 */
export type CopiedForm = 'id' | 'boolean' | 'decimal' | 'time' | 'json' | 'list' | 'text';

export interface CopiedColumns {
  readonly columns: readonly { readonly name: string; readonly form: CopiedForm }[];
  /** Makes the fields behind these of the values of further columns, which hold JSON; null where absent. */
  restOf(values: readonly unknown[]): Readonly<Record<string, unknown>>;
}

/** Objects of one chunk of an answer. */
const CHUNK_OBJECTS = 500;
/** Bytes that are allocated for the first chunk. */
const FIRST_CHUNK = 64 * 1024;

const TAB = 9;
const LINE_END = 10;
const FIRST_PRINTABLE = 32;
const QUOTE = 34;
const COMMA = 44;
const DASH = 45;
const DOT = 46;
const ZERO = 48;
/** `T` and `Z` of a time. */
const [TIME_START, TIME_END] = [84, 90];
const BACKSLASH = 92;
const TRUE = 116;

/** Bytes that a byte of a row takes at most, as in `\u0001`. */
const BYTES_MAX = 6;
/** Bytes that a form adds to its value at most: quotes and `evt_`, or a fraction of a second. */
const ADDED_MAX = 10;

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'));

const TRUE_TEXT = bytesOf('true');
const FALSE_TEXT = bytesOf('false');
const ID_START = bytesOf('"evt_');

/** Escapes of JSON for bytes below 32, a quote and a backslash; other bytes represent themselves. */
const JSON_ESCAPES: readonly (Uint8Array | undefined)[] = Array.from({ length: 256 }, (_, byte) =>
  byte < FIRST_PRINTABLE || byte === QUOTE || byte === BACKSLASH
    ? bytesOf(JSON.stringify(String.fromCharCode(byte)).slice(1, -1))
    : undefined,
);

/**
 * Writes copied rows as JSON objects in chunks of at most 500. It goes from byte to byte without texts, because an
 * export of millions of rows spends its time here. `isArray`: the chunks are parts of one array, without its brackets,
 * else there is one object a line.
 */
export class CopiedJsonWriter {
  readonly #columns: readonly { form: CopiedForm; label: Uint8Array; absent: Uint8Array }[];
  readonly #restOf: CopiedColumns['restOf'];
  readonly #emptyRest: string;
  /** Bytes of an object beside its values, at most. */
  readonly #ownBytes: number;
  readonly #isArray: boolean;
  #hasWritten = false;
  #from: Buffer = Buffer.alloc(0);
  /** Index of the next byte of the block. */
  #at = 0;
  #to: Buffer = Buffer.alloc(0);
  /** Number of bytes written to the chunk. */
  #size = 0;

  constructor({ columns, restOf }: CopiedColumns, isArray: boolean) {
    this.#columns = columns.map(({ name, form }, index) => ({
      form,
      label: bytesOf(`${index === 0 ? '{' : ','}"${name}":`),
      absent: bytesOf(form === 'list' ? '[]' : 'null'),
    }));
    this.#restOf = restOf;
    this.#emptyRest = restText(restOf([]));
    this.#ownBytes =
      this.#emptyRest.length +
      this.#columns.reduce((sum, { label, absent }) => sum + label.length + absent.length + ADDED_MAX, 2);
    this.#isArray = isArray;
  }

  /** `block`: whole lines. */
  *chunks(block: Buffer): Generator<Buffer> {
    this.#from = block;
    this.#at = 0;
    while (this.#at < block.length) yield this.#chunk();
  }

  #chunk(): Buffer {
    // Chunks are alike, so that one of a little more than the last one's size seldom has to grow.
    this.#to = Buffer.allocUnsafe(Math.max(this.#size + (this.#size >> 2), FIRST_CHUNK));
    this.#size = 0;
    for (let line = 0; line < CHUNK_OBJECTS && this.#at < this.#from.length; line += 1) {
      const end = this.#from.indexOf(LINE_END, this.#at);
      this.#reserve(this.#ownBytes + BYTES_MAX * (end - this.#at));
      if (this.#isArray && this.#hasWritten) this.#byte(COMMA);
      this.#hasWritten = true;
      this.#object(end);
      if (!this.#isArray) this.#byte(LINE_END);
      this.#at = end + 1;
    }
    return this.#to.subarray(0, this.#size);
  }

  #object(end: number): void {
    const from = this.#from;
    const columns = this.#columns;
    for (let index = 0; index < columns.length; index += 1) {
      const { form, label, absent } = columns[index] as (typeof columns)[number];
      this.#bytes(label);
      if (from[this.#at] === COPIED_NULL) {
        this.#bytes(absent);
        this.#at += 1;
      } else this.#value(form);
      this.#at += 1;
    }
    this.#rest(end);
  }

  /** Writes the value that begins at the next byte, up to the tab or line break behind it. */
  #value(form: CopiedForm): void {
    if (form === 'text') this.#text();
    else if (form === 'json' || form === 'list') this.#json();
    else if (form === 'time') this.#time();
    else if (form === 'decimal') this.#decimal();
    else if (form === 'id') this.#id();
    else this.#boolean();
  }

  #text(): void {
    const from = this.#from;
    const to = this.#to;
    let at = this.#at;
    let size = this.#size;
    to[size++] = QUOTE;
    for (let byte = from[at] as number; byte !== TAB && byte !== LINE_END; byte = from[++at] as number) {
      if (byte === BACKSLASH) {
        at += 1;
        byte = from[at] as number;
        byte = COPIED_ESCAPES.get(byte) ?? byte;
      }
      const escaped = JSON_ESCAPES[byte];
      if (escaped === undefined) to[size++] = byte;
      else for (let index = 0; index < escaped.length; index += 1) to[size++] = escaped[index] as number;
    }
    to[size++] = QUOTE;
    this.#at = at;
    this.#size = size;
  }

  /** A number or a list, which Postgres writes as JSON. */
  #json(): void {
    const from = this.#from;
    const to = this.#to;
    let at = this.#at;
    let size = this.#size;
    for (let byte = from[at] as number; byte !== TAB && byte !== LINE_END; byte = from[++at] as number) {
      // JSON holds no control characters, so that a backslash precedes itself alone.
      if (byte === BACKSLASH) at += 1;
      to[size++] = byte;
    }
    this.#at = at;
    this.#size = size;
  }

  /** The database's digits without trailing zeros: the shortest JSON number. */
  #decimal(): void {
    const start = this.#size;
    this.#json();
    const to = this.#to;
    let isFraction = false;
    for (let at = start; at < this.#size; at += 1) isFraction ||= to[at] === DOT;
    if (!isFraction) return;
    while (to[this.#size - 1] === ZERO) this.#size -= 1;
    if (to[this.#size - 1] === DOT) this.#size -= 1;
  }

  /** `2026-01-02 03:04:05.6789+00` in the form of isoFromMicros: six decimals or none. */
  #time(): void {
    const from = this.#from;
    const to = this.#to;
    const at = this.#at;
    let end = at;
    while (from[end] !== TAB && from[end] !== LINE_END) end += 1;
    let size = this.#size;
    to[size++] = QUOTE;
    for (let index = 0; index < 19; index += 1)
      to[size++] = index === 10 ? TIME_START : (from[at + index] as number);
    const zone = end - 3;
    if (from[at + 19] === DOT)
      for (let index = 19; index < 26; index += 1)
        to[size++] = at + index < zone ? (from[at + index] as number) : ZERO;
    to[size++] = TIME_END;
    to[size++] = QUOTE;
    this.#at = end;
    this.#size = size;
  }

  /** A uuid as the public id of an event. */
  #id(): void {
    const from = this.#from;
    this.#bytes(ID_START);
    let at = this.#at;
    let size = this.#size;
    for (let byte = from[at] as number; byte !== TAB && byte !== LINE_END; byte = from[++at] as number)
      if (byte !== DASH) this.#to[size++] = byte;
    this.#to[size++] = QUOTE;
    this.#at = at;
    this.#size = size;
  }

  #boolean(): void {
    this.#bytes(this.#from[this.#at] === TRUE ? TRUE_TEXT : FALSE_TEXT);
    this.#at += 1;
  }

  /** The further columns of the line that ends at `end`. */
  #rest(end: number): void {
    if (this.#at > end) {
      this.#size += this.#to.write(this.#emptyRest, this.#size);
      return;
    }
    const values = this.#from.toString('utf8', this.#at, end).split('\t').map(jsonOfField);
    const text = restText(this.#restOf(values));
    this.#reserve(Buffer.byteLength(text) + 1);
    this.#size += this.#to.write(text, this.#size);
  }

  #bytes(bytes: Uint8Array): void {
    const to = this.#to;
    let size = this.#size;
    for (let index = 0; index < bytes.length; index += 1) to[size++] = bytes[index] as number;
    this.#size = size;
  }

  #byte(byte: number): void {
    this.#to[this.#size] = byte;
    this.#size += 1;
  }

  /** Makes room for so many more bytes. */
  #reserve(more: number): void {
    if (this.#size + more <= this.#to.length) return;
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#to.length, this.#size + more));
    larger.set(this.#to.subarray(0, this.#size));
    this.#to = larger;
  }
}

/** Fields behind others, with the last brace. */
const restText = (fields: Readonly<Record<string, unknown>>) => `,${JSON.stringify(fields).slice(1)}`;

function jsonOfField(field: string): unknown {
  if (field.length === 1 && field.charCodeAt(0) === COPIED_NULL) return null;
  const text = field.replaceAll(/\\(.)/gs, (_, letter: string) => {
    const byte = letter.charCodeAt(0);
    return String.fromCharCode(COPIED_ESCAPES.get(byte) ?? byte);
  });
  return JSON.parse(text);
}
