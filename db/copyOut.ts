import pg from 'pg';
import { COPIED_NULL } from '../domain/copiedText.js';
import type { SqlValue } from './orgDb.js';

/** Bytes of the first block that is allocated for lines. */
const FIRST_BLOCK = 64 * 1024;

/** Rows as Postgres writes them in the text form of COPY: values apart by tabs, a line break behind each row. */
export interface CopiedRows {
  readonly count: number;
  readonly lines: Buffer;
  /** Further rows were left out, because the lines have reached the limit of bytes. */
  readonly isCut: boolean;
}

/**
 * `COPY (select …) TO STDOUT` as a query of the driver: the cheapest way to read rows, since Postgres sends a row as one
 * text and the driver creates no object for it.
 */
export class CopyOut extends pg.Query {
  #block = Buffer.allocUnsafe(FIRST_BLOCK);
  #length = 0;
  #count = 0;
  #isCut = false;
  readonly #bytesMax: number;

  /**
   * COPY takes no parameters, so the values of `$1…` are written into the statement as literals. Lines that begin
   * behind `bytesMax` are left out.
   */
  constructor(
    sql: string,
    values: readonly SqlValue[],
    done: (error: Error | undefined) => void,
    bytesMax = Number.POSITIVE_INFINITY,
  ) {
    const select = sql.replaceAll(/\$(\d+)/g, (_, number) => literalOf(values[Number(number) - 1] ?? null));
    super(`copy (${select}) to stdout (null '${String.fromCharCode(COPIED_NULL)}')`, done);
    this.#bytesMax = bytesMax;
  }

  /** The rows so far. */
  get copied(): CopiedRows {
    return { count: this.#count, lines: this.#block.subarray(0, this.#length), isCut: this.#isCut };
  }

  /** Called by the driver for each row; the bytes are valid during the call only. */
  handleCopyData({ chunk }: { chunk: Buffer }): void {
    if (this.#length >= this.#bytesMax) {
      this.#isCut = true;
      return;
    }
    const length = this.#length + chunk.length;
    if (length > this.#block.length) {
      const block = Buffer.allocUnsafe(Math.max(length, 2 * this.#block.length));
      this.#block.copy(block, 0, 0, this.#length);
      this.#block = block;
    }
    this.#block.set(chunk, this.#length);
    this.#length = length;
    this.#count += 1;
  }
}

function literalOf(value: SqlValue): string {
  if (value === null) return 'null';
  return pg.escapeLiteral(String(value));
}
