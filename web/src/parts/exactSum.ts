import type { Decimal } from '../app/format.js';

// The dashboard imports nothing of the service, so `footedCents` repeats `domain/footing.ts`, with one difference: it
// rounds half a cent of the total away from zero, as `usd` of format.ts does, and not half to even.

/** Digits after the point that the API sends at most. */
const SCALE = 12;

/** The sum of decimals without a rounding error, as a decimal text. */
export function exactSum(values: readonly Decimal[]): string {
  return textOf(values.reduce((before, value) => before + scaled(value), 0n));
}

/** Of a cent in the smallest unit. */
const CENT = 10n ** BigInt(SCALE - 2);

/**
 * Amounts in dollars → whole cents, as texts in dollars, that add up to the rounded sum: each is rounded down, and those
 * that lost most get the cents that are left (largest remainder), earlier ones first.
 * @param near by amount, what it should be where it can be rounded so; undefined: nothing. Amounts that are rounded up by
 * it get the cents first, those that are rounded down last. In a column of totals it is the sum of the cents beside each,
 * so that rows add up too wherever both can hold
 */
export function footedCents(
  values: readonly Decimal[],
  near: readonly (Decimal | undefined)[] = [],
): string[] {
  const parts = values.map(scaled);
  const rests = parts.map((part) => ((part % CENT) + CENT) % CENT);
  const floors = parts.map((part, at) => (part - (rests[at] ?? 0n)) / CENT);
  const turns = floors.map((floor, at) => {
    const wanted = near[at];
    if (wanted === undefined) return 1;
    return rests[at] !== 0n && scaled(wanted) > floor * CENT ? 0 : 2;
  });
  const total = scaled(exactSum(values));
  const rounded = total >= 0n ? (total + CENT / 2n) / CENT : -((-total + CENT / 2n) / CENT);
  let left = Number(rounded - floors.reduce((sum, one) => sum + one, 0n));
  const order = [...parts.keys()].sort(
    (a, b) => (turns[a] ?? 1) - (turns[b] ?? 1) || Number((rests[b] ?? 0n) - (rests[a] ?? 0n)),
  );
  const cents = [...floors];
  for (const at of order) {
    if (left <= 0) break;
    cents[at] = (cents[at] ?? 0n) + 1n;
    left -= 1;
  }
  return cents.map((one) => textOf(one * CENT));
}

function textOf(sum: bigint): string {
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
