import { decimalFromScaled } from '../../../domain/money.js';

/** A decimal as Parquet stores it (an integer, or its big-endian two's complement bytes) → its exact text. */
export function decimalText(value: unknown, scale: number): string {
  if (value instanceof Uint8Array) return decimalFromScaled(integerOf(value), scale);
  return decimalFromScaled(BigInt(value as bigint | number), scale);
}

function integerOf(bytes: Uint8Array): bigint {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return BigInt.asIntN(bytes.length * 8, value);
}

/** The shortest decimal that names a 32-bit floating-point number. */
export function floatText(value: number): string {
  for (let digits = 6; digits < 9; digits += 1) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(value);
}

/** A struct, map or list as JSON text, as the CSV of the same export has it; '' where it is empty. */
export function nestedText(value: unknown): string {
  const text = JSON.stringify(value, (_key, field: unknown) => {
    if (typeof field === 'bigint') return String(field);
    return field instanceof Uint8Array ? new TextDecoder().decode(field) : field;
  });
  return text === '{}' || text === '[]' ? '' : text;
}
