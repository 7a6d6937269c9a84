/**
 * What is remembered by a key in two generations, so that the old goes without a search for it: what is used moves to
 * the young one, and when that has its fill the old one is dropped and it takes its place.
 */
export class Generations<V> {
  #young = new Map<string, V>();
  #old = new Map<string, V>();

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** What is remembered of the key; it counts as used. */
  get(key: string): V | undefined {
    const young = this.#young.get(key);
    if (young !== undefined || this.#old.size === 0) return young;
    const old = this.#old.get(key);
    if (old === undefined) return undefined;
    this.#old.delete(key);
    this.#young.set(key, old);
    return old;
  }

  set(key: string, value: V): void {
    this.#old.delete(key);
    this.#young.set(key, value);
  }

  /** Drops what was not used since the last turn; returns how many keys that were. */
  turn(): number {
    const dropped = this.#old.size;
    this.#old = this.#young;
    this.#young = new Map();
    return dropped;
  }
}
