import {
  type FocusExportVersion,
  type FocusRecord,
  focusColumnsOf,
} from '../../../domain/billing/focus/focusCharge.js';
import { publicId } from '../../../domain/ids.js';
import { type CsvCell, writeCsvRow } from '../../csv.js';

/** Columns whose uuids are written as public ids, with the prefix of each. */
const PUBLIC: Readonly<Record<string, 'fnd' | 'dsp'>> = { x_FindingId: 'fnd', x_DisputeId: 'dsp' };

/** Writes the header, then the rows of each provider and day as they are read. */
export async function* writeFocusCsv(
  version: FocusExportVersion,
  days: AsyncIterable<readonly FocusRecord[]>,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const columns = focusColumnsOf(version);
  yield writeCsvRow(columns.map(({ name }) => name));
  for await (const records of days) {
    if (signal.aborted) return;
    yield records
      .map((record) => writeCsvRow(columns.map((column) => cellOf(column.name, column.of(record)))))
      .join('');
  }
}

function cellOf(name: string, cell: CsvCell): CsvCell {
  const kind = PUBLIC[name];
  return kind && typeof cell === 'string' ? publicId(kind, cell) : cell;
}
