/** Quantiles of a Beta distribution, by its distribution function and halving. */

/**
 * The value that a Beta(a, b) is below with the probability `share`. Deterministic; exact to about 1e-12 for parameters up to
 * some thousands.
 */
export function betaQuantile(share: number, a: number, b: number): number {
  let [low, high] = [0, 1];
  for (let step = 0; step < 60; step += 1) {
    const middle = (low + high) / 2;
    if (betaBelow(middle, a, b) < share) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** The probability that a Beta(a, b) is below x: the regularised incomplete beta function. */
export function betaBelow(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(1 - x));
  // The fraction converges fast on this side of the mean only.
  return x < (a + 1) / (a + b + 2)
    ? (front * continuedFraction(x, a, b)) / a
    : 1 - (front * continuedFraction(1 - x, b, a)) / b;
}

const TINY = 1e-300;
const FRACTIONS_MAX = 500;

/** By Lentz's method (Abramowitz and Stegun 26.5.8). */
function continuedFraction(x: number, a: number, b: number): number {
  let c = 1;
  let d = 1 / awayFromZero(1 - ((a + b) * x) / (a + 1));
  let value = d;
  for (let m = 1; m <= FRACTIONS_MAX; m += 1) {
    const before = value;
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    for (const term of [even, odd]) {
      d = 1 / awayFromZero(1 + term * d);
      c = awayFromZero(1 + term / c);
      value *= d * c;
    }
    if (Math.abs(value - before) <= 1e-15 * Math.abs(value)) break;
  }
  return value;
}

const awayFromZero = (value: number): number => (Math.abs(value) < TINY ? TINY : value);

/** Stirling's series, from 10 on; below by the recurrence. */
function logGamma(z: number): number {
  let [shifted, less] = [z, 0];
  while (shifted < 10) {
    less += Math.log(shifted);
    shifted += 1;
  }
  const inverse = 1 / (shifted * shifted);
  const series =
    (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse / 1188)))) / shifted;
  return (shifted - 0.5) * Math.log(shifted) - shifted + 0.5 * Math.log(2 * Math.PI) + series - less;
}
