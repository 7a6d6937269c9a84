import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Database } from '../../db/client.js';
import { OrgDb } from '../../db/orgDb.js';
import { loadOwnPrices, type OwnPriceRevision, readPriceVersions } from '../../db/pricing/ownPrices.js';
import { loadPriceBook } from '../../db/pricing/prices.js';
import { bookWithOwnPrices } from '../../domain/pricing/ownPrices.js';
import type { PriceBook, PriceState } from '../../domain/pricing/priceBook.js';

/** The prices of a process, for code that prices calls or judges bills. */
export interface Prices {
  /** The common list prices. */
  current(): PriceBook;
  /**
   * The prices of an organization: its contract and its overrides over the list; the list itself without own prices.
   */
  of(orgId: string): Promise<PriceBook>;
  /** The prices as stored now instead of seconds ago, for results that are stored. */
  freshOf(orgId: string): Promise<PriceBook>;
}

/** Milliseconds for which a book is used before the database is asked for newer prices. */
const FRESH_MS = 5_000;
/**
 * After a pause of this length the book may be of any age, so requests for an organization's prices wait for the check.
 */
const STALE_MS = 2 * FRESH_MS;
/** Organizations' books in the cache; building one again costs a query and some milliseconds. */
const OWN_BOOKS_MAX = 100;

export interface PriceBookHolderOptions {
  /** Monotonic clock, milliseconds. */
  nowMs(): number;
  /** Called when a refresh in the background failed; the present book stays in use. */
  onFailure(error: unknown): void;
}

/** An organization's book, with the list and the revision that it was built from. */
interface OwnBook {
  readonly book: PriceBook;
  readonly list: PriceBook;
  readonly revision: number;
}

/**
 * The prices of a process, available without a query. Each request for prices may start a check for newer ones, in the
 * background and one at a time; an idle process runs none. After a pause only requests for an organization's prices
 * wait for the check, so that prices agreed meanwhile apply to the first call.
 */
export class PriceBookHolder implements Prices {
  readonly #database: Database;
  readonly #options: PriceBookHolderOptions;
  #book: PriceBook;
  #checkedMs: number;
  /** Start time of the last completed check, milliseconds. */
  #lookedMs: number;
  /** The running check, and the one that follows it. */
  #looking: Promise<PriceBook> | undefined;
  #waiting: Promise<PriceBook> | undefined;
  /** Organizations with own prices, and the latest known revision. */
  readonly #revisions: Map<string, number>;
  readonly #own = new LRUCache<string, OwnBook>({ max: OWN_BOOKS_MAX });
  readonly #loading = new Map<string, Promise<PriceBook>>();

  private constructor(
    database: Database,
    options: PriceBookHolderOptions,
    book: PriceBook,
    revisions: Map<string, number>,
  ) {
    this.#database = database;
    this.#options = options;
    this.#book = book;
    this.#revisions = revisions;
    this.#checkedMs = options.nowMs();
    this.#lookedMs = this.#checkedMs;
  }

  static async open(database: Database, options: PriceBookHolderOptions): Promise<PriceBookHolder> {
    const book = await loadPriceBook(database);
    const { own } = await readPriceVersions(database);
    return new PriceBookHolder(database, options, book, own);
  }

  /** The list prices, at most seconds old. */
  current(): PriceBook {
    if (this.#options.nowMs() - this.#checkedMs >= FRESH_MS && !this.#looking) {
      this.refresh().catch((error: unknown) => this.#options.onFailure(error));
    }
    return this.#book;
  }

  /**
   * The prices of an organization, at most seconds old; without own prices no query is needed. Error:
   * service_unavailable where its own prices are not cached and the database is unreachable.
   */
  async of(orgId: string): Promise<PriceBook> {
    this.current();
    // A failed check leaves the present book in use.
    if (this.#options.nowMs() - this.#lookedMs >= STALE_MS) await this.#looking?.catch(() => undefined);
    const list = this.#book;
    const revision = this.#revisions.get(orgId);
    if (revision === undefined) return list;
    const held = this.#own.get(orgId);
    if (held && held.list === list && held.revision >= revision) return held.book;
    try {
      return await this.#loadOnce(orgId);
    } catch (error) {
      if (!held) throw error;
      this.#options.onFailure(error);
      return held.book;
    }
  }

  async freshOf(orgId: string): Promise<PriceBook> {
    await this.refresh();
    return this.of(orgId);
  }

  /** Loads a change that this process has just stored, so that it prices the next call. */
  async reload(orgId: string): Promise<void> {
    // A load in progress may have read before the change.
    await this.#loading.get(orgId)?.catch(() => undefined);
    await this.#loadOnce(orgId);
  }

  /**
   * Checks now; resolves with prices that were stored after the call. A check in progress may have read before the
   * caller's change, so another one follows, which all further callers share.
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

  /** Waits until no check runs; call it before the database is closed. */
  async settle(): Promise<void> {
    while (this.#waiting ?? this.#looking) await (this.#waiting ?? this.#looking)?.catch(() => undefined);
    await Promise.allSettled(this.#loading.values());
  }

  #start(): Promise<PriceBook> {
    const beganMs = this.#options.nowMs();
    const looking = this.#look().finally(() => {
      this.#lookedMs = beganMs;
      if (this.#looking === looking) this.#looking = undefined;
    });
    this.#looking = looking;
    return looking;
  }

  async #look(): Promise<PriceBook> {
    this.#checkedMs = this.#options.nowMs();
    const { list: stored, own } = await readPriceVersions(this.#database);
    const held = this.#book.state;
    const same = stored?.updatedAtMicros === held.updatedAtMicros && stored.contentHash === held.contentHash;
    if (!same) this.#book = await loadPriceBook(this.#database);
    for (const [orgId, revision] of own) this.#saw(orgId, revision);
    return this.#book;
  }

  /** Revisions only increase, so a late result of an older check changes nothing. */
  #saw(orgId: string, revision: number): void {
    if ((this.#revisions.get(orgId) ?? 0) < revision) this.#revisions.set(orgId, revision);
  }

  #loadOnce(orgId: string): Promise<PriceBook> {
    const under = this.#loading.get(orgId);
    if (under) return under;
    const loading = this.#load(orgId).finally(() => this.#loading.delete(orgId));
    this.#loading.set(orgId, loading);
    return loading;
  }

  async #load(orgId: string): Promise<PriceBook> {
    const list = this.#book;
    const { prices, state } = await new OrgDb(this.#database, orgId).transaction(
      loadOwnPrices,
      'repeatable read',
    );
    if (!state) return list;
    const book = bookWithOwnPrices(list, prices, stateWith(list.state, orgId, state));
    this.#own.set(orgId, { book, list, revision: state.revision });
    this.#saw(orgId, state.revision);
    return book;
  }
}

/** Identifies an organization's prices; it changes whenever the list or its own prices change. */
function stateWith(list: PriceState, orgId: string, own: OwnPriceRevision): PriceState {
  const contentHash = createHash('sha256')
    .update(`${list.contentHash} ${orgId} ${own.revision}`)
    .digest('hex');
  const isLater = own.updatedAtMicros > list.updatedAtMicros;
  return { updatedAtMicros: isLater ? own.updatedAtMicros : list.updatedAtMicros, contentHash };
}
