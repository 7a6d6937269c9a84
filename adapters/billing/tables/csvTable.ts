import type { TableRecord } from '../../../domain/billing/formats/tableFormat.js';
import type { DomainError } from '../../../domain/errors.js';
import { faultAt } from '../jsonEvents.js';
import { type CsvLine, CsvLines } from './csvLines.js';
import type { PlacedRecord, TableSource } from './tableSource.js';

/**
 * A CSV file as a table. Error invalid_billing_file where it has no header, one that is cut by something else than commas,
 * or one that names a column twice that is read: tags of a bill differ by case alone.
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

/** What is wrong with a first line that commas do not cut; undefined where nothing tells. */
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
