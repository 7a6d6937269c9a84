import pg from 'pg';
import { COPIED_HEADER, COPIED_NULL, copiedLineEnd } from '../domain/copiedText.js';
import type { SqlValue } from './orgDb.js';

/** Bytes of the first block that is allocated for lines. */
const FIRST_BLOCK = 64 * 1024;

/** Rows as Postgres sends them in the text form of COPY (domain/copiedText.ts). */
export interface CopiedRows {
  readonly count: number;
  readonly lines: Buffer;
  /** Where the last line begins, behind its header; 0 without rows. */
  readonly lastLine: number;
  /** Further rows were left out, because the lines have reached the limit of bytes. */
  readonly isCut: boolean;
}

/**
 * `COPY (select …) TO STDOUT` as a query of the driver: the cheapest way to read rows, since Postgres sends a row as one
 * text. Only for connections on which `divertCopies` was called.
 */
export class CopyOut extends pg.Query {
  #block = Buffer.allocUnsafe(FIRST_BLOCK);
  #length = 0;
  #isCut = false;
  readonly #bytesMax: number;

  /**
   * COPY takes no parameters, so the values of `$1…` are written into the statement as literals. What arrives after
   * `bytesMax` bytes is left out, except for the rest of the first row.
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

  /** The rows that have arrived as a whole. */
  get copied(): CopiedRows {
    const block = this.#block.subarray(0, this.#length);
    let [count, lastLine, at] = [0, 0, 0];
    for (let end = copiedLineEnd(block, at); end < block.length; end = copiedLineEnd(block, at)) {
      lastLine = at + COPIED_HEADER;
      at = end + 1;
      count += 1;
    }
    return { count, lines: block.subarray(0, at), lastLine, isCut: this.#isCut };
  }

  /** Called with each part of the rows as it arrives. */
  handleCopyData({ chunk }: { chunk: Buffer }): void {
    if (this.#length >= this.#bytesMax && copiedLineEnd(this.#block, 0) < this.#length) this.#isCut = true;
    if (this.#isCut) return;
    const length = this.#length + chunk.length;
    if (length > this.#block.length) {
      const block = Buffer.allocUnsafe(Math.max(length, 2 * this.#block.length));
      this.#block.copy(block, 0, 0, this.#length);
      this.#block = block;
    }
    this.#block.set(chunk, this.#length);
    this.#length = length;
  }
}

function literalOf(value: SqlValue): string {
  if (value === null) return 'null';
  return pg.escapeLiteral(String(value));
}
