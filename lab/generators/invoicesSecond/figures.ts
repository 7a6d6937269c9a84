/** Figures are whole numbers of 10⁻¹⁰. */
const UNIT = 10_000_000_000n;

export function figure(text: string): bigint {
  const minus = text.startsWith('-');
  const [whole = '', part = ''] = text.replace('-', '').split('.');
  const value = BigInt(whole || '0') * UNIT + BigInt(part.slice(0, 10).padEnd(10, '0'));
  return minus ? -value : value;
}

/** Plain decimal without needless zeros, but with `least` decimals. */
export function plain(value: bigint, least = 0): string {
  const size = value < 0n ? -value : value;
  let part = (size % UNIT).toString().padStart(10, '0');
  while (part.length > least && part.endsWith('0')) part = part.slice(0, -1);
  return `${value < 0n ? '-' : ''}${size / UNIT}${part === '' ? '' : `.${part}`}`;
}

/** To `decimals`, halves away from zero. */
export function toDecimals(value: bigint, decimals: number): bigint {
  const step = 10n ** BigInt(10 - decimals);
  const half = value < 0n ? -step / 2n : step / 2n;
  return ((value + half) / step) * step;
}

export function times(one: bigint, other: bigint): bigint {
  const raw = one * other;
  return (raw + (raw < 0n ? -UNIT / 2n : UNIT / 2n)) / UNIT;
}

export function share(percent: bigint, of: bigint): bigint {
  return times(percent, of) / 100n;
}

export function total(values: Iterable<bigint>): bigint {
  let result = 0n;
  for (const value of values) result += value;
  return result;
}

export interface Money {
  code: string;
  decimals: number;
  /** `€` in `€ 5`, or null where the code is printed. */
  sign: string | null;
}

export interface Notation {
  thousands: string;
  comma: boolean;
  /** Position of sign or code. */
  place: 'before' | 'before_spaced' | 'after' | 'nowhere';
  negative: 'minus_first' | 'minus_after_sign' | 'brackets' | 'minus_last';
}

/** A number without currency. */
export function written(value: bigint, notation: Notation, least: number): string {
  const [whole = '', part] = plain(value < 0n ? -value : value, least).split('.');
  let grouped = '';
  for (let at = 0; at < whole.length; at += 1) {
    if (at > 0 && (whole.length - at) % 3 === 0) grouped += notation.thousands;
    grouped += whole[at];
  }
  return part ? grouped + (notation.comma ? ',' : '.') + part : grouped;
}

export function asMoney(value: bigint, notation: Notation, money: Money): string {
  const number = written(value, notation, money.decimals);
  const sign = money.sign ?? money.code;
  const minus = value < 0n ? '-' : '';
  if (notation.negative === 'minus_after_sign' && notation.place !== 'after' && notation.place !== 'nowhere')
    return `${sign}${notation.place === 'before_spaced' ? ' ' : ''}${minus}${number}`;
  const dressed = {
    before: `${sign}${number}`,
    before_spaced: `${sign} ${number}`,
    after: `${number} ${sign}`,
    nowhere: number,
  }[notation.place];
  if (!minus) return dressed;
  if (notation.negative === 'brackets') return `(${dressed})`;
  return notation.negative === 'minus_last' ? `${dressed}-` : `-${dressed}`;
}
