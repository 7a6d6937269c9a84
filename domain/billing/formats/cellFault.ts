import { DomainError } from '../../errors.js';

/** A fault of one cell of a table, by the lower-case name of its column: the reader adds where the record stands. */
export class CellFault extends DomainError {
  readonly column: string;

  constructor(column: string, sentence: string) {
    super('invalid_billing_file', sentence);
    this.column = column;
  }
}
