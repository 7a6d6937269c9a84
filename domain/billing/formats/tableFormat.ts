import { DomainError } from '../../errors.js';
import { divideHalfEven, parseScaled } from '../../money.js';
import { dayOf, MICROS_PER_DAY, microsOfDay, parseInstant } from '../../period.js';
import type { Provider } from '../../providers.js';
import { type BilledRow, type ChargeCategory, QUANTITY_ONE, QUANTITY_SCALE } from '../billedRow.js';
import { type FxRate, keepText } from '../pageRow.js';
import type { BillingFormat } from '../sources.js';

/** Cells by lower-case column, dotted paths for nested fields, arrays as JSON; empty cells are absent, numbers exact texts. */
export type TableRecord = ReadonlyMap<string, string>;

export interface TableOptions {
  /** Whose bill the file was given as. */
  provider: Provider;
  fxRate: FxRate;
}

/** A charge of which no row is made. `amount` is in 1e-12 units of `currency`, an upper-case ISO 4217 code. */
export interface PlainCharge {
  chargeCategory: ChargeCategory;
  currency: string;
  amount: bigint;
  /** An account and UTC day that the bill speaks about, where the charge is told of one. */
  covers?: { account: string | null; day: string };
}

/** Charges that were left out, summed: kept and left out together are the file's total, to the last digit. */
export interface LeftOut extends Omit<PlainCharge, 'covers'> {
  rows: number;
}

export interface TableFormat {
  readonly format: BillingFormat;
  /** With its article, for sentences: `a plain CSV`. */
  readonly name: string;
  /** Lower-case columns without which it is not this format: what is told of a header that almost fits. */
  readonly required: readonly string[];
  /** The lower-case columns that it reads, so that a reader can pass over the others; absent: any. */
  readonly reads?: ReadonlySet<string>;
  /** Whether a file with these lower-case columns is of this format. Of all formats at most one may say so. */
  isHeader(columns: ReadonlySet<string>): boolean;
  /** A record's rows; null for a foreign service's charge, which `chargeOf` counts. Error CellFault. */
  rowsOf(record: TableRecord, options: TableOptions): readonly BilledRow[] | null;
  /** Unique within a bill; undefined where the record has none, absent where the issuer has none. */
  identityOf?(record: TableRecord): string | undefined;
  /** What a record charges of which `rowsOf` made no row. Absent where every record becomes rows. Error CellFault. */
  chargeOf?(record: TableRecord): PlainCharge | readonly PlainCharge[];
}

/** The first of these columns that has a cell; undefined where none has. Exports name one thing by several names. */
export function cellOf(record: TableRecord, columns: readonly string[]): string | undefined {
  for (const column of columns) {
    const text = record.get(column);
    if (text !== undefined) return text;
  }
  return undefined;
}

/** As `cellOf`, as it is stored. */
export function textOf(record: TableRecord, columns: readonly string[]): string | null {
  const text = cellOf(record, columns);
  return text === undefined ? null : keepText(text);
}

/** A decimal in 1e-12 units; null where the cells are empty. Error CellFault where it is none. */
export function decimalOf(record: TableRecord, columns: readonly string[]): bigint | null {
  for (const column of columns) {
    const text = record.get(column);
    if (text === undefined) continue;
    const value = parseScaled(text, QUANTITY_SCALE);
    if (value !== undefined) return value;
    throw new CellFault(column, `${column} must be a decimal number, not "${text.slice(0, 40)}"`);
  }
  return null;
}

/** As `decimalOf`. Error CellFault also where the cells are empty. */
export function requiredDecimal(record: TableRecord, columns: readonly string[]): bigint {
  const value = decimalOf(record, columns);
  if (value !== null) return value;
  const [column = ''] = columns;
  throw new CellFault(column, `${column} must be a decimal number, not empty`);
}

/** A three-letter currency code in capitals. Error CellFault where the cells hold something else; USD where none is. */
export function currencyOf(record: TableRecord, columns: readonly string[]): string {
  const text = cellOf(record, columns);
  if (text === undefined) return 'USD';
  if (/^[a-z]{3}$/i.test(text)) return text.toUpperCase();
  throw new CellFault(
    columns.find((column) => record.has(column)) ?? '',
    `a currency is three letters such as EUR, not "${text.slice(0, 40)}"`,
  );
}

/** Two decimals in 1e-12 units → their product in 1e-12 units, rounded half to even. */
export function product(a: bigint, b: bigint): bigint {
  return divideHalfEven(a * b, QUANTITY_ONE);
}

const US_DATE = /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/;

/** A day as `YYYY-MM-DD`, `M/D/YYYY` or a time of day in UTC. Error CellFault. */
export function dayOfCell(record: TableRecord, columns: readonly string[]): string {
  const text = cellOf(record, columns);
  const [, month, day, year] = US_DATE.exec(text?.split(/[ T]/)[0] ?? '') ?? [];
  const iso =
    year === undefined ? text : `${year}-${(month ?? '').padStart(2, '0')}-${(day ?? '').padStart(2, '0')}`;
  const instant = iso === undefined ? undefined : parseInstant(iso);
  if (instant) return dayOf(instant.micros);
  const column = columns.find((name) => record.has(name)) ?? columns[0] ?? '';
  throw new CellFault(
    column,
    `${column} must be a day such as 2026-01-31 or 1/31/2026, not "${(text ?? '').slice(0, 40)}"`,
  );
}

/** The half-open times of a UTC day, microseconds. */
export function timesOfDay(day: string): { periodStartMicros: bigint; periodEndMicros: bigint } {
  const periodStartMicros = microsOfDay(day);
  return { periodStartMicros, periodEndMicros: periodStartMicros + MICROS_PER_DAY };
}

/** The half-open times of a UTC month `YYYY-MM`, microseconds. */
export function timesOfMonth(month: string): { periodStartMicros: bigint; periodEndMicros: bigint } {
  const periodStartMicros = microsOfDay(`${month}-01`);
  // The 32nd day of a month lies in the next one, whichever it is.
  const next = dayOf(periodStartMicros + 31n * MICROS_PER_DAY).slice(0, 7);
  return { periodStartMicros, periodEndMicros: microsOfDay(`${next}-01`) };
}

/** The report of a charge on another period's invoice, so that it adds to its day instead of replacing the day's bill. */
export function reportOfInvoice(from: string): string {
  return `invoice ${from.slice(0, 7).replace('-', '')}`;
}

/** SQL: whether the column of a report's name is that of such charges. */
export const LATE_REPORTS = 'invoice %';

/** A fault of one cell of a table, by the lower-case name of its column: the reader adds where the record stands. */
export class CellFault extends DomainError {
  readonly column: string;

  constructor(column: string, sentence: string) {
    super('invalid_billing_file', sentence);
    this.column = column;
  }
}
