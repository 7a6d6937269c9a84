import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Database } from '../../db/client.js';
import { OrgDb } from '../../db/orgDb.js';
import { loadOwnPrices, type OwnPriceRevision, readOwnPriceRevisions } from '../../db/pricing/ownPrices.js';
import { loadPriceBook, readPriceState } from '../../db/pricing/prices.js';
import { bookWithOwnPrices } from '../../domain/pricing/ownPrices.js';
import type { PriceBook, PriceState } from '../../domain/pricing/priceBook.js';

/** The prices of a process, as everything that prices a call or judges a bill is given them. */
export interface Prices {
  /** The list prices that everybody has. */
  current(): PriceBook;
  /** The prices of an organization: its contract and its overrides over the list; the list itself where it has none. */
  of(orgId: string): Promise<PriceBook>;
  /** The same as stored now, not some seconds ago: for results that are kept. */
  freshOf(orgId: string): Promise<PriceBook>;
}

/** How long a book is used before the database is asked whether it still holds. */
const FRESH_MS = 5_000;
/** After a pause of this length the book at hand may be of any age: who asks for an organization's waits for the look. */
const STALE_MS = 2 * FRESH_MS;
/** Books of organizations that are kept; one that is built again costs a query and some milliseconds. */
const OWN_BOOKS_MAX = 100;

export interface PriceBookHolderOptions {
  /** Milliseconds of a clock that never goes back. */
  nowMs(): number;
  /** Called when a refresh in the background failed; the present book stays in use. */
  onFailure(error: unknown): void;
}

/** An organization's book, with the list and the revision that it was made from. */
interface OwnBook {
  readonly book: PriceBook;
  readonly list: PriceBook;
  readonly revision: number;
}

/**
 * The prices of a process, at hand without a query. Being asked for them is what makes it look, in the background and
 * once at a time, whether others are stored; a process that is not asked does nothing. Only who asks for an
 * organization's prices after such a pause waits for the look: what was agreed meanwhile holds for the first call too.
 */
export class PriceBookHolder implements Prices {
  readonly #database: Database;
  readonly #options: PriceBookHolderOptions;
  #book: PriceBook;
  #checkedMs: number;
  /** When the last look that has ended began. */
  #lookedMs: number;
  /** The look under way, and the one that waits for it to end. */
  #looking: Promise<PriceBook> | undefined;
  #waiting: Promise<PriceBook> | undefined;
  /** Organizations that have own prices, by the latest revision that was seen. */
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
    return new PriceBookHolder(database, options, book, await readOwnPriceRevisions(database));
  }

  /** The prices as of at most a few seconds ago, if there was anything to ask for them. */
  current(): PriceBook {
    if (this.#options.nowMs() - this.#checkedMs >= FRESH_MS && !this.#looking) {
      this.refresh().catch((error: unknown) => this.#options.onFailure(error));
    }
    return this.#book;
  }

  /**
   * The prices of an organization as of at most a few seconds ago; an organization without own prices costs nothing.
   * Error service_unavailable where its own prices are not at hand and the database is away.
   */
  async of(orgId: string): Promise<PriceBook> {
    this.current();
    // A look that fails leaves the book at hand in use.
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

  /** Takes up a change that this process has just stored: the next call is priced by it. */
  async reload(orgId: string): Promise<void> {
    // A load under way may have read before the change.
    await this.#loading.get(orgId)?.catch(() => undefined);
    await this.#loadOnce(orgId);
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
    const stored = await readPriceState(this.#database);
    const held = this.#book.state;
    const same = stored?.updatedAtMicros === held.updatedAtMicros && stored.contentHash === held.contentHash;
    if (!same) this.#book = await loadPriceBook(this.#database);
    for (const [orgId, revision] of await readOwnPriceRevisions(this.#database)) this.#saw(orgId, revision);
    return this.#book;
  }

  /** Revisions only grow, so what an older look brings late takes nothing back. */
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

/** What names an organization's prices: another name whenever the list or its own prices change. */
function stateWith(list: PriceState, orgId: string, own: OwnPriceRevision): PriceState {
  const contentHash = createHash('sha256')
    .update(`${list.contentHash} ${orgId} ${own.revision}`)
    .digest('hex');
  const isLater = own.updatedAtMicros > list.updatedAtMicros;
  return { updatedAtMicros: isLater ? own.updatedAtMicros : list.updatedAtMicros, contentHash };
}
