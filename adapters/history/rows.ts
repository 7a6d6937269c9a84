import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { DomainError } from '../../domain/errors.js';
import { CsvLines } from '../billing/tables/csvTable.js';

/** A row of an export, and the line (from 1) on which it begins. */
export interface HistoryRow {
  line: number;
  /** By name in snake case: exports of one product write startTime, start_time and "Start Time". */
  fields: ReadonlyMap<string, unknown>;
}

/** Largest JSON record, bytes, so that a missing bracket does not read the rest into memory. */
export const RECORD_BYTES_MAX = 16_777_216;

const NEWLINE = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

/**
 * Reads an export row by row, in memory that does not grow with the file: CSV with a header, one JSON object a line,
 * a list of objects, or answers of an API with their rows in `data`; also gzipped. Error: invalid_body with line and
 * column.
 */
export async function* readHistoryRows(path: string): AsyncGenerator<HistoryRow> {
  const bytes = unpacked(createReadStream(path, { highWaterMark: 1_048_576 }));
  const first = await bytes.next();
  if (first.done || first.value.length === 0) return;
  const chunks = (async function* () {
    yield first.value;
    yield* bytes;
  })();
  const start = first.value
    .toString('latin1')
    .replace(/^\xef\xbb\xbf/, '')
    .trimStart()[0];
  yield* start === '{' || start === '[' ? jsonRows(chunks) : csvRows(chunks);
}

async function* unpacked(file: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const iterator = file[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done) return;
  const whole = (async function* () {
    yield first.value;
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value;
  })();
  if (!first.value.subarray(0, 2).equals(GZIP_MAGIC)) {
    yield* whole;
    return;
  }
  const gunzip = createGunzip();
  const pump = (async () => {
    for await (const chunk of whole)
      if (!gunzip.write(chunk)) await new Promise<void>((resolve) => gunzip.once('drain', resolve));
    gunzip.end();
  })();
  pump.catch((error: Error) => gunzip.destroy(error));
  try {
    yield* gunzip as AsyncIterable<Buffer>;
    await pump;
  } catch {
    throw faultAt(1, 1, 'the gzip file is damaged or incomplete: copy it again');
  }
}

async function* csvRows(chunks: AsyncIterable<Buffer>): AsyncGenerator<HistoryRow> {
  const lines = new CsvLines();
  let names: string[] | undefined;
  const rowOf = ({ cells, line }: { cells: string[]; line: number }): HistoryRow | undefined => {
    if (names === undefined) {
      names = cells.map(snakeCase);
      return undefined;
    }
    if (cells.length !== names.length)
      throw faultAt(
        line,
        Math.min(cells.length, names.length) + 1,
        `the line has ${cells.length} cells, the header has ${names.length}: export the file again`,
      );
    const fields = new Map<string, unknown>();
    cells.forEach((cell, at) => {
      const text = cell.trim();
      if (text !== '') fields.set((names as string[])[at] as string, cellValue(text));
    });
    return { line, fields };
  };
  for await (const chunk of chunks)
    for (const line of lines.write(chunk)) {
      const row = rowOf(line);
      if (row) yield row;
    }
  for (const line of lines.end()) {
    const row = rowOf(line);
    if (row) yield row;
  }
}

/** A cell; nested values are JSON in a cell of their own. */
function cellValue(text: string): unknown {
  if (text[0] !== '{' && text[0] !== '[') return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function* jsonRows(chunks: AsyncIterable<Buffer>): AsyncGenerator<HistoryRow> {
  const records = new JsonRecords();
  for await (const chunk of chunks) for (const record of records.write(chunk)) yield* rowsOf(record);
  records.end();
}

/** The rows in a record: itself, or those of an API's answer. */
function* rowsOf({ line, text }: { line: number; text: string }): Generator<HistoryRow> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const at = Number(/position (\d+)/.exec(String(error))?.[1] ?? 0);
    const before = text.slice(0, at).split('\n');
    throw faultAt(
      line + before.length - 1,
      (before.at(-1)?.length ?? 0) + 1,
      'not JSON from here on: export the file again',
    );
  }
  const { data } = value as { data?: unknown };
  for (const item of Array.isArray(data) ? data : [value]) {
    const isObject = typeof item === 'object' && item !== null && !Array.isArray(item);
    const entries = isObject ? Object.entries(item as object) : [];
    const fields = new Map<string, unknown>();
    for (const [name, field] of entries)
      if (field !== null && field !== '') fields.set(snakeCase(name), field);
    yield { line, fields };
  }
}

/** Cuts JSON into its outermost objects, with a list around them or without. */
class JsonRecords {
  #rest: Buffer = Buffer.alloc(0);
  /** Bytes of `#rest` that are scanned. */
  #scanned = 0;
  #start = -1;
  #depth = 0;
  #isText = false;
  #isEscaped = false;
  #line = 1;
  #startLine = 1;

  write(chunk: Buffer): { line: number; text: string }[] {
    const buffer = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const found: { line: number; text: string }[] = [];
    let keep = 0;
    for (let at = this.#scanned; at < buffer.length; at += 1) {
      const byte = buffer[at];
      if (byte === NEWLINE) this.#line += 1;
      if (this.#isText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#isText = false;
        continue;
      }
      if (byte === 0x7b) {
        if (this.#depth === 0) {
          this.#start = at;
          this.#startLine = this.#line;
        }
        this.#depth += 1;
      } else if (byte === 0x7d && this.#depth > 0) {
        this.#depth -= 1;
        if (this.#depth > 0) continue;
        found.push({ line: this.#startLine, text: buffer.toString('utf8', this.#start, at + 1) });
        keep = at + 1;
        this.#start = -1;
      } else if (this.#depth === 0) this.#assertBetween(byte as number);
      else if (byte === QUOTE) this.#isText = true;
    }
    const from = this.#start < 0 ? buffer.length : Math.max(this.#start, keep);
    this.#rest = buffer.subarray(from);
    this.#scanned = this.#rest.length;
    if (this.#start >= 0) this.#start = 0;
    if (this.#rest.length > RECORD_BYTES_MAX)
      throw faultAt(
        this.#startLine,
        1,
        `a record is larger than ${RECORD_BYTES_MAX} bytes: export without inputs and outputs`,
      );
    return found;
  }

  /** Error where the file ends inside a record. */
  end(): void {
    if (this.#depth > 0)
      throw faultAt(
        this.#startLine,
        1,
        'the file ends inside this record: export it again, or copy it whole',
      );
  }

  /** Between records there are only brackets, commas and white space. */
  #assertBetween(byte: number): void {
    if (byte <= 0x20 || byte === 0x2c || byte === 0x5b || byte === 0x5d || byte >= 0x80) return;
    throw faultAt(this.#line, 1, 'not a list of JSON objects: export as CSV, JSON or JSONL');
  }
}

/** `startTime`, `costUSD` and `Start Time` in snake case. */
export function snakeCase(name: string): string {
  return name
    .trim()
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[\s.-]+/g, '_')
    .toLowerCase();
}

function faultAt(line: number, column: number, reason: string): DomainError {
  return new DomainError('invalid_body', `line ${line}, column ${column}: ${reason}`);
}
