import { DomainError } from '../../errors.js';
import { divideHalfEven, parseScaled } from '../../money.js';
import { dayOf, MICROS_PER_DAY, microsOfDay, parseInstant } from '../../period.js';
import type { Provider } from '../../providers.js';
import { type BilledRow, type ChargeCategory, QUANTITY_ONE, QUANTITY_SCALE } from '../billedRow.js';
import { type FxRate, keepText } from '../pageRow.js';
import type { BillingFormat } from '../sources.js';

/**
 * Cells by lower-case column, with dotted paths for nested fields and arrays as JSON. Empty cells are absent;
 * numbers are exact texts.
 */
export type TableRecord = ReadonlyMap<string, string>;

export interface TableOptions {
  /** The provider for which the file was uploaded. */
  provider: Provider;
  fxRate: FxRate;
}

/** A charge that becomes no row. `amount` is in 1e-12 units of `currency`, an upper-case ISO 4217 code. */
export interface PlainCharge {
  chargeCategory: ChargeCategory;
  currency: string;
  amount: bigint;
  /** The account and UTC day that the charge proves the bill to cover; absent: it names none. */
  covers?: { account: string | null; day: string };
}

/** Sums of left-out charges; together with the rows they equal the file's total to the last digit. */
export interface LeftOut extends Omit<PlainCharge, 'covers'> {
  rows: number;
}

export interface TableFormat {
  readonly format: BillingFormat;
  /** With its article, for messages: `a plain CSV`. */
  readonly name: string;
  /** Required lower-case columns, named in the error for a header that nearly fits. */
  readonly required: readonly string[];
  /** The lower-case columns that the format reads, so that a reader can skip the others; absent: any. */
  readonly reads?: ReadonlySet<string>;
  /** Whether a file with these lower-case columns is of this format; at most one format accepts a header. */
  isHeader(columns: ReadonlySet<string>): boolean;
  /** A record's rows; null for another service's charge, which `chargeOf` counts. Error CellFault. */
  rowsOf(record: TableRecord, options: TableOptions): readonly BilledRow[] | null;
  /** Unique within a bill; undefined: the record has no id; absent: the issuer provides none. */
  identityOf?(record: TableRecord): string | undefined;
  /** The charge of a record from which `rowsOf` made no row; absent: every record becomes rows. Error CellFault. */
  chargeOf?(record: TableRecord): PlainCharge | readonly PlainCharge[];
}

/**
 * The first non-empty cell of these columns, since exports have several names for one field; undefined: all are
 * empty.
 */
export function cellOf(record: TableRecord, columns: readonly string[]): string | undefined {
  for (const column of columns) {
    const text = record.get(column);
    if (text !== undefined) return text;
  }
  return undefined;
}

/** Like `cellOf`, cut to the stored length; null: all are empty. */
export function textOf(record: TableRecord, columns: readonly string[]): string | null {
  const text = cellOf(record, columns);
  return text === undefined ? null : keepText(text);
}

/** A decimal in 1e-12 units; null: the cells are empty. Error CellFault for other text. */
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

/** Like `decimalOf`, with an error CellFault also for empty cells. */
export function requiredDecimal(record: TableRecord, columns: readonly string[]): bigint {
  const value = decimalOf(record, columns);
  if (value !== null) return value;
  const [column = ''] = columns;
  throw new CellFault(column, `${column} must be a decimal number, not empty`);
}

/** A three-letter upper-case currency code; USD if the cells are empty. Error CellFault for other text. */
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

/** A day from `YYYY-MM-DD`, `M/D/YYYY` or a UTC time. Error CellFault. */
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
  // 31 days after its start is always a day of the next month.
  const next = dayOf(periodStartMicros + 31n * MICROS_PER_DAY).slice(0, 7);
  return { periodStartMicros, periodEndMicros: microsOfDay(`${next}-01`) };
}

/**
 * The report name of a charge on another period's invoice, so that it adds to its day instead of replacing the
 * day's bill.
 */
export function reportOfInvoice(from: string): string {
  return `invoice ${from.slice(0, 7).replace('-', '')}`;
}

/** SQL LIKE pattern of the report names of such charges. */
export const LATE_REPORTS = 'invoice %';

/** A fault of one table cell, with its lower-case column name; the reader adds the record's position. */
export class CellFault extends DomainError {
  readonly column: string;

  constructor(column: string, sentence: string) {
    super('invalid_billing_file', sentence);
    this.column = column;
  }
}
