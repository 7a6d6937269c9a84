import type { EventEmitter } from 'node:events';

/** Code of a message that carries a row of COPY. */
const COPY_DATA = 'd'.charCodeAt(0);
/** Bytes before the body of a message: its code, and the length of itself and the body. */
const HEADER = 5;
const LENGTH = 4;

/** The parts of the driver's connection that are needed here. */
export interface DriverConnection extends EventEmitter {
  readonly stream: EventEmitter;
}

/**
 * Takes the rows of COPY out of what a connection receives before the driver parses it: the driver would create an
 * object for every row, which costs more than all else that an export does with it. A query receives them by
 * `handleCopyData` as they arrive: messages one behind the other, of which the first and the last may be parts. All other
 * messages reach the driver in their order. (Postgres documentation, "Message Formats": a code, the length without the
 * code, the body; a CopyData message of the server is one row.)
 *
 * The connection must be idle, since its first byte from now on is taken for the start of a message.
 */
export function divertCopies(connection: DriverConnection): void {
  const { stream } = connection;
  const parsers = stream.listeners('data') as ((chunk: Buffer) => void)[];
  stream.removeAllListeners('data');
  const splitter = new MessageSplitter(
    (chunk) => connection.emit('copyData', { chunk }),
    (chunk) => {
      for (const parse of parsers) parse(chunk);
    },
  );
  stream.on('data', (chunk: Buffer) => splitter.read(chunk));
}

/** Splits a stream of messages, which are cut anywhere, into rows of COPY and the others. */
export class MessageSplitter {
  readonly #rows: (bytes: Buffer) => void;
  readonly #others: (bytes: Buffer) => void;
  #isRow = false;
  /** Bytes of the present message's header that were read. */
  #header = 0;
  /** The length that these contain so far. */
  #length = 0;
  /** Bytes of its body that are still to come. */
  #left = 0;

  constructor(rows: (bytes: Buffer) => void, others: (bytes: Buffer) => void) {
    this.#rows = rows;
    this.#others = others;
  }

  read(chunk: Buffer): void {
    let start = 0;
    let at = 0;
    while (at < chunk.length) {
      if (this.#header === 0 && (chunk[at] === COPY_DATA) !== this.#isRow) {
        this.#pass(chunk, start, at);
        start = at;
        this.#isRow = !this.#isRow;
      }
      at = this.#header < HEADER ? this.#readHeader(chunk, at) : at;
      if (this.#header < HEADER) break;
      const read = Math.min(this.#left, chunk.length - at);
      at += read;
      this.#left -= read;
      if (this.#left === 0) this.#header = 0;
    }
    this.#pass(chunk, start, at);
  }

  #readHeader(chunk: Buffer, from: number): number {
    let at = from;
    for (; this.#header < HEADER && at < chunk.length; at += 1) {
      this.#length = this.#header === 0 ? 0 : this.#length * 256 + (chunk[at] as number);
      this.#header += 1;
    }
    this.#left = Math.max(this.#length - LENGTH, 0);
    return at;
  }

  #pass(chunk: Buffer, start: number, end: number): void {
    if (start === end) return;
    const part = chunk.subarray(start, end);
    if (this.#isRow) this.#rows(part);
    else this.#others(part);
  }
}
