import type { PriceBook } from '../domain/pricing/priceBook.js';
import type { Database } from './client.js';
import { loadPriceBook, readPriceState } from './queries/prices.js';

/** How long a book is used before the database is asked whether it still holds. */
const FRESH_MS = 5_000;

export interface PriceBookHolderOptions {
  /** Milliseconds of a clock that never goes back. */
  nowMs(): number;
  /** Told when a look behind the scenes failed; the book at hand stays in use. */
  onFailure(error: unknown): void;
}

/**
 * The prices of a process, at hand without a query. Being asked for them is what makes it look, in the background and
 * once at a time, whether others are stored; nobody waits for that, and a process that is not asked does nothing.
 */
export class PriceBookHolder {
  readonly #database: Database;
  readonly #options: PriceBookHolderOptions;
  #book: PriceBook;
  #checkedMs: number;
  #refreshing: Promise<PriceBook> | undefined;

  private constructor(database: Database, options: PriceBookHolderOptions, book: PriceBook) {
    this.#database = database;
    this.#options = options;
    this.#book = book;
    this.#checkedMs = options.nowMs();
  }

  /** Loads the stored prices. */
  static async open(database: Database, options: PriceBookHolderOptions): Promise<PriceBookHolder> {
    return new PriceBookHolder(database, options, await loadPriceBook(database));
  }

  /** The prices as of at most a few seconds ago, if there was anything to ask for them. */
  current(): PriceBook {
    if (this.#options.nowMs() - this.#checkedMs >= FRESH_MS && !this.#refreshing) {
      this.refresh().catch((error: unknown) => this.#options.onFailure(error));
    }
    return this.#book;
  }

  /** Looks now; resolves with the prices that are stored at some time after the call. */
  async refresh(): Promise<PriceBook> {
    // A look that is under way may have read before the caller's change, so it does not count as this one.
    await this.#refreshing?.catch(() => undefined);
    this.#refreshing ??= this.#look().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  /** Waits for a look that is under way; call it before the database is closed. */
  async settle(): Promise<void> {
    await this.#refreshing?.catch(() => undefined);
  }

  async #look(): Promise<PriceBook> {
    this.#checkedMs = this.#options.nowMs();
    const stored = await readPriceState(this.#database);
    const held = this.#book.state;
    const same = stored?.updatedAtMicros === held.updatedAtMicros && stored.contentHash === held.contentHash;
    if (!same) this.#book = await loadPriceBook(this.#database);
    return this.#book;
  }
}
