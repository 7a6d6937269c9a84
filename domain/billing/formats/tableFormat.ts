import type { Provider } from '../../providers.js';
import type { BilledRow, ChargeCategory } from '../billedRow.js';
import type { FxRate } from '../pageRow.js';
import type { BillingFormat } from '../sources.js';

/**
 * One record of a table, whatever file it came in: cells by lower-case column name. Fields of nested objects have
 * dotted paths, arrays are JSON text. Empty and null cells are absent. Numbers are exact texts; a floating-point number
 * of a typed file is the shortest decimal that names it.
 */
export type TableRecord = ReadonlyMap<string, string>;

export interface TableOptions {
  /** Whose bill the file was given as. */
  provider: Provider;
  /** Given with the file; a rate on the bill itself goes before it. */
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

/** A kind of bill that is a table of records: what its header looks like and how a record is read. */
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
  /**
   * The rows that a record says. Null for a charge of a service that is no model provider's: it is left out and
   * counted (`chargeOf`). Error CellFault naming the column.
   */
  rowsOf(record: TableRecord, options: TableOptions): readonly BilledRow[] | null;
  /**
   * What no two records of one bill have in common, a text of its own; undefined where the record has none. Absent where
   * the issuer gives none.
   */
  identityOf?(record: TableRecord): string | undefined;
  /** What a record charges of which `rowsOf` made no row. Absent where every record becomes rows. Error CellFault. */
  chargeOf?(record: TableRecord): PlainCharge | readonly PlainCharge[];
}
