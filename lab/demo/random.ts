/** Numbers in [0, 1) that depend on `parts` alone, so that a change of one day does not affect others. */
export function randomOf(...parts: readonly (string | number)[]): () => number {
  let state = 2_166_136_261;
  for (const character of parts.join('|')) {
    state = Math.imul(state ^ (character.codePointAt(0) ?? 0), 16_777_619) >>> 0;
  }
  return mulberry32(state);
}

/** Numbers in [0, 1) from a whole seed by mulberry32. */
export function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A whole number from `low` to `high`, both included. */
export function between(random: () => number, [low, high]: readonly [number, number]): number {
  return low + Math.floor(random() * (high - low + 1));
}

/** Divides a whole number by weights; the rounding remainder goes to the largest remainders, earlier ones first. */
export function apportion(whole: number, weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const shares = weights.map((weight, at) => ({ at, exact: (whole * weight) / total }));
  const parts = shares.map(({ exact }) => Math.floor(exact));
  const left = whole - parts.reduce((sum, part) => sum + part, 0);
  const byRest = [...shares].sort((a, b) => (b.exact % 1) - (a.exact % 1) || a.at - b.at);
  for (const { at } of byRest.slice(0, left)) parts[at] = (parts[at] ?? 0) + 1;
  return parts;
}
