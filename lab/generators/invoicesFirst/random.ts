/** Seeded random numbers (mulberry32). */
export class Random {
  #state: number;

  constructor(...names: readonly (string | number)[]) {
    let hash = 2_166_136_261;
    for (const letter of names.join('/')) hash = Math.imul(hash ^ letter.charCodeAt(0), 16_777_619);
    this.#state = hash >>> 0;
  }

  /** Uniform in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number, both bounds included. */
  whole(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.next() * items.length)] as T;
  }

  /** Between the bounds, evenly by order of magnitude. */
  magnitude(low: number, high: number): number {
    return low * (high / low) ** this.next();
  }

  letters(alphabet: string, count: number): string {
    return Array.from({ length: count }, () => this.pick([...alphabet])).join('');
  }
}
