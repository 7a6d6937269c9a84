/** Exact money: bigint pico-dollars (1e-12 USD), numeric(24,12) in SQL; rates are pico-dollars per million tokens. */

/** Pico-dollars: 1 USD = 1_000_000_000_000n. */
export type Pico = bigint;

export const PICO_PER_USD = 1_000_000_000_000n;
const PICO_DIGITS = 12;
const TOKENS_PER_RATE_UNIT = 1_000_000n;

const DECIMAL = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,4}))?$/;

/** Division of integers that rounds half to even; the divisor must be positive. */
export function divideHalfEven(numerator: bigint, divisor: bigint): bigint {
  const quotient = numerator / divisor;
  const remainder = numerator % divisor;
  const twice = (remainder < 0n ? -remainder : remainder) * 2n;
  if (twice < divisor) return quotient;
  const away = numerator < 0n ? quotient - 1n : quotient + 1n;
  if (twice > divisor) return away;
  return quotient % 2n === 0n ? quotient : away;
}

/** Reads a decimal text ("1.25", "-3e-7") scaled by 10^scale, rounded half to even; undefined when not finite. */
export function parseScaled(text: string, scale: number): bigint | undefined {
  const match = DECIMAL.exec(text.trim());
  if (!match) return undefined;
  const [, sign, whole = '', fraction = '', exponentText] = match;
  if (whole === '' && fraction === '') return undefined;
  const exponent = exponentText === undefined ? 0 : Number(exponentText);
  const digits = BigInt(whole + fraction || '0');
  const shift = scale - fraction.length + exponent;
  if (shift > 400 || shift < -4000) return digits === 0n || shift < 0 ? 0n : undefined;
  const magnitude =
    shift >= 0 ? digits * 10n ** BigInt(shift) : divideHalfEven(digits, 10n ** BigInt(-shift));
  return sign === '-' ? -magnitude : magnitude;
}

export function picoFromDecimal(text: string): Pico | undefined {
  return parseScaled(text, PICO_DIGITS);
}

/** Dollars as a JSON number → pico-dollars, through the shortest decimal of the double. Undefined for NaN and infinities. */
export function picoFromNumber(usd: number): Pico | undefined {
  return Number.isFinite(usd) ? picoFromDecimal(String(usd)) : undefined;
}

/** Pico-dollars → decimal text without trailing zeros, at least one digit before the point ("0.0012", "-3"). */
export function decimalFromPico(pico: Pico): string {
  return decimalFromScaled(pico, PICO_DIGITS);
}

/** An integer scaled by 10^scale → its exact decimal text, without trailing zeros. */
export function decimalFromScaled(value: bigint, scale: number): string {
  const negative = value < 0n;
  const digits = (negative ? -value : value).toString().padStart(scale + 1, '0');
  const whole = digits.slice(0, digits.length - scale);
  const fraction = digits.slice(digits.length - scale).replace(/0+$/, '');
  return `${negative ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

/** Pico-dollars → the nearest double in dollars. For the wire only: never add these up. */
export function usdNumberFromPico(pico: Pico): number {
  return Number(decimalFromPico(pico));
}

export function usdNumberOrNull(pico: Pico | null): number | null {
  return pico === null ? null : usdNumberFromPico(pico);
}

/** A decimal text that the product wrote itself → the nearest double in dollars. For the wire only. */
export function usdNumberFromDecimal(decimal: string): number {
  return usdNumberFromPico(picoFromDecimal(decimal) ?? 0n);
}

/** Pico-dollars → whole cents, rounded half to even. */
export function centsFromPico(pico: Pico): bigint {
  return divideHalfEven(pico, PICO_PER_USD / 100n);
}

/** Exact sum of products, tokens × pico-dollars per million tokens → pico-dollars, rounded half to even once. */
export function picoFromTokenProduct(product: bigint): Pico {
  return divideHalfEven(product, TOKENS_PER_RATE_UNIT);
}

export function absPico(value: Pico): Pico {
  return value < 0n ? -value : value;
}
