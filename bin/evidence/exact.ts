/** A statement of a pack that does not follow from the rest: with the file and, if known, the line. */
export class Difference extends Error {
  readonly file: string;
  readonly line: number | undefined;

  constructor(file: string, line: number | undefined, message: string) {
    super(message);
    this.file = file;
    this.line = line;
  }
}

/** Decimals as whole numbers of the 36th fraction digit: more digits than any amount, quantity or rate has. */
const DIGITS = 36;
export const ONE = 10n ** BigInt(DIGITS);

const DECIMAL = /^\s*([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?\s*$/;

/** undefined: the text is no decimal. More than 36 fraction digits are refused. */
export function parseDecimal(text: string): bigint | undefined {
  const match = DECIMAL.exec(text);
  if (!match) return undefined;
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  if (whole === '' && fraction === '') return undefined;
  const digits = BigInt(`${whole}${fraction}`);
  const shift = DIGITS - fraction.length + Number(exponent);
  const value = shift >= 0 ? digits * 10n ** BigInt(shift) : digits / 10n ** BigInt(-shift);
  if (shift < 0 && value * 10n ** BigInt(-shift) !== digits) return undefined;
  return sign === '-' ? -value : value;
}

/** The decimal without trailing zeros. */
export function decimalText(value: bigint): string {
  const digits = (value < 0n ? -value : value).toString().padStart(DIGITS + 1, '0');
  const fraction = digits.slice(-DIGITS).replace(/0+$/, '');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -DIGITS)}${fraction === '' ? '' : `.${fraction}`}`;
}

/** Rounds a quotient half to even; the divisor is positive. */
export function divideHalfEven(numerator: bigint, divisor: bigint): bigint {
  const quotient = numerator / divisor;
  const rest = numerator % divisor;
  const twice = (rest < 0n ? -rest : rest) * 2n;
  const away = numerator < 0n ? quotient - 1n : quotient + 1n;
  if (twice < divisor || (twice === divisor && quotient % 2n === 0n)) return quotient;
  return away;
}

const TWELFTH = 10n ** BigInt(DIGITS - 12);

/** Rounds to the 12th fraction digit, half to even, as stored amounts and quantities are. */
export const toTwelve = (value: bigint): bigint => divideHalfEven(value, TWELFTH) * TWELFTH;

/** The product of two decimals without rounding: scaled by ONE twice. */
export const times = (a: bigint, b: bigint): bigint => a * b;

/** Rounds half away from zero at the 12th digit, as the conversion of currencies does. */
export function converted(amount: bigint, rate: bigint): bigint {
  const scale = ONE * TWELFTH;
  const product = amount * rate;
  const half = product < 0n ? -scale / 2n : scale / 2n;
  return ((product + half) / scale) * TWELFTH;
}

/** A JSON value with its line; a separate parser, since JSON.parse rounds numbers. */
export interface JsonNode {
  readonly line: number;
  readonly kind: 'object' | 'array' | 'string' | 'number' | 'word';
  /** A string's value; a number or word as written. */
  readonly text: string;
  readonly fields: ReadonlyMap<string, JsonNode>;
  readonly items: readonly JsonNode[];
}

const NO_FIELDS: ReadonlyMap<string, JsonNode> = new Map();
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON has none inside of a string
const STRING = /"(?:[^"\\\u0000-\u001f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/y;
const DEPTH_MAX = 200;

/** The documents of a text, one after the other. */
export function readJson(file: string, text: string): JsonNode[] {
  const reader = new Reader(file, text);
  const documents: JsonNode[] = [];
  while (!reader.isAtEnd()) documents.push(reader.value(0));
  return documents;
}

class Reader {
  readonly #file: string;
  readonly #text: string;
  #at = 0;
  #line = 1;

  constructor(file: string, text: string) {
    this.#file = file;
    this.#text = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }

  isAtEnd(): boolean {
    for (; this.#at < this.#text.length; this.#at += 1) {
      const code = this.#text.charCodeAt(this.#at);
      if (code === 10) this.#line += 1;
      else if (code !== 32 && code !== 9 && code !== 13) return false;
    }
    return true;
  }

  value(depth: number): JsonNode {
    if (this.isAtEnd() || depth > DEPTH_MAX) throw this.#fault();
    const line = this.#line;
    const first = this.#text[this.#at];
    const leaf = { line, fields: NO_FIELDS, items: [] };
    if (first === '{') return { ...leaf, kind: 'object', text: '', fields: this.#fields(depth) };
    if (first === '[') return { ...leaf, kind: 'array', text: '', items: this.#items(depth) };
    if (first === '"') return { ...leaf, kind: 'string', text: this.#string() };
    for (const word of ['true', 'false', 'null']) {
      if (!this.#text.startsWith(word, this.#at)) continue;
      this.#at += word.length;
      return { ...leaf, kind: 'word', text: word };
    }
    return { ...leaf, kind: 'number', text: this.#match(NUMBER) };
  }

  #fields(depth: number): Map<string, JsonNode> {
    const fields = new Map<string, JsonNode>();
    this.#at += 1;
    if (this.#takes('}')) return fields;
    do {
      if (this.isAtEnd()) throw this.#fault();
      const name = this.#string();
      if (fields.has(name) || !this.#takes(':')) throw this.#fault();
      fields.set(name, this.value(depth + 1));
    } while (this.#takes(','));
    if (!this.#takes('}')) throw this.#fault();
    return fields;
  }

  #items(depth: number): JsonNode[] {
    const items: JsonNode[] = [];
    this.#at += 1;
    if (this.#takes(']')) return items;
    do items.push(this.value(depth + 1));
    while (this.#takes(','));
    if (!this.#takes(']')) throw this.#fault();
    return items;
  }

  #string(): string {
    return JSON.parse(this.#match(STRING)) as string;
  }

  #takes(sign: string): boolean {
    if (this.isAtEnd() || this.#text[this.#at] !== sign) return false;
    this.#at += 1;
    return true;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined) throw this.#fault();
    this.#at += found.length;
    return found;
  }

  #fault(): Difference {
    return new Difference(this.#file, this.#line, 'is not JSON');
  }
}

/** The value at a JSON pointer (RFC 6901); undefined: there is none. */
export function atPointer(node: JsonNode | undefined, pointer: string): JsonNode | undefined {
  if (pointer === '') return node;
  if (!pointer.startsWith('/')) return undefined;
  let at = node;
  for (const part of pointer.slice(1).split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    at =
      at?.kind === 'array' ? (/^\d+$/.test(name) ? at.items[Number(name)] : undefined) : at?.fields.get(name);
  }
  return at;
}

/** The canonical text of a value: no spaces, names in the order of their code units, numbers as doubles are written. */
export function canonicalText(node: JsonNode, leftOut: ReadonlySet<string> = new Set()): string {
  if (node.kind === 'array') return `[${node.items.map((item) => canonicalText(item)).join(',')}]`;
  if (node.kind === 'object') {
    const names = [...node.fields.keys()].filter((name) => !leftOut.has(name)).sort();
    const parts = names.map(
      (name) => `${JSON.stringify(name)}:${canonicalText(node.fields.get(name) as JsonNode)}`,
    );
    return `{${parts.join(',')}}`;
  }
  if (node.kind === 'string') return JSON.stringify(node.text);
  return node.kind === 'number' ? JSON.stringify(Number(node.text)) : node.text;
}

/** Records of a bill that is a table: CSV (RFC 4180) with a header, or JSON lines. Cells by lower-case column. */

export interface TableRow {
  readonly line: number;
  readonly cells: ReadonlyMap<string, string>;
}

export function readTable(file: string, bytes: Buffer): TableRow[] {
  const text = bytes.toString('utf8').replace(/^\ufeff/, '');
  return /^\s*\{/.test(text) ? readLines(file, text) : readCsv(file, text);
}

function readLines(file: string, text: string): TableRow[] {
  return readJson(file, text).map((node) => {
    const cells = new Map<string, string>();
    flatten(node, '', cells);
    return { line: node.line, cells };
  });
}

function flatten(node: JsonNode, path: string, cells: Map<string, string>): void {
  for (const [name, field] of node.fields) {
    const at = (path === '' ? name : `${path}.${name}`).toLowerCase();
    if (field.kind === 'object') flatten(field, at, cells);
    else if (field.kind === 'string' || field.kind === 'number') cells.set(at, field.text);
  }
}

function readCsv(file: string, text: string): TableRow[] {
  const records = [...csvRecords(file, text)];
  const header = records.shift()?.cells.map((cell) => cell.trim().toLowerCase()) ?? [];
  return records.map(({ line, cells }) => ({
    line,
    cells: new Map(cells.map((cell, at): [string, string] => [header[at] ?? '', cell.trim()])),
  }));
}

/** Lines end with LF, CRLF or CR; empty ones are skipped. */
export function* csvRecords(file: string, text: string): Generator<{ line: number; cells: string[] }> {
  let line = 1;
  let at = 0;
  while (at < text.length) {
    const start = line;
    const cells: string[] = [];
    for (;;) {
      const quoted = /[ \t]*"((?:[^"]|"")*)"[ \t]*/y;
      quoted.lastIndex = at;
      const found = quoted.exec(text);
      if (found) {
        cells.push((found[1] ?? '').replaceAll('""', '"'));
        line += (found[0].match(/\r\n|\n|\r/g) ?? []).length;
        at += found[0].length;
      } else {
        const plain = /[^,\r\n]*/y;
        plain.lastIndex = at;
        const cell = plain.exec(text)?.[0] ?? '';
        cells.push(cell);
        at += cell.length;
      }
      if (text[at] !== ',') break;
      at += 1;
    }
    if (at < text.length && text[at] !== '\r' && text[at] !== '\n')
      throw new Difference(file, line, 'is not CSV');
    if (text[at] === '\r' && text[at + 1] === '\n') at += 1;
    at += 1;
    line += 1;
    if (cells.length > 1 || (cells[0] ?? '').trim() !== '') yield { line: start, cells };
  }
}
