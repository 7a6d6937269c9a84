/**
 * Numbered dice: two multiply-with-carry registers (Marsaglia, 1994), started from the letters of a name. Throws of
 * differently named dice do not influence each other.
 */
export class Dice {
  #high: number;
  #low: number;

  constructor(...name: readonly (string | number)[]) {
    let [high, low] = [362_436_069, 521_288_629];
    for (const letter of name.join('/')) {
      const code = letter.charCodeAt(0);
      high = (Math.imul(high, 31) + code) >>> 0;
      low = (Math.imul(low ^ code, 69_069) + 12_345) >>> 0;
    }
    // Zero is a fixed point of either register.
    this.#high = high === 0 ? 1 : high;
    this.#low = low === 0 ? 1 : low;
    for (let warm = 0; warm < 16; warm += 1) this.share();
  }

  /** Uniform from 0 to below 1. */
  share(): number {
    this.#high = (36_969 * (this.#high & 0xffff) + (this.#high >>> 16)) >>> 0;
    this.#low = (18_000 * (this.#low & 0xffff) + (this.#low >>> 16)) >>> 0;
    return (((this.#high << 16) + (this.#low & 0xffff)) >>> 0) / 2 ** 32;
  }

  /** Uniform from `least` to below `most`. */
  within(least: number, most: number): number {
    return least + (most - least) * this.share();
  }

  /** A whole number from `least` to `most`, both included. */
  count(least: number, most: number): number {
    return Math.floor(this.within(least, most + 1));
  }

  /** A number whose logarithm is uniform from that of `least` to that of `most`. */
  magnitude(least: number, most: number): number {
    return least * (most / least) ** this.share();
  }

  happens(probability: number): boolean {
    return this.share() < probability;
  }

  /** One of several; throws for none. */
  oneOf<T>(items: readonly T[]): T {
    const item = items[this.count(0, items.length - 1)];
    if (item === undefined) throw new RangeError('there is nothing to choose from');
    return item;
  }

  /** Several different ones, in random order. */
  someOf<T>(items: readonly T[], wanted: number): T[] {
    const left = [...items];
    const taken: T[] = [];
    while (taken.length < wanted && left.length > 0)
      taken.push(...left.splice(this.count(0, left.length - 1), 1));
    return taken;
  }

  /** One of several by weight. */
  weighted<T extends { weight: number }>(items: readonly T[]): T | undefined {
    let left = this.share() * items.reduce((sum, { weight }) => sum + weight, 0);
    for (const item of items) {
      left -= item.weight;
      if (left < 0) return item;
    }
    return items.at(-1);
  }

  /** A whole number around `mean`: the sum of twelve shares approximates the normal distribution. */
  around(mean: number, deviation: number): number {
    let sum = -6;
    for (let one = 0; one < 12; one += 1) sum += this.share();
    return Math.max(0, Math.round(mean + deviation * sum));
  }
}
