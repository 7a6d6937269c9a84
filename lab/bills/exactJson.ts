/** JSON whose numbers keep their digits, and exact sums of such numbers. */

/** A number by its decimal text, which is written unchanged. */
export interface NumberText {
  $number: string;
}

export function isNumberText(value: unknown): value is NumberText {
  return typeof value === 'object' && value !== null && typeof (value as NumberText).$number === 'string';
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** JSON text of a value; `{ $number }` becomes its digits. Throws if they are no JSON number. */
export function exactJson(value: unknown): string {
  if (isNumberText(value)) {
    if (!JSON_NUMBER.test(value.$number)) throw new Error(`not a JSON number: ${value.$number}`);
    return value.$number;
  }
  if (Array.isArray(value)) return `[${value.map(exactJson).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined);
    return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${exactJson(item)}`).join(',')}}`;
  }
  return JSON.stringify(value) as string;
}

/** The exact sum of decimal texts, without trailing zeros. */
export function sumDecimals(texts: readonly string[]): string {
  const parts = texts.map(parseDecimal);
  const scale = Math.max(0, ...parts.map((part) => part.scale));
  const sum = parts.reduce((total, part) => total + part.digits * 10n ** BigInt(scale - part.scale), 0n);
  const magnitude = (sum < 0n ? -sum : sum).toString().padStart(scale + 1, '0');
  const whole = magnitude.slice(0, magnitude.length - scale);
  const fraction = magnitude.slice(magnitude.length - scale).replace(/0+$/, '');
  return `${sum < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

function parseDecimal(text: string): { digits: bigint; scale: number } {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text.trim());
  if (!match) throw new Error(`not a decimal: ${text}`);
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  const scale = fraction.length - Number(exponent);
  const digits = BigInt(`${sign}${whole}${fraction}`);
  return scale < 0 ? { digits: digits * 10n ** BigInt(-scale), scale: 0 } : { digits, scale };
}

export function isDecimalText(value: unknown): value is string {
  return typeof value === 'string' && /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(value.trim());
}
