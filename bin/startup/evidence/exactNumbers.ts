/** Decimals as whole numbers of the 36th digit behind the point: more than any amount, quantity or rate has. */
const DIGITS = 36;
export const ONE = 10n ** BigInt(DIGITS);

const DECIMAL = /^\s*([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?\s*$/;

/** Undefined for what is no decimal. Digits behind the 36th are refused. */
export function parseDecimal(text: string): bigint | undefined {
  const match = DECIMAL.exec(text);
  if (!match) return undefined;
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  if (whole === '' && fraction === '') return undefined;
  const digits = BigInt(`${whole}${fraction}`);
  const shift = DIGITS - fraction.length + Number(exponent);
  const value = shift >= 0 ? digits * 10n ** BigInt(shift) : digits / 10n ** BigInt(-shift);
  if (shift < 0 && value * 10n ** BigInt(-shift) !== digits) return undefined;
  return sign === '-' ? -value : value;
}

/** The decimal without zeros at its end. */
export function decimalText(value: bigint): string {
  const digits = (value < 0n ? -value : value).toString().padStart(DIGITS + 1, '0');
  const fraction = digits.slice(-DIGITS).replace(/0+$/, '');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -DIGITS)}${fraction === '' ? '' : `.${fraction}`}`;
}

/** Rounds a quotient half to even; the divisor is positive. */
export function divideHalfEven(numerator: bigint, divisor: bigint): bigint {
  const quotient = numerator / divisor;
  const rest = numerator % divisor;
  const twice = (rest < 0n ? -rest : rest) * 2n;
  const away = numerator < 0n ? quotient - 1n : quotient + 1n;
  if (twice < divisor || (twice === divisor && quotient % 2n === 0n)) return quotient;
  return away;
}

const TWELFTH = 10n ** BigInt(DIGITS - 12);

/** To the 12th digit behind the point, half to even: as amounts and quantities are kept. */
export const toTwelve = (value: bigint): bigint => divideHalfEven(value, TWELFTH) * TWELFTH;

/** The product of two decimals, to the 36th digit and further: scaled by ONE twice. */
export const times = (a: bigint, b: bigint): bigint => a * b;

/** Half away from zero at the 12th digit, as amounts are converted from another currency. */
export function converted(amount: bigint, rate: bigint): bigint {
  const scale = ONE * TWELFTH;
  const product = amount * rate;
  const half = product < 0n ? -scale / 2n : scale / 2n;
  return ((product + half) / scale) * TWELFTH;
}
