/**
 * A reproducible source of chance for plans: xorshift32 (Marsaglia, "Xorshift RNGs", 2003). Not for secrets.
 */
export class SeededRandom {
  private state: number;

  /** @param seed any integer; printed by the test that uses it. */
  constructor(seed: number) {
    // Zero is the one state that xorshift never leaves; the odd constant spreads small seeds.
    this.state = (Math.imul(seed | 0, 0x9e3779b1) ^ 0x6d2b79f5) | 0 || 1;
  }

  /** An integer from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    this.state ^= this.state << 13;
    this.state ^= this.state >>> 17;
    this.state ^= this.state << 5;
    return low + ((this.state >>> 0) % (high - low + 1));
  }

  /** One of the given values. */
  pick<T>(values: readonly T[]): T {
    const value = values[this.integer(0, values.length - 1)];
    if (value === undefined) throw new Error('pick needs at least one value');
    return value;
  }
}

/** The seed of this run: TEST_SEED where set, so that a failure can be reproduced, else from the clock. */
export function testSeed(): number {
  const given = process.env.TEST_SEED;
  const seed = given === undefined ? Date.now() % 2_147_483_647 : Number(given);
  if (!Number.isInteger(seed)) throw new Error(`TEST_SEED is not an integer: ${given}`);
  return seed;
}
