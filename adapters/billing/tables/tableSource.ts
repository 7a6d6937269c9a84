import type { TableHead } from '../../../domain/billing/formats/index.js';
import type { TableRecord } from '../../../domain/billing/formats/tableFormat.js';
import type { DomainError } from '../../../domain/errors.js';

/** A record and the fault that is told of it, or of one of its cells, with the place where it stands in the file. */
export interface PlacedRecord {
  record: TableRecord;
  /** The fault `reason` at this record; `column` is the lower-case name of the cell at fault. */
  faultAt(reason: string, column?: string): DomainError;
}

/** A file that is a table: its columns first, then its records, batch by batch, in memory that does not grow. */
export interface TableSource {
  /** Lower-case names. JSON lines have no header: those of the first record. */
  columns: ReadonlySet<string>;
  layout: TableHead['layout'];
  /** The fault `reason` of the header; `column` is its lower-case name. */
  headerFault(reason: string): DomainError;
  /**
   * The records, with the cells of the `wanted` columns (all where undefined). Can be gone through once. Error
   * invalid_billing_file with the place.
   */
  records(wanted: ReadonlySet<string> | undefined): AsyncIterable<PlacedRecord[]>;
}

/** Bytes of a file that can be read in any order. */
export interface RandomAccess {
  sizeBytes: number;
  /** Bytes from `from` up to, not including, `to`. */
  read(from: number, to: number): Promise<Buffer>;
}
