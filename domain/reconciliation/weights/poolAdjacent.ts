/** Pool adjacent violators: the nearest sequence, by weighed squares, that never falls (Ayer et al., 1955). */

export function nonDecreasing(values: readonly number[], weights: readonly number[]): number[] {
  const blocks: { value: number; weight: number; count: number }[] = [];
  values.forEach((value, at) => {
    let block = { value, weight: weights[at] ?? 1, count: 1 };
    for (let last = blocks.at(-1); last && last.value > block.value; last = blocks.at(-1)) {
      blocks.pop();
      const weight = last.weight + block.weight;
      block = {
        value: (last.value * last.weight + block.value * block.weight) / weight,
        weight,
        count: last.count + block.count,
      };
    }
    blocks.push(block);
  });
  return blocks.flatMap(({ value, count }) => Array.from({ length: count }, () => value));
}

/** The same that never rises. */
export function nonIncreasing(values: readonly number[], weights: readonly number[]): number[] {
  return nonDecreasing([...values].reverse(), [...weights].reverse()).reverse();
}
