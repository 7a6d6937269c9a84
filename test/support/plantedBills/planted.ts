import { parquetWriteBuffer } from 'hyparquet-writer';
import type { ChargeCategory } from '../../../domain/billing/billedRow.js';
import type { BillingFormat } from '../../../domain/billing/sources.js';
import type { Provider } from '../../../domain/providers.js';

/** A charge that was written into a generated bill, as the file has it and as it is meant. */
export interface PlantedCharge {
  cells: Record<string, string>;
  category: ChargeCategory;
  currency: string;
  /** The decimal text of the file. */
  amount: string;
  /** False: of a service that is no model provider's. */
  isKept: boolean;
}

/** DuckDB's query of the same charges: expressions over the file's columns, all of them texts. */
export interface PlainSum {
  category: string;
  currency: string;
  amount: string;
}

export interface PlantedBill {
  name: string;
  filename: string;
  provider: Provider;
  format: BillingFormat;
  bytes: Buffer;
  charges: readonly Pick<PlantedCharge, 'category' | 'currency' | 'amount' | 'isKept'>[];
  /** SQL of the table in the file `$file`, and the sums over it; several where one record has several charges. */
  table: string;
  sums: readonly PlainSum[];
}

/** Whole numbers from 0 to `below`, always the same ones. */
export function numbersFrom(seed: number): (below: number) => number {
  let state = BigInt(seed);
  return (below) => {
    state = (state * 6_364_136_223_846_793_005n + 1_442_695_040_888_963_407n) & ((1n << 64n) - 1n);
    return Number((state >> 33n) % BigInt(below));
  };
}

/** A decimal text of this many fraction digits, without trailing zeros. */
export function decimal(next: (below: number) => number, digits: number): string {
  const fraction = Array.from({ length: digits }, () => next(10))
    .join('')
    .replace(/0+$/, '');
  return `${next(50)}${fraction === '' ? '' : `.${fraction}`}`;
}

/** Half of a decimal and the rest of it, so that both are exactly the whole. */
export function halves(text: string): [string, string] {
  const [whole = '0', fraction = ''] = text.split('.');
  const value = BigInt(`${whole}${fraction}`);
  const write = (part: bigint) => {
    const digits = part.toString().padStart(fraction.length + 1, '0');
    const at = digits.length - fraction.length;
    return fraction === '' ? digits : `${digits.slice(0, at)}.${digits.slice(at)}`;
  };
  return [write(value / 2n), write(value - value / 2n)];
}

const quoted = (cell: string) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

/** A CSV with a byte order mark, lines ended by CRLF, and quotes only where they are needed. */
export function csvOf(columns: readonly string[], records: readonly Record<string, string>[]): Buffer {
  const lines = [columns, ...records.map((record) => columns.map((column) => record[column] ?? ''))];
  return Buffer.from(`\ufeff${lines.map((cells) => `${cells.map(quoted).join(',')}\r\n`).join('')}`);
}

export const CSV_TABLE = `read_csv('$file', all_varchar = true, header = true, quote = '"', escape = '"', delim = ',')`;

/** A Parquet file of several row groups, with numbers as doubles and times as times, as cloud providers write them. */
export function parquetOf(
  columns: readonly string[],
  records: readonly Record<string, string>[],
  kinds: { doubles: ReadonlySet<string>; times: ReadonlySet<string> },
): Buffer {
  const columnData = columns.map((name) => {
    const cells = records.map((record) => record[name] ?? '');
    const of = <T>(read: (cell: string) => T) => cells.map((cell) => (cell === '' ? null : read(cell)));
    if (kinds.doubles.has(name)) return { name, type: 'DOUBLE' as const, nullable: true, data: of(Number) };
    if (kinds.times.has(name))
      return { name, type: 'TIMESTAMP' as const, nullable: true, data: of((cell) => new Date(cell)) };
    return { name, type: 'STRING' as const, nullable: true, data: of((cell) => cell) };
  });
  return Buffer.from(parquetWriteBuffer({ columnData, rowGroupSize: 25 }));
}

/** The table of such a file with one column of numbers as the texts that name them. */
export const parquetTable = (amount: string): string =>
  `(select * replace (cast("${amount}" as varchar) as "${amount}") from read_parquet('$file'))`;

/** Days of the generated bills: September 2026, and one day of the month before that comes late. */
export const day = (at: number): string => `2026-09-${String((at % 30) + 1).padStart(2, '0')}`;
export const LATE_DAY = '2026-08-31';

/** A text with everything that a careless reader trips over. */
export const AWKWARD = 'Zwei Zeilen:\r\n"eins", zwei; drei\nvier\t🤖';
