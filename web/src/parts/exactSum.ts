import type { Decimal } from '../app/format';

/** Digits after the point that the API sends at most. */
const SCALE = 12;

/** The sum of decimals without a rounding error, as a decimal text. */
export function exactSum(values: readonly Decimal[]): string {
  const sum = values.reduce((before, value) => before + scaled(value), 0n);
  const digits = String(sum < 0n ? -sum : sum).padStart(SCALE + 1, '0');
  return `${sum < 0n ? '-' : ''}${digits.slice(0, -SCALE)}.${digits.slice(-SCALE)}`;
}

function scaled(value: Decimal): bigint {
  const [mantissa = '0', exponent = '0'] = String(value).toLowerCase().split('e');
  const [whole = '0', fraction = ''] = mantissa.replace('-', '').split('.');
  const places = SCALE + Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction);
  const size = places >= 0 ? digits * 10n ** BigInt(places) : digits / 10n ** BigInt(-places);
  return mantissa.startsWith('-') ? -size : size;
}

/** The decimal with the other sign. */
export const negated = (value: Decimal): string =>
  String(value).startsWith('-') ? String(value).slice(1) : `-${value}`;
