import { Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import type { BilledRow } from '../../domain/billing/billedRow.js';
import type { FxRate } from '../../domain/billing/pageRow.js';
import {
  CellFault,
  PLAIN_COLUMNS_OPTIONAL,
  PLAIN_COLUMNS_REQUIRED,
  type PlainRecord,
  plainCsvRow,
} from '../../domain/billing/plainCsv.js';
import { DomainError } from '../../domain/errors.js';
import { faultAt } from './jsonEvents.js';

/** Longest record of a file, so that a missing quote does not read the rest into memory. */
const RECORD_BYTES_MAX = 65_536;
const BATCH_ROWS = 500;
const COLUMNS: ReadonlySet<string> = new Set([...PLAIN_COLUMNS_REQUIRED, ...PLAIN_COLUMNS_OPTIONAL]);

interface ParsedRecord {
  record: string[];
  info: { lines: number; invalid_field_length: number };
}

/**
 * Plain CSV → rows in batches. Error invalid_billing_file with the line and, where one cell is at
 * fault, the number of its column.
 */
export async function* readPlainCsv(
  chunks: AsyncIterable<Buffer>,
  fxRate: FxRate,
): AsyncGenerator<BilledRow[]> {
  const parser = parse({
    bom: true,
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    trim: true,
    max_record_size: RECORD_BYTES_MAX,
  });
  const source = Readable.from(chunks);
  source.on('error', (error) => parser.destroy(error));
  source.pipe(parser);
  let header: string[] | undefined;
  let batch: BilledRow[] = [];
  try {
    for await (const { record, info } of parser as AsyncIterable<ParsedRecord>) {
      if (!header) header = readHeader(record, info.lines);
      else batch.push(readRecord(header, record, info.lines, fxRate));
      if (batch.length < BATCH_ROWS) continue;
      yield batch;
      batch = [];
    }
  } catch (error) {
    throw translate(error);
  } finally {
    source.destroy();
  }
  if (!header) throw faultAt({ line: 1, column: 1 }, 'the file has no header line');
  if (batch.length > 0) yield batch;
}

function readHeader(cells: string[], line: number): string[] {
  const header = cells.map((cell) => cell.toLowerCase());
  for (const column of PLAIN_COLUMNS_REQUIRED) {
    if (!header.includes(column)) {
      throw faultAt(
        { line, column: 1 },
        `the column ${column} is missing; a plain CSV has ${PLAIN_COLUMNS_REQUIRED.join(', ')}`,
      );
    }
  }
  const twice = header.findIndex((column, at) => COLUMNS.has(column) && header.indexOf(column) !== at);
  if (twice >= 0)
    throw faultAt({ line, column: twice + 1 }, `the column ${header[twice] as string} stands twice`);
  return header;
}

function readRecord(header: string[], cells: string[], line: number, fxRate: FxRate): BilledRow {
  if (cells.length !== header.length) {
    throw faultAt(
      { line, column: Math.min(cells.length, header.length) + 1 },
      `the line has ${cells.length} cells, the header has ${header.length}`,
    );
  }
  const record: PlainRecord = {};
  header.forEach((column, at) => {
    if (COLUMNS.has(column)) record[column] = cells[at] ?? '';
  });
  try {
    return plainCsvRow(record, fxRate);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const column =
      error instanceof CellFault ? header.indexOf(error.column) + 1 : header.indexOf('amount_usd') + 1;
    throw faultAt({ line, column }, error.message);
  }
}

function translate(error: unknown): unknown {
  if (!(error instanceof CsvError)) return error;
  const place = error as unknown as { lines?: number; column?: number | string };
  const column = typeof place.column === 'number' ? place.column + 1 : 1;
  return faultAt(
    { line: place.lines ?? 1, column },
    `not CSV: ${error.code.toLowerCase().replaceAll('_', ' ')}`,
  );
}
