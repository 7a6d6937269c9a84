import pg from 'pg';
import { readCpuSeconds } from './processCpu.js';

/**
 * Counts and discards the rows of `COPY (…) TO STDOUT`, the fastest way to read from the database. `postgresCpu`: CPU
 * seconds of the backend.
 */
export async function countCopiedRows(
  url: string,
  query: string,
): Promise<{ rows: number; seconds: number; postgresCpu: number }> {
  const client: pg.Client & { processID?: number } = new pg.Client({
    connectionString: url,
    options: '-c timezone=UTC',
  });
  await client.connect();
  try {
    const started = performance.now();
    const rows = await new Promise<number>((resolve, reject) => {
      client.query(new CopyCounter(`copy (${query}) to stdout`, resolve, reject));
    });
    const seconds = (performance.now() - started) / 1000;
    return { rows, seconds, postgresCpu: readCpuSeconds(client.processID) };
  } finally {
    await client.end();
  }
}

/** A query of the driver that receives COPY data, one message for each row. */
class CopyCounter implements pg.Submittable {
  readonly #text: string;
  readonly #resolve: (rows: number) => void;
  readonly #reject: (error: Error) => void;
  #rows = 0;

  constructor(text: string, resolve: (rows: number) => void, reject: (error: Error) => void) {
    this.#text = text;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  submit(connection: pg.Connection): void {
    connection.query(this.#text);
  }

  handleCopyData(): void {
    this.#rows += 1;
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#resolve(this.#rows);
  }

  handleError(error: Error): void {
    this.#reject(error);
  }
}
