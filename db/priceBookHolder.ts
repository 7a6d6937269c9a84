import type { PriceBook } from '../domain/pricing/priceBook.js';
import type { Database } from './client.js';
import { loadPriceBook, readPriceState } from './queries/prices.js';

/** The prices of a process, as everything that prices a call or judges a bill is given them. */
export interface Prices {
  /** The list prices that everybody has. */
  current(): PriceBook;
  /** The prices of an organization: its contract and its overrides over the list; the list itself where it has none. */
  of(orgId: string): Promise<PriceBook>;
}

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
export class PriceBookHolder implements Prices {
  readonly #database: Database;
  readonly #options: PriceBookHolderOptions;
  #book: PriceBook;
  #checkedMs: number;
  /** The look under way, and the one that waits for it to end. */
  #looking: Promise<PriceBook> | undefined;
  #waiting: Promise<PriceBook> | undefined;

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
    if (this.#options.nowMs() - this.#checkedMs >= FRESH_MS && !this.#looking) {
      this.refresh().catch((error: unknown) => this.#options.onFailure(error));
    }
    return this.#book;
  }

  /** The prices of an organization. */
  async of(_orgId: string): Promise<PriceBook> {
    return this.current();
  }

  /**
   * Looks now; resolves with prices that were stored at some time after the call. A look under way may have read
   * before the caller's change, so another follows it; all who ask meanwhile share that one.
   */
  refresh(): Promise<PriceBook> {
    const before = this.#looking;
    if (!before) return this.#start();
    this.#waiting ??= before
      .catch(() => undefined)
      .then(() => {
        this.#waiting = undefined;
        return this.#start();
      });
    return this.#waiting;
  }

  /** Waits until no look is under way; call it before the database is closed. */
  async settle(): Promise<void> {
    while (this.#waiting ?? this.#looking) await (this.#waiting ?? this.#looking)?.catch(() => undefined);
  }

  #start(): Promise<PriceBook> {
    const looking = this.#look().finally(() => {
      if (this.#looking === looking) this.#looking = undefined;
    });
    this.#looking = looking;
    return looking;
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
