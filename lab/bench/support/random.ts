/** A reproducible random generator for traffic: xorshift32 (Marsaglia, "Xorshift RNGs", 2003). Not for secrets. */
export class Random {
  #state: number;

  /** @param seed any integer; the benches print theirs. */
  constructor(seed: number) {
    // Xorshift never leaves the state zero; the odd constant spreads small seeds.
    this.#state = (Math.imul(seed | 0, 0x9e3779b1) ^ 0x6d2b79f5) | 0 || 1;
  }

  /** 32 random bits. */
  next(): number {
    let state = this.#state;
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    this.#state = state;
    return state >>> 0;
  }

  /** An integer from 0 to `count` - 1. */
  below(count: number): number {
    return this.next() % count;
  }

  /** An integer from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  /** Lower-case hex digits, eight at a time. */
  hex(digits: 8 | 16 | 24 | 32): string {
    let text = '';
    while (text.length < digits) text += this.next().toString(16).padStart(8, '0');
    return text;
  }
}
