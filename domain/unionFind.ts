/** Disjoint sets, joined pair by pair. An element that was never joined is in a set by itself. */
export class UnionFind<T> {
  readonly #parents = new Map<T, T>();

  /** The representative of the element's set. */
  find(thing: T): T {
    let root = thing;
    for (let next = this.#parents.get(root); next !== undefined; next = this.#parents.get(root)) root = next;
    // Path compression: the elements on the way point at the root from now on.
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

/** Disjoint sets of the numbers below `count`; a join takes near-constant time in any order. */
export class DisjointSets {
  readonly #parents: number[];
  readonly #sizes: number[];

  constructor(count: number) {
    this.#parents = Array.from({ length: count }, (_, index) => index);
    this.#sizes = new Array(count).fill(1);
  }

  /** The representative of the member's set, which the next join may change. */
  find(member: number): number {
    let at = member;
    for (;;) {
      const parent = this.#parents[at] as number;
      if (parent === at) return at;
      // Path halving: each member on the way points at its grandparent from now on.
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
