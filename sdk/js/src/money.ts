/** Exact money: bigint pico-dollars (1e-12 USD). */
export type Pico = bigint;

const PICO_DIGITS = 12;
const TOKENS_PER_RATE_UNIT = 1_000_000n;
const DECIMAL = /^(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?$/;

/** Dollars as a JSON number or a decimal text; undefined: negative or no number. */
export function picoOf(usd: unknown): Pico | undefined {
  if (typeof usd !== 'number' && typeof usd !== 'string') return undefined;
  const match = DECIMAL.exec(String(usd).trim());
  const whole = match?.[1] ?? '';
  const fraction = match?.[2] ?? '';
  if (!match || whole + fraction === '') return undefined;
  const shift = PICO_DIGITS - fraction.length + Number(match[3] ?? 0);
  const digits = BigInt(whole + fraction);
  return shift >= 0 ? digits * 10n ** BigInt(shift) : divideHalfEven(digits, 10n ** BigInt(-shift));
}

/** The exact decimal text, without trailing zeros. */
export function decimalOf(pico: Pico): string {
  const digits = pico.toString().padStart(PICO_DIGITS + 1, '0');
  const fraction = digits.slice(-PICO_DIGITS).replace(/0+$/, '');
  const whole = digits.slice(0, -PICO_DIGITS);
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

/** Tokens in disjoint classes; reasoning is part of the output. */
export interface Tokens {
  input: number;
  cacheRead: number;
  cacheWrite: number;
  output: number;
}

/** USD per million tokens, in pico-dollars. */
export interface Rates {
  input: Pico;
  cacheRead: Pico;
  cacheWrite: Pico;
  output: Pico;
}

/** The cost, rounded once, half to even; a batch costs half. */
export function costOf(tokens: Tokens, rates: Rates, isBatch = false): Pico {
  const product =
    BigInt(tokens.input) * rates.input +
    BigInt(tokens.cacheRead) * rates.cacheRead +
    BigInt(tokens.cacheWrite) * rates.cacheWrite +
    BigInt(tokens.output) * rates.output;
  return divideHalfEven(product, isBatch ? TOKENS_PER_RATE_UNIT * 2n : TOKENS_PER_RATE_UNIT);
}

function divideHalfEven(numerator: bigint, divisor: bigint): bigint {
  const quotient = numerator / divisor;
  const twice = (numerator % divisor) * 2n;
  if (twice < divisor) return quotient;
  return twice > divisor || quotient % 2n === 1n ? quotient + 1n : quotient;
}
