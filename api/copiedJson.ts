import { COPIED_ESCAPES, COPIED_NULL } from '../domain/copiedText.js';

/**
 * The form of a copied value in JSON. `json`: a number or a list, which Postgres writes as JSON; an absent `list` is
 * empty. `id`: a uuid as the public id of an event. `time`: as isoFromMicros writes it.
 */
export type CopiedForm = 'id' | 'boolean' | 'decimal' | 'time' | 'json' | 'list' | 'text';

export interface CopiedColumns {
  readonly columns: readonly { readonly name: string; readonly form: CopiedForm }[];
  /** Names of the columns of JSON behind these. A line may lack them all; the first is then null. */
  readonly json: readonly string[];
  /** The column behind those: JSON, which becomes this field of the first of them. */
  readonly inner: string;
  /** The first of them with the inner field, both present: for those that are no object, or have such a field. */
  join(outer: unknown, inner: unknown): unknown;
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
/** Bytes of `2026-01-02`, `2026-01-02 03:04:05`, `.678900` and `+00`. */
const [DATE_LENGTH, TIME_LENGTH, FRACTION_LENGTH, ZONE_LENGTH] = [10, 19, 7, 3];
const TRUE = 116;
const [OBJECT_START, OBJECT_END] = [123, 125];

/** Bytes that a byte of a row takes at most, as in `\u0001`. */
const BYTES_MAX = 6;
/** Bytes that a form adds to its value at most: quotes and `evt_`, or a fraction of a second. */
const ADDED_MAX = 10;

/** Bytes of a word of a constant: half of an object consists of names, and eight bytes at a time cost least. */
const WORD = 8;

/** A text of ASCII in words; the last one may be longer than the text. */
interface Constant {
  readonly words: Float64Array;
  readonly length: number;
}

/** The name of a column before its value, and with the value of an absent one. */
interface Label {
  readonly label: Constant;
  readonly absent: Constant;
}

function constantOf(text: string): Constant {
  const length = Buffer.byteLength(text);
  // Spaces behind the text, because a word whose bytes are all ASCII is never NaN, which would not keep its bits.
  const bytes = Buffer.alloc(Math.ceil(length / WORD) * WORD, ' ');
  bytes.write(text, 'ascii');
  const words = Float64Array.from({ length: bytes.length / WORD }, (_, at) => bytes.readDoubleLE(at * WORD));
  return { words, length };
}

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'));

const TRUE_TEXT = constantOf('true');
const FALSE_TEXT = constantOf('false');
const ID_START = constantOf('"evt_');

/** Escapes of JSON for bytes below 32, a quote and a backslash; other bytes represent themselves. */
const JSON_ESCAPES: readonly (Uint8Array | undefined)[] = Array.from({ length: 256 }, (_, byte) =>
  byte < FIRST_PRINTABLE || byte === QUOTE || byte === BACKSLASH
    ? bytesOf(JSON.stringify(String.fromCharCode(byte)).slice(1, -1))
    : undefined,
);

/**
 * Writes copied rows as JSON objects in chunks of at most 500. It works on bytes without texts, because an
 * export of millions of rows spends its time here. `isArray`: the chunks are parts of one array, without its brackets,
 * else there is one object a line.
 */
export class CopiedJsonWriter {
  readonly #columns: readonly (Label & { form: CopiedForm })[];
  readonly #further: readonly Label[];
  readonly #withoutFurther: Constant;
  readonly #inner: { key: Buffer; name: Constant; join: CopiedColumns['join'] };
  /** Bytes of an object beside its values, at most. */
  readonly #ownBytes: number;
  readonly #isArray: boolean;
  #hasWritten = false;
  #from: Buffer = Buffer.alloc(0);
  /** Index of the next byte of the block. */
  #at = 0;
  #to: Buffer = Buffer.alloc(0);
  #words = new DataView(this.#to.buffer);
  /** Number of bytes written to the chunk. */
  #size = 0;

  constructor({ columns, json, inner, join }: CopiedColumns, isArray: boolean) {
    const constants = (label: string, absent: string): Label => ({
      label: constantOf(label),
      absent: constantOf(label + absent),
    });
    this.#columns = columns.map(({ name, form }, index) => ({
      form,
      ...constants(`${index === 0 ? '{' : ','}"${name}":`, form === 'list' ? '[]' : 'null'),
    }));
    this.#further = json.map((name) => constants(`,"${name}":`, 'null'));
    this.#withoutFurther = constantOf(`,"${json[0]}":null}`);
    this.#inner = { key: Buffer.from(`"${inner}"`), name: constantOf(`"${inner}":`), join };
    const absents = [...this.#columns, ...this.#further].map(({ absent }) => absent.length + ADDED_MAX);
    this.#ownBytes = absents.reduce((sum, bytes) => sum + bytes, this.#inner.name.length + ADDED_MAX + WORD);
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
    this.#writeTo(Buffer.allocUnsafe(Math.max(this.#size + (this.#size >> 2), FIRST_CHUNK)));
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
      if (from[this.#at] === COPIED_NULL) {
        this.#constant(absent);
        this.#at += 2;
      } else {
        this.#constant(label);
        this.#value(form);
        this.#at += 1;
      }
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
      if (byte > QUOTE && byte !== BACKSLASH) {
        to[size++] = byte;
        continue;
      }
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
    let size = this.#size;
    to[size++] = QUOTE;
    for (let index = 0; index < TIME_LENGTH; index += 1) to[size + index] = from[at + index] as number;
    to[size + DATE_LENGTH] = TIME_START;
    size += TIME_LENGTH;
    let end = at;
    while (from[end] !== TAB && from[end] !== LINE_END) end += 1;
    if (from[at + TIME_LENGTH] === DOT) {
      const fraction = at + TIME_LENGTH;
      const zone = end - ZONE_LENGTH;
      for (let index = fraction; index < fraction + FRACTION_LENGTH; index += 1)
        to[size++] = index < zone ? (from[index] as number) : ZERO;
    }
    to[size++] = TIME_END;
    to[size++] = QUOTE;
    this.#at = end;
    this.#size = size;
  }

  /** A uuid as the public id of an event. */
  #id(): void {
    const from = this.#from;
    this.#constant(ID_START);
    let at = this.#at;
    let size = this.#size;
    for (let byte = from[at] as number; byte !== TAB && byte !== LINE_END; byte = from[++at] as number)
      if (byte !== DASH) this.#to[size++] = byte;
    this.#to[size++] = QUOTE;
    this.#at = at;
    this.#size = size;
  }

  #boolean(): void {
    this.#constant(this.#from[this.#at] === TRUE ? TRUE_TEXT : FALSE_TEXT);
    this.#at += 1;
  }

  /** The columns of JSON of the line that ends at `end`, and the last brace. */
  #rest(end: number): void {
    if (this.#at > end) {
      this.#constant(this.#withoutFurther);
      return;
    }
    const from = this.#from;
    const inner = from.lastIndexOf(TAB, end) + 1;
    for (let index = 0; index < this.#further.length; index += 1) {
      const { label, absent } = this.#further[index] as Label;
      const isAbsent = from[this.#at] === COPIED_NULL;
      if (index === 0 && from[inner] !== COPIED_NULL) {
        this.#constant(label);
        this.#outer(inner, end);
      } else if (isAbsent) {
        this.#constant(absent);
        this.#at += 1;
      } else {
        this.#constant(label);
        this.#json();
      }
      this.#at += 1;
    }
    this.#byte(OBJECT_END);
  }

  /**
   * The value at the next byte with the value at `inner` as its last field. Reading the JSON of both would cost more
   * than everything else of a row.
   */
  #outer(inner: number, end: number): void {
    const { key, name, join } = this.#inner;
    const start = this.#at;
    const tab = this.#from.indexOf(TAB, start);
    const outer = this.#from.subarray(start, tab);
    if (outer[0] !== OBJECT_START || outer.includes(key)) {
      this.#at = tab;
      const text = JSON.stringify(join(jsonOf(outer), jsonOf(this.#from.subarray(inner, end))));
      this.#reserve(Buffer.byteLength(text) + this.#ownBytes + BYTES_MAX * (end - tab));
      this.#size += this.#to.write(text, this.#size);
      return;
    }
    this.#json();
    this.#size -= 1;
    if (this.#to[this.#size - 1] !== OBJECT_START) this.#byte(COMMA);
    this.#constant(name);
    this.#at = inner;
    this.#json();
    this.#byte(OBJECT_END);
    this.#at = tab;
  }

  #constant({ words, length }: Constant): void {
    const view = this.#words;
    const size = this.#size;
    for (let index = 0; index < words.length; index += 1)
      view.setFloat64(size + index * WORD, words[index] as number, true);
    this.#size = size + length;
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
    this.#writeTo(larger);
  }

  #writeTo(buffer: Buffer): void {
    this.#to = buffer;
    this.#words = new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
  }
}

function jsonOf(field: Buffer): unknown {
  if (field[0] === COPIED_NULL) return null;
  const text = field.toString().replaceAll(/\\(.)/gs, (_, letter: string) => {
    const byte = letter.charCodeAt(0);
    return String.fromCharCode(COPIED_ESCAPES.get(byte) ?? byte);
  });
  return JSON.parse(text);
}
