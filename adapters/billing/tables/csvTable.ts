import type { TableRecord } from '../../../domain/billing/formats/tableFormat.js';
import type { DomainError } from '../../../domain/errors.js';
import { faultAt } from '../jsonEvents.js';
import { type CsvLine, CsvLines } from './csvLines.js';
import type { PlacedRecord, TableSource } from './tableSource.js';

/** A CSV file as a table. Error invalid_billing_file where it has no header, or one that names a column twice. */
export async function openCsvTable(chunks: AsyncIterable<Buffer>): Promise<TableSource> {
  const batches = readLines(chunks)[Symbol.asyncIterator]();
  const first = await batches.next();
  const [header, ...rest] = first.done ? [] : first.value;
  if (!header) throw faultAt({ line: 1, column: 1 }, 'the file has no header line');
  const columns = header.cells.map((cell) => cell.trim().toLowerCase());
  const twice = columns.findIndex((column, at) => column !== '' && columns.indexOf(column) !== at);
  if (twice >= 0)
    throw faultAt({ line: header.line, column: twice + 1 }, `the column ${columns[twice]} stands twice`);
  return {
    columns: new Set(columns),
    headerFault: (reason) => faultAt({ line: header.line, column: 1 }, reason),
    records: (wanted) =>
      readRecords(
        columns.map((column) => ((wanted?.has(column) ?? true) ? column : null)),
        columns,
        rest,
        batches,
      ),
  };
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
