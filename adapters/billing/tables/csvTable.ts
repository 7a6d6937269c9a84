import { StringDecoder } from 'node:string_decoder';
import type { TableRecord } from '../../../domain/billing/formats/tableFormat.js';
import type { DomainError } from '../../../domain/errors.js';
import { faultAt } from '../jsonEvents.js';
import type { PlacedRecord, TableSource } from './readTable.js';

/**
 * A CSV file as a table. Error: invalid_billing_file for a missing header, a header with another separator than commas,
 * or one that repeats a column that is read; tags of a bill may differ by case alone.
 */
export async function openCsvTable(chunks: AsyncIterable<Buffer>): Promise<TableSource> {
  const batches = readLines(chunks)[Symbol.asyncIterator]();
  const first = await batches.next();
  const [header, ...rest] = first.done ? [] : first.value;
  if (!header) throw faultAt({ line: 1, column: 1 }, 'the file has no header line');
  const columns = header.cells.map((cell) => cell.trim().toLowerCase());
  const reason = faultOfHeader(header.cells);
  if (reason !== undefined) throw faultAt({ line: header.line, column: 1 }, reason);
  return {
    columns: new Set(columns),
    layout: 'columns',
    headerFault: (reason) => faultAt({ line: header.line, column: 1 }, reason),
    records: (wanted) => {
      const read = columns.map((column) => ((wanted?.has(column) ?? true) ? column : null));
      const twice = read.findIndex((column, at) => !!column && read.indexOf(column) !== at);
      if (twice >= 0)
        throw faultAt({ line: header.line, column: twice + 1 }, `the column ${columns[twice]} stands twice`);
      return readRecords(read, columns, rest, batches);
    },
  };
}

const SEPARATORS = { ';': 'semicolons', '\t': 'tabs', '|': 'bars' } as const;

/** The fault of a first line that has another separator than commas; undefined: none is visible. */
function faultOfHeader([first = '', more]: readonly string[]): string | undefined {
  if (/^sep=/i.test(first))
    return 'the first line names a separator; leave it out, and put commas between cells';
  if (more !== undefined) return undefined;
  const found = Object.entries(SEPARATORS).find(([sign]) => first.includes(sign));
  return found && `the cells are separated by ${found[1]}; save it with commas between them`;
}

async function* readRecords(
  wanted: readonly (string | null)[],
  columns: readonly string[],
  first: CsvLine[],
  rest: AsyncIterator<CsvLine[]>,
): AsyncGenerator<PlacedRecord[]> {
  try {
    if (first.length > 0) yield first.map((line) => new CsvRecord(wanted, columns, line));
    for (let next = await rest.next(); !next.done; next = await rest.next())
      yield next.value.map((line) => new CsvRecord(wanted, columns, line));
  } finally {
    await rest.return?.();
  }
}

/** Batches of at least one record. */
async function* readLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<CsvLine[]> {
  const lines = new CsvLines();
  for await (const chunk of chunks) {
    const whole = lines.write(chunk);
    if (whole.length > 0) yield whole;
  }
  const last = lines.end();
  if (last.length > 0) yield last;
}

class CsvRecord implements PlacedRecord {
  readonly record: TableRecord;
  readonly #columns: readonly string[];
  readonly #line: number;

  constructor(wanted: readonly (string | null)[], columns: readonly string[], { cells, line }: CsvLine) {
    if (cells.length !== columns.length) {
      throw faultAt(
        { line, column: Math.min(cells.length, columns.length) + 1 },
        `the line has ${cells.length} cells, the header has ${columns.length}`,
      );
    }
    const record = new Map<string, string>();
    for (let at = 0; at < cells.length; at += 1) {
      const cell = cells[at] as string;
      const column = wanted[at];
      if (cell === '' || column === null || column === undefined) continue;
      const text = cell.trim();
      if (text !== '') record.set(column, text);
    }
    this.record = record;
    this.#columns = columns;
    this.#line = line;
  }

  faultAt(reason: string, column?: string): DomainError {
    const at = column === undefined ? 0 : this.#columns.indexOf(column);
    return faultAt({ line: this.#line, column: Math.max(at, 0) + 1 }, reason);
  }
}

/** Longest record of a file, characters, so that a missing quote does not read the rest into memory. */
export const RECORD_CHARS_MAX = 1_048_576;

/** A record's cells as written, and its first line (from 1). */
export interface CsvLine {
  cells: string[];
  line: number;
}

/**
 * Splits CSV (RFC 4180) into records, batch by batch. Records without a quote, which nearly all are, are split by the
 * JavaScript engine's `split`, which makes files of a gigabyte fast. Lines end with LF, CRLF or CR. Empty lines are
 * skipped.
 */
export class CsvLines {
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';
  /** The undecoded last bytes of the previous chunk. */
  #tail: Buffer = Buffer.alloc(0);
  #line = 1;
  #isFirst = true;
  /** The first quote at or after the current record; the text's length where there is none. */
  #quote = -1;
  #ending: '\n' | '\r' | undefined;

  /** The records that this chunk completes. Error: invalid_billing_file with line and column. */
  write(chunk: Buffer): CsvLine[] {
    const text = this.#decoder.write(chunk);
    if (text.includes(UNREADABLE)) this.#refuseOther(chunk, text);
    this.#tail = chunk.subarray(-2);
    return this.#take(text, false);
  }

  /**
   * Refuses bytes that are not UTF-8, since replaced characters would change names; the replacement character itself is
   * permitted.
   */
  #refuseOther(chunk: Buffer, text: string): void {
    if (Buffer.concat([this.#tail, chunk]).includes(UNREADABLE)) return;
    const before = this.#rest + text.slice(0, text.indexOf(UNREADABLE));
    throw faultAt(
      { line: this.#line + countOf(before, this.#ending ?? '\n'), column: 1 },
      'the text is not UTF-8; save it as UTF-8 (in Excel: CSV UTF-8)',
    );
  }

  /** The record that ends with the file, if any. Errors as `write`. */
  end(): CsvLine[] {
    return this.#take(this.#decoder.end(), true);
  }

  #take(more: string, isLast: boolean): CsvLine[] {
    let text = this.#rest + more;
    if (this.#isFirst && text.length > 0) {
      this.#isFirst = false;
      if (text.charCodeAt(0) === 0xfeff) text = text.slice(1);
    }
    this.#ending ??= endingOf(text, isLast);
    const records: CsvLine[] = [];
    this.#quote = -1;
    let at = 0;
    while (at < text.length && this.#ending) {
      const next = this.#record(text, at, isLast, records);
      if (next < 0) break;
      at = next;
    }
    this.#rest = text.slice(at);
    if (this.#rest.length > RECORD_CHARS_MAX)
      throw faultAt(
        { line: this.#line, column: 1 },
        `not CSV: a record is longer than ${RECORD_CHARS_MAX} characters; a quote may be missing`,
      );
    return records;
  }

  /** Parses one record at `at` and returns the position after it; -1 when its end has not arrived yet. */
  #record(text: string, at: number, isLast: boolean, records: CsvLine[]): number {
    const ending = this.#ending as string;
    let end = text.indexOf(ending, at);
    if (end < 0) {
      if (!isLast) return -1;
      end = text.length;
    }
    if (this.#quote < at) this.#quote = indexOrEnd(text, '"', at);
    if (this.#quote < end) return this.#quoted(text, at, isLast, records);
    const line = text.slice(at, text.charCodeAt(end - 1) === 13 && end > at ? end - 1 : end);
    if (line.trim() !== '') records.push({ cells: line.split(','), line: this.#line });
    this.#line += 1;
    return end + 1;
  }

  /** `#record` for a record with quotes: cell by cell. */
  #quoted(text: string, start: number, isLast: boolean, records: CsvLine[]): number {
    const ending = this.#ending as string;
    const cells: string[] = [];
    let lines = 1;
    let at = start;
    let end = -1;
    for (;;) {
      const from = skipSpaces(text, at);
      if (text.charCodeAt(from) !== QUOTE) {
        const comma = indexOrEnd(text, ',', at);
        if (end < at) end = indexOrEnd(text, ending, at);
        if (end < comma || (comma === text.length && end === text.length)) {
          if (end === text.length && !isLast) return -1;
          cells.push(withoutReturn(text.slice(at, end)));
          return this.#endRecord(records, cells, lines, end + 1);
        }
        cells.push(text.slice(at, comma));
        at = comma + 1;
        continue;
      }
      const close = closingQuote(text, from + 1);
      if (close < 0) {
        if (!isLast) return -1;
        throw faultAt(
          { line: this.#line, column: cells.length + 1 },
          'not CSV: the file ends inside a quoted cell',
        );
      }
      const cell = text.slice(from + 1, close);
      lines += countOf(cell, ending);
      cells.push(cell.includes('""') ? cell.replaceAll('""', '"') : cell);
      at = skipSpaces(text, close + 1);
      if (at >= text.length - 1 && !isLast) return -1;
      if (text[at] === '\r' && text[at + 1] === '\n') at += 1;
      if (at >= text.length || text[at] === ending) return this.#endRecord(records, cells, lines, at + 1);
      if (text[at] !== ',')
        throw faultAt(
          { line: this.#line, column: cells.length },
          'not CSV: a quoted cell goes on behind its closing quote',
        );
      at += 1;
    }
  }

  #endRecord(records: CsvLine[], cells: string[], lines: number, next: number): number {
    records.push({ cells, line: this.#line });
    this.#line += lines;
    return next;
  }
}

const QUOTE = 0x22;
/** The replacement character, which a decoder writes for undecodable bytes. */
const UNREADABLE = '\ufffd';

/** LF unless the first line of the file ends with a CR alone. */
function endingOf(text: string, isLast: boolean): '\n' | '\r' | undefined {
  const feed = text.indexOf('\n');
  const carriage = text.indexOf('\r');
  if (feed >= 0) return carriage >= 0 && carriage < feed - 1 ? '\r' : '\n';
  if (carriage >= 0 && carriage < text.length - 1) return '\r';
  return isLast ? '\n' : undefined;
}

function skipSpaces(text: string, from: number): number {
  let at = from;
  while (text[at] === ' ' || text[at] === '\t') at += 1;
  return at;
}

function indexOrEnd(text: string, what: string, from: number): number {
  const at = text.indexOf(what, from);
  return at < 0 ? text.length : at;
}

/** Position of the quote that closes a cell; -1 when it has not arrived, or may be the first of a doubled one. */
function closingQuote(text: string, from: number): number {
  let at = from;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return -1;
    if (text.charCodeAt(quote + 1) !== QUOTE) return quote;
    at = quote + 2;
  }
}

function withoutReturn(text: string): string {
  return text.endsWith('\r') ? text.slice(0, -1) : text;
}

function countOf(text: string, what: string): number {
  let count = 0;
  for (let at = text.indexOf(what); at >= 0; at = text.indexOf(what, at + 1)) count += 1;
  return count;
}
