import {
  type FileMetaData,
  type ParquetParsers,
  parquetMetadataAsync,
  parquetScan,
  parquetSchema,
  type SchemaElement,
} from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import type { TableRecord } from '../../../domain/billing/formats/tableFormat.js';
import { DomainError } from '../../../domain/errors.js';
import { decimalFromScaled } from '../../../domain/money.js';
import { isoFromMicros } from '../../../domain/period.js';
import type { PlacedRecord, RandomAccess, TableSource } from './readTable.js';

/** Unpacked bytes of the wanted columns in memory at once; a larger row group is read in parts. */
const PART_BYTES = 67_108_864;
const BATCH_ROWS = 1_000;
/** Largest footer, bytes: it lists every column of every row group. */
const FOOTER_BYTES_MAX = 67_108_864;

const decoder = new TextDecoder();

/** Converts times and days to the texts of a CSV of the same export. */
const PARSERS: Partial<ParquetParsers> = {
  timestampFromMilliseconds: (millis) => isoFromMicros(BigInt(millis) * 1_000n),
  timestampFromMicroseconds: (micros) => isoFromMicros(BigInt(micros)),
  timestampFromNanoseconds: (nanos) => isoFromMicros(BigInt(nanos) / 1_000n),
  dateFromDays: (days) => isoFromMicros(BigInt(days) * 86_400_000_000n).slice(0, 10),
  stringFromBytes: (bytes) => bytes && decoder.decode(bytes),
  jsonFromBytes: (bytes) => bytes && decoder.decode(bytes),
};

interface Column {
  /** As the file writes it. */
  name: string;
  cellOf(value: unknown): string;
}

interface Part {
  group: number;
  /** The row group's first row, as an index in the file. */
  groupStart: number;
  rowStart: number;
  rowEnd: number;
}

/**
 * A Parquet file as a table. Its index is at its end, so it needs random access: the footer, then, row group by row
 * group, the columns that the format reads. Error: invalid_billing_file where the file is truncated or damaged.
 */
export async function openParquetTable(random: RandomAccess): Promise<TableSource> {
  const file = new FileOf(random);
  const metadata = await file.reading(`byte ${random.sizeBytes}`, () => readMetadata(file));
  const columns = columnsOf(metadata);
  return {
    columns: new Set(columns.keys()),
    layout: 'columns',
    headerFault: (reason) => new DomainError('invalid_billing_file', `the Parquet schema: ${reason}`),
    records: (wanted) => readRecords(file, metadata, columns, wanted),
  };
}

/** hyparquet's interface to the file. Errors of the storage are distinguished from errors in the bytes. */
class FileOf {
  readonly byteLength: number;
  readonly #random: RandomAccess;
  #failure: unknown;

  constructor(random: RandomAccess) {
    this.#random = random;
    this.byteLength = random.sizeBytes;
  }

  async slice(from: number, to = this.byteLength): Promise<ArrayBuffer> {
    if (from < 0 || to > this.byteLength || to < from) throw new RangeError('beyond the end of the file');
    try {
      const bytes = await this.#random.read(from, to);
      return new Uint8Array(bytes).buffer;
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }

  async reading<T>(place: string, read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      if (error === this.#failure || error instanceof DomainError) throw error;
      throw new DomainError(
        'invalid_billing_file',
        `${place}: the Parquet file is cut or damaged (${reasonOf(error)})`,
      );
    }
  }
}

function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : 'unknown').replace(/[^\x20-\x7e]/g, ' ').slice(0, 120);
}

async function readMetadata(file: FileOf): Promise<FileMetaData> {
  if (file.byteLength < 12) throw new RangeError('too short');
  const tail = new DataView(await file.slice(file.byteLength - 8));
  if (tail.getUint32(4, true) !== 0x31524150) throw new RangeError('it does not end with its footer');
  const footerBytes = tail.getUint32(0, true);
  if (footerBytes > FOOTER_BYTES_MAX || footerBytes > file.byteLength - 12)
    throw new RangeError(`the footer is said to have ${footerBytes} bytes`);
  return parquetMetadataAsync(file, { geoparquet: false, initialFetchSize: footerBytes + 8 });
}

/** The columns by lower-case name. Decimals are read as their stored integers. */
function columnsOf(metadata: FileMetaData): Map<string, Column> {
  const columns = new Map<string, Column>();
  for (const { element, children } of parquetSchema(metadata).children) {
    const column = { name: element.name, cellOf: children.length > 0 ? nestedText : cellTextOf(element) };
    const key = element.name.toLowerCase();
    if (columns.has(key))
      throw new DomainError('invalid_billing_file', `the Parquet schema: the column ${key} stands twice`);
    columns.set(key, column);
  }
  return columns;
}

function cellTextOf(element: SchemaElement): (value: unknown) => string {
  const logical = element.logical_type;
  if (element.converted_type === 'DECIMAL' || logical?.type === 'DECIMAL') {
    const scale = logical?.type === 'DECIMAL' ? logical.scale : (element.scale ?? 0);
    // With the type, the reader would convert them to floating-point numbers.
    delete element.converted_type;
    delete element.logical_type;
    return (value) => decimalText(value, scale);
  }
  if (element.type === 'FLOAT') return (value) => floatText(Number(value));
  return (value) => {
    if (value instanceof Uint8Array) return decoder.decode(value).trim();
    return typeof value === 'object' ? nestedText(value) : String(value).trim();
  };
}

async function* readRecords(
  file: FileOf,
  metadata: FileMetaData,
  columns: ReadonlyMap<string, Column>,
  wanted: ReadonlySet<string> | undefined,
): AsyncGenerator<PlacedRecord[]> {
  const names = [...columns.keys()].filter((name) => wanted?.has(name) ?? true);
  const chosen = names.map((name) => ({ key: name, ...(columns.get(name) as Column) }));
  const originals = chosen.map(({ name }) => name);
  for (const part of partsOf(metadata, originals)) {
    const place = `row group ${part.group + 1}`;
    // A scan caches the columns that it read, so each part has a separate scan.
    const scan = await parquetScan({
      file,
      metadata,
      columns: originals,
      compressors,
      parsers: PARSERS,
      utf8: false,
      geoparquet: false,
      useOffsetIndex: false,
    });
    const cells: { key: string; column: Column; data: ArrayLike<unknown> }[] = [];
    for (const column of chosen) {
      const data = await file.reading(`${place}, column ${column.key}`, async () => {
        const { rowStart, rowEnd } = part;
        const read = await scan.readColumn({ column: column.name, rowStart, rowEnd });
        if (read.length !== rowEnd - rowStart) throw new RangeError('rows are missing');
        return read;
      });
      cells.push({ key: column.key, column, data });
    }
    for (let at = 0; at < part.rowEnd - part.rowStart; at += BATCH_ROWS) {
      const end = Math.min(at + BATCH_ROWS, part.rowEnd - part.rowStart);
      const batch: PlacedRecord[] = [];
      for (let row = at; row < end; row += 1) batch.push(recordAt(cells, part, row));
      yield batch;
    }
  }
}

function recordAt(
  cells: readonly { key: string; column: Column; data: ArrayLike<unknown> }[],
  part: Part,
  row: number,
): PlacedRecord {
  const record = new Map<string, string>();
  for (const { key, column, data } of cells) {
    const value = data[row];
    if (value === null || value === undefined) continue;
    const text = column.cellOf(value);
    if (text !== '') record.set(key, text);
  }
  return new ParquetRecord(record, part, row);
}

class ParquetRecord implements PlacedRecord {
  readonly record: TableRecord;
  readonly #part: Part;
  readonly #row: number;

  constructor(record: TableRecord, part: Part, row: number) {
    this.record = record;
    this.#part = part;
    this.#row = row;
  }

  faultAt(reason: string, column?: string): DomainError {
    const row = this.#part.rowStart - this.#part.groupStart + this.#row + 1;
    const place = `row group ${this.#part.group + 1}, row ${row}${column === undefined ? '' : `, column ${column}`}`;
    return new DomainError('invalid_billing_file', `${place}: ${reason}`);
  }
}

/** The row groups in order; large ones are split into parts of equal numbers of rows. */
function partsOf(metadata: FileMetaData, columns: readonly string[]): Part[] {
  const wanted = new Set(columns);
  const parts: Part[] = [];
  let groupStart = 0;
  metadata.row_groups.forEach((rowGroup, group) => {
    const rows = Number(rowGroup.num_rows);
    let bytes = 0;
    for (const { meta_data: chunk } of rowGroup.columns)
      if (chunk && wanted.has(chunk.path_in_schema[0] ?? '')) bytes += Number(chunk.total_uncompressed_size);
    const step = Math.max(BATCH_ROWS, Math.ceil(rows / Math.max(1, Math.ceil(bytes / PART_BYTES))));
    for (let from = 0; from < rows; from += step) {
      const rowStart = groupStart + from;
      parts.push({ group, groupStart, rowStart, rowEnd: groupStart + Math.min(from + step, rows) });
    }
    groupStart += rows;
  });
  return parts;
}

/** A decimal as Parquet stores it (an integer, or its big-endian two's complement bytes) → its exact text. */
export function decimalText(value: unknown, scale: number): string {
  if (value instanceof Uint8Array) return decimalFromScaled(integerOf(value), scale);
  return decimalFromScaled(BigInt(value as bigint | number), scale);
}

function integerOf(bytes: Uint8Array): bigint {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return BigInt.asIntN(bytes.length * 8, value);
}

/** The shortest decimal that names a 32-bit floating-point number. */
export function floatText(value: number): string {
  for (let digits = 6; digits < 9; digits += 1) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(value);
}

/** A struct, map or list as JSON text, as the CSV of the same export has it; '' where it is empty. */
export function nestedText(value: unknown): string {
  const text = JSON.stringify(value, (_key, field: unknown) => {
    if (typeof field === 'bigint') return String(field);
    return field instanceof Uint8Array ? new TextDecoder().decode(field) : field;
  });
  return text === '{}' || text === '[]' ? '' : text;
}
