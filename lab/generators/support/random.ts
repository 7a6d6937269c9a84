/**
 * Seeded random numbers. The seed and words name a stream; streams of different names share no state, so that more
 * draws from one do not affect others.
 */
export class Random {
  private state: Uint32Array;

  constructor(...names: readonly (string | number)[]) {
    this.state = new Uint32Array(4);
    let hash = 0x811c9dc5;
    for (const letter of names.join('\u0000')) {
      hash = Math.imul(hash ^ (letter.codePointAt(0) as number), 0x01000193) >>> 0;
    }
    for (let word = 0; word < 4; word += 1) {
      hash = (hash + 0x9e3779b9) >>> 0;
      let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
      mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
      this.state[word] = (mixed ^ (mixed >>> 16)) >>> 0;
    }
    for (let step = 0; step < 8; step += 1) this.next();
  }

  /** Uniform in [0, 1), by xoshiro128**. */
  next(): number {
    const s = this.state as unknown as [number, number, number, number];
    const rolled = Math.imul(s[1], 5);
    const result = Math.imul((rolled << 7) | (rolled >>> 25), 9) >>> 0;
    const shifted = s[1] << 9;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = (s[3] << 11) | (s[3] >>> 21);
    return result / 4_294_967_296;
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  /** A whole number of [low, high], both included. */
  whole(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new Error('nothing to pick from');
    return items[Math.floor(this.next() * items.length)] as T;
  }

  /** A copy in random order. */
  shuffled<T>(items: readonly T[]): T[] {
    const copy = [...items];
    for (let at = copy.length - 1; at > 0; at -= 1) {
      const other = this.whole(0, at);
      [copy[at], copy[other]] = [copy[other] as T, copy[at] as T];
    }
    return copy;
  }

  /** Standard normal, by Box and Muller. */
  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
  }

  /** Lognormal with this median; `sigma` is the deviation of the logarithm. */
  lognormal(median: number, sigma: number): number {
    return median * Math.exp(sigma * this.normal());
  }

  /** Gamma by Marsaglia and Tsang; shapes below one by the usual boost. */
  gamma(shape: number): number {
    if (shape < 1) return this.gamma(shape + 1) * (1 - this.next()) ** (1 / shape);
    const d = shape - 1 / 3;
    const c = 1 / Math.sqrt(9 * d);
    for (;;) {
      const x = this.normal();
      const v = (1 + c * x) ** 3;
      if (v > 0 && Math.log(1 - this.next()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
    }
  }

  /** Random shares that add up to one. */
  dirichlet(weights: readonly number[]): number[] {
    const draws = weights.map((weight) => (weight > 0 ? this.gamma(weight) : 0));
    const sum = draws.reduce((total, draw) => total + draw, 0);
    return draws.map((draw) => draw / sum);
  }

  /** Poisson, approximated by the normal distribution for a large mean. */
  poisson(mean: number): number {
    if (mean > 60) return Math.max(0, Math.round(mean + Math.sqrt(mean) * this.normal()));
    const limit = Math.exp(-mean);
    let count = 0;
    for (let product = this.next(); product > limit; product *= this.next()) count += 1;
    return count;
  }
}
