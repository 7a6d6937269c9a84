/** Decimals as bigints of 10⁻¹². */
export type Decimal = bigint;

const PLACES = 12;
export const ONE = 10n ** 12n;

export function decimal(text: string | number): Decimal {
  const [, minus, whole = '0', part = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(String(text)) ?? [];
  if (minus === undefined || part.length > PLACES) throw new Error(`no decimal: ${text}`);
  const value = BigInt(whole) * ONE + BigInt(part.padEnd(PLACES, '0'));
  return minus ? -value : value;
}

/** Half away from zero. */
export function rounded(value: Decimal, digits: number): Decimal {
  const step = 10n ** BigInt(PLACES - digits);
  const magnitude = value < 0n ? -value : value;
  const up = ((magnitude + step / 2n) / step) * step;
  return value < 0n ? -up : up;
}

export function product(one: Decimal, other: Decimal): Decimal {
  const exact = one * other;
  const magnitude = exact < 0n ? -exact : exact;
  const up = (magnitude + ONE / 2n) / ONE;
  return exact < 0n ? -up : up;
}

/** Of a rate in percent. */
export function percentOf(rate: Decimal, base: Decimal): Decimal {
  return product(rate, base) / 100n;
}

export function sum(values: readonly Decimal[]): Decimal {
  return values.reduce((total, value) => total + value, 0n);
}

/** Shortest text, with at least `digits` decimals. */
export function decimalText(value: Decimal, digits = 0): string {
  const magnitude = value < 0n ? -value : value;
  const part = String(magnitude % ONE).padStart(PLACES, '0');
  const kept = part.replace(/0+$/, '').padEnd(digits, '0');
  return `${value < 0n ? '-' : ''}${magnitude / ONE}${kept ? `.${kept}` : ''}`;
}
