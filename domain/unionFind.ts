/** Sets of things that belong together, joined pair by pair. A thing that was never joined is a set of its own. */
export class UnionFind<T> {
  readonly #parents = new Map<T, T>();

  /** The one that names the set of this thing. */
  find(thing: T): T {
    let root = thing;
    for (let next = this.#parents.get(root); next !== undefined; next = this.#parents.get(root)) root = next;
    // What was walked over points at the root from now on, so that chains stay short.
    for (let at = thing; at !== root; ) {
      const next = this.#parents.get(at) as T;
      this.#parents.set(at, root);
      at = next;
    }
    return root;
  }

  join(one: T, other: T): void {
    const [first, second] = [this.find(one), this.find(other)];
    if (first !== second) this.#parents.set(second, first);
  }
}
