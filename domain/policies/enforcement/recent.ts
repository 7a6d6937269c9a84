/** What is remembered by a key, in the order in which it was last noted: so that the oldest can go first. */
export class Recent<V> {
  readonly #byKey = new Map<string, V>();

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): V | undefined {
    return this.#byKey.get(key);
  }

  /** Remembers it as the newest. */
  note(key: string, value: V): void {
    this.#byKey.delete(key);
    this.#byKey.set(key, value);
  }

  /** Forgets the oldest for as long as `isOver` says so of them. Looks at one more than it forgets. */
  forgetWhile(isOver: (value: V) => boolean): void {
    for (const [key, value] of this.#byKey) {
      if (!isOver(value)) return;
      this.#byKey.delete(key);
    }
  }

  /** Forgets the older half; returns how many those were. */
  forgetHalf(): number {
    let left = Math.ceil(this.#byKey.size / 2);
    const forgotten = left;
    this.forgetWhile(() => {
      left -= 1;
      return left >= 0;
    });
    return forgotten;
  }
}
