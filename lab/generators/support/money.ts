/**
 * Amounts of the generators: bigint femto-dollars (1e-15) while calls are charged, so that every rate of the book
 * is a whole number per token, also halved, raised by a tenth or discounted by a tenth of a percent; bigint
 * pico-dollars once a row is written.
 */
export const FEMTO_PER_PICO = 1_000n;
const PICO_DIGITS = 12;
const FEMTO_PER_TOKEN_DIGITS = 9;

/**
 * Dollars per million tokens, as a decimal text or number, → femto-dollars per token. Throws unless the result is
 * exact.
 */
export function ratePerToken(dollarsPerMillion: string | number): bigint {
  const [whole = '', fraction = ''] = String(dollarsPerMillion).split('.');
  if (!/^\d+$/.test(whole) || !/^\d{0,9}$/.test(fraction)) throw new Error(`no rate: ${dollarsPerMillion}`);
  return BigInt(whole + fraction.padEnd(FEMTO_PER_TOKEN_DIGITS, '0'));
}

/** Rounds half away from zero to a multiple of `unit`. */
export function roundTo(amount: bigint, unit: bigint): bigint {
  const size = amount < 0n ? -amount : amount;
  const rounded = ((size + unit / 2n) / unit) * unit;
  return amount < 0n ? -rounded : rounded;
}

/** An integer scaled by 10^digits as decimal text with at least `least` decimals. */
export function decimalText(scaled: bigint, digits: number, least = 0): string {
  const text = (scaled < 0n ? -scaled : scaled).toString().padStart(digits + 1, '0');
  let fraction = text.slice(text.length - digits);
  while (fraction.length > least && fraction.endsWith('0')) fraction = fraction.slice(0, -1);
  return `${scaled < 0n ? '-' : ''}${text.slice(0, text.length - digits)}${fraction === '' ? '' : `.${fraction}`}`;
}

/** Pico-dollars as dollars. */
export const dollarText = (pico: bigint, least = 0): string => decimalText(pico, PICO_DIGITS, least);

/** Pico-dollars as cents. */
export const centText = (pico: bigint, least = 0): string => decimalText(pico, PICO_DIGITS - 2, least);
