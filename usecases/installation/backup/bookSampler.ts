import pg from 'pg';
import { type Lsn, lsnNumber } from './baseBackup.js';
import { type BookReading, inOneSnapshot, readBooks } from './bookTotals.js';

/** Readings that are kept besides the first: those of the last moments, one of which will be the right one. */
const READINGS_MAX = 200;
const PAUSE_MS = 250;
/** A reading that takes long is repeated less often: the service comes first. */
const PAUSE_SHARE = 20;

/**
 * Reads the books again and again while a backup runs. When a backup ends is known only afterwards, and what was
 * committed before that is in it: the last reading whose place in the log lies before the end is one that the backup
 * holds to the last call.
 */
export class BookSampler {
  readonly #client: pg.Client;
  readonly #options: { billed: boolean };
  readonly #readings: BookReading[] = [];
  readonly #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();

  private constructor(client: pg.Client, options: { billed: boolean }) {
    this.#client = client;
    this.#options = options;
  }

  /** Has its first reading when it resolves. */
  static async start(url: string, options: { billed: boolean }): Promise<BookSampler> {
    const client = new pg.Client({ connectionString: url, application_name: 'trueup-backup' });
    client.on('error', () => undefined);
    await client.connect();
    const sampler = new BookSampler(client, options);
    try {
      await sampler.#read();
    } catch (error) {
      await client.end();
      throw error;
    }
    sampler.#loop = sampler.#repeat();
    // Whoever stops it hears of a failure.
    sampler.#loop.catch(() => undefined);
    return sampler;
  }

  async #read(): Promise<BookReading> {
    const reading = await inOneSnapshot(this.#client, () => readBooks(this.#client, this.#options));
    this.#readings.push(reading);
    if (this.#readings.length > READINGS_MAX) this.#readings.splice(1, 1);
    return reading;
  }

  async #repeat(): Promise<void> {
    let tookMs = 0;
    for (;;) {
      await wait(Math.max(PAUSE_MS, tookMs * PAUSE_SHARE), this.#stopping.signal);
      if (this.#stopping.signal.aborted) return;
      const began = performance.now();
      await this.#read();
      tookMs = performance.now() - began;
    }
  }

  /**
   * Ends the readings. `books` is the last before `stop`; `billedSettled` tells that the bills say the same now, so
   * that they have said it at the stop.
   */
  async finish(stop: Lsn): Promise<{ books: BookReading; billedSettled: boolean }> {
    this.#stopping.abort();
    await this.#loop;
    const after = await this.#read();
    const books = this.#readings.findLast((reading) => lsnNumber(reading.lsn) <= lsnNumber(stop));
    if (!books) throw new Error('the backup ended before the books were read');
    const billed = (reading: BookReading) =>
      reading.organizations.map((totals) => `${totals.organization_id} ${totals.billed_usd}`).join();
    return { books, billedSettled: billed(after) === billed(books) };
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#client.end();
  }
}

function wait(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
