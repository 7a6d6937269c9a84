import { touchKeys } from '../../db/access/keys.js';
import type { Database } from '../../db/client.js';

/** A key's last use is written at most this often. */
const TOUCH_INTERVAL_MS = 60_000;
/** Uses are gathered for so long and written together. */
const GATHER_MS = 1_000;
/** Keys of which a process knows when it noted them. */
const NOTED_MAX = 10_000;

/** Notes when keys were last used, behind the requests: a missed note harms nobody, so it delays and fails none. */
export class KeyUses {
  readonly #database: Database;
  readonly #now: () => bigint;
  readonly #notedMs = new Map<string, number>();
  readonly #gathered = new Set<string>();

  constructor(database: Database, now: () => bigint) {
    this.#database = database;
    this.#now = now;
  }

  note(keyId: string): void {
    const nowMs = Number(this.#now() / 1_000n);
    if (nowMs - (this.#notedMs.get(keyId) ?? 0) < TOUCH_INTERVAL_MS) return;
    if (this.#notedMs.size >= NOTED_MAX) this.#notedMs.clear();
    this.#notedMs.set(keyId, nowMs);
    if (this.#gathered.size === 0) setTimeout(() => this.#write(), GATHER_MS).unref();
    this.#gathered.add(keyId);
  }

  #write(): void {
    const keyIds = [...this.#gathered];
    this.#gathered.clear();
    touchKeys(this.#database, keyIds).catch(() => undefined);
  }
}
