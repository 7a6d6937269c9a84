import type { Writable } from 'node:stream';
import type pg from 'pg';

/** The driver's interface for custom queries; its types omit it. */
interface Wire {
  stream: Writable & { pause(): void; resume(): void };
  query(sql: string): void;
  sendCopyFromChunk(bytes: Buffer): void;
  endCopyFrom(): void;
}

type Row = (string | null)[];

/** Bytes that are buffered before the server has to wait. */
const WAITING_BYTES_MAX = 4 * 1_048_576;

/**
 * A statement that answers by a copy (COPY … TO STDOUT, BASE_BACKUP). Iterating returns its messages in order, in
 * batches as they arrive, and slows the server to the reader's speed. Result sets before and after the copy are kept.
 * Iteration ends when the server is ready for the next statement.
 */
export class CopyOut implements AsyncIterable<Buffer[]> {
  /** Rows of each result set, as texts. */
  readonly results: Row[][] = [];
  /** Command tags of the completed statements, e.g. `COPY 12`. */
  readonly tags: string[] = [];
  readonly #sql: string;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #wire: Wire | undefined;
  #isOver = false;
  #failure: Error | undefined;
  #wake: () => void = () => undefined;

  constructor(client: pg.Client, sql: string) {
    this.#sql = sql;
    client.query(this as unknown as pg.Submittable);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer[], void, undefined> {
    for (;;) {
      if (this.#waiting.length > 0) {
        const messages = this.#waiting;
        [this.#waiting, this.#waitingBytes] = [[], 0];
        this.#wire?.stream.resume();
        yield messages;
      } else if (this.#failure) throw this.#failure;
      else if (this.#isOver) return;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }

  submit(connection: unknown): void {
    this.#wire = connection as Wire;
    this.#wire.query(this.#sql);
  }

  handleRowDescription(): void {
    this.results.push([]);
  }

  handleDataRow(message: { fields: Row }): void {
    this.results.at(-1)?.push(message.fields);
  }

  handleCommandComplete(message: { text: string }): void {
    this.tags.push(message.text);
  }

  handleCopyData(message: { chunk: Buffer }): void {
    // The driver reuses its buffer for the next message.
    this.#waiting.push(Buffer.from(message.chunk));
    this.#waitingBytes += message.chunk.length;
    if (this.#waitingBytes > WAITING_BYTES_MAX) this.#wire?.stream.pause();
    this.#wake();
  }

  handleReadyForQuery(): void {
    this.#isOver = true;
    this.#wake();
  }

  handleError(error: Error): void {
    this.#failure ??= error;
    this.#wake();
  }
}

/** Resolves when the stream accepts more data, or never will. */
function drained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      stream.off('drain', settle).off('close', settle);
      resolve();
    };
    stream.once('drain', settle).once('close', settle);
  });
}

/** A `COPY … FROM STDIN` in progress. */
export class CopyIn {
  readonly #opened: Promise<Wire>;
  readonly #ended: Promise<number>;
  readonly #sql: string;
  #rows = 0;
  #failure: Error | undefined;
  #open!: { resolve: (wire: Wire) => void; reject: (error: Error) => void };
  #end!: { resolve: (rows: number) => void; reject: (error: Error) => void };

  constructor(client: pg.Client, sql: string) {
    this.#sql = sql;
    this.#opened = new Promise((resolve, reject) => {
      this.#open = { resolve, reject };
    });
    this.#ended = new Promise((resolve, reject) => {
      this.#end = { resolve, reject };
    });
    // The next write or the end reports a failure; until then it must not crash the process.
    this.#opened.catch(() => undefined);
    this.#ended.catch(() => undefined);
    client.query(this as unknown as pg.Submittable);
  }

  /** Sends bytes at the server's speed. */
  async write(piece: Buffer): Promise<void> {
    const wire = await this.#opened;
    if (this.#failure) throw this.#failure;
    wire.sendCopyFromChunk(piece);
    if (wire.stream.writableNeedDrain) await drained(wire.stream);
  }

  /** Ends the copy; returns the number of stored rows. */
  async end(): Promise<number> {
    (await this.#opened).endCopyFrom();
    return this.#ended;
  }

  submit(connection: unknown): void {
    (connection as Wire).query(this.#sql);
  }

  handleCopyInResponse(connection: unknown): void {
    this.#open.resolve(connection as Wire);
  }

  handleCommandComplete(message: { text: string }): void {
    this.#rows = Number(message.text.split(' ')[1] ?? 0);
  }

  handleReadyForQuery(): void {
    this.#end.resolve(this.#rows);
  }

  handleError(error: Error): void {
    this.#failure = error;
    this.#open.reject(error);
    this.#end.reject(error);
  }
}
