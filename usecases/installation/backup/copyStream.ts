import type { Writable } from 'node:stream';
import type pg from 'pg';

/** What the driver hands to a query of one's own; its types omit it. */
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
 * A statement that answers by a copy (COPY … TO STDOUT, BASE_BACKUP): its messages in their order, as many at once as
 * have come, as slowly as they are read. Result sets before and after the copy are kept. Iterating ends when the server
 * is ready for the next statement.
 */
export class CopyOut implements AsyncIterable<Buffer[]> {
  /** Rows of each result set, as texts. */
  readonly results: Row[][] = [];
  /** The tags of the statements that are complete, e.g. `COPY 12`. */
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
    // The driver writes over its buffer with what comes next.
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

/** Resolves when the stream takes more, or never will. */
function drained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      stream.off('drain', settle).off('close', settle);
      resolve();
    };
    stream.once('drain', settle).once('close', settle);
  });
}

/** A `COPY … FROM STDIN` under way. */
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
    // The next write or the end reports a failure; until then it is not to end the process.
    this.#opened.catch(() => undefined);
    this.#ended.catch(() => undefined);
    client.query(this as unknown as pg.Submittable);
  }

  /** Sends a piece, as fast as the server takes it. */
  async write(piece: Buffer): Promise<void> {
    const wire = await this.#opened;
    if (this.#failure) throw this.#failure;
    wire.sendCopyFromChunk(piece);
    if (wire.stream.writableNeedDrain) await drained(wire.stream);
  }

  /** That was all: the number of rows that were stored. */
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
