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

/** The numbers from 0 to `count` in sets that are joined: near-constant time each, whatever the order. */
export class DisjointSets {
  readonly #parents: number[];
  readonly #sizes: number[];

  constructor(count: number) {
    this.#parents = Array.from({ length: count }, (_, index) => index);
    this.#sizes = new Array(count).fill(1);
  }

  /** A member that stands for the whole set until the next join. */
  find(member: number): number {
    let at = member;
    for (;;) {
      const parent = this.#parents[at] as number;
      if (parent === at) return at;
      // Each member on the way skips one from now on.
      const above = this.#parents[parent] as number;
      this.#parents[at] = above;
      at = above;
    }
  }

  join(one: number, other: number): void {
    const [a, b] = [this.find(one), this.find(other)];
    if (a === b) return;
    const [large, small] = (this.#sizes[a] as number) >= (this.#sizes[b] as number) ? [a, b] : [b, a];
    this.#parents[small] = large;
    this.#sizes[large] = (this.#sizes[large] as number) + (this.#sizes[small] as number);
  }
}
