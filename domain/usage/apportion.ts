/**
 * Divides a whole among parts by the largest remainder method: part i is `numerators[i] / divisor`, rounded down
 * or up to an integer so that the parts add up to `total`, which is the sum of the exact parts, rounded in any way. Each
 * rounding error is below 1. Among equal remainders the first is rounded up. The divisor must be positive.
 */
export function apportion(numerators: readonly bigint[], divisor: bigint, total: bigint): bigint[] {
  const parts = numerators.map((numerator) => floorDivide(numerator, divisor));
  const missing = total - parts.reduce((sum, part) => sum + part, 0n);
  const byRemainder = numerators
    .map((numerator, at) => ({ at, remainder: numerator - floorDivide(numerator, divisor) * divisor }))
    .sort((a, b) => (a.remainder === b.remainder ? a.at - b.at : a.remainder > b.remainder ? -1 : 1));
  for (const { at } of byRemainder.slice(0, Number(missing))) parts[at] = (parts[at] ?? 0n) + 1n;
  return parts;
}

function floorDivide(numerator: bigint, divisor: bigint): bigint {
  const quotient = numerator / divisor;
  return numerator % divisor < 0n ? quotient - 1n : quotient;
}

/** Divides a whole in proportion to non-negative weights; evenly if all of them are zero. */
export function divideByWeights(whole: bigint, weights: readonly bigint[]): bigint[] {
  const sum = weights.reduce((total, weight) => total + weight, 0n);
  const used = sum === 0n ? weights.map(() => 1n) : weights;
  const divisor = sum === 0n ? BigInt(weights.length) : sum;
  return apportion(
    used.map((weight) => whole * weight),
    divisor,
    whole,
  );
}
