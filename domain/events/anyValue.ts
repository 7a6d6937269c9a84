/**
 * OTLP values as they come: from JSON, where a 64-bit integer is text or a number and a key may be unknown, and from
 * protobuf. Nothing here fails: what cannot be read stays as it is and is judged where it is used.
 */
import type { Json } from './event.js';
import { jsonFromBigint, setOwn, stripText } from './stripText.js';

/** An attribute's value; undefined stands for an empty one. A bigint is an integer beyond 2^53. */
export type AttributeValue =
  | string
  | number
  | bigint
  | boolean
  | Json[]
  | { [key: string]: Json }
  | undefined;

/** Levels of lists and maps inside an attribute that are read; deeper ones become null. */
export const VALUE_DEPTH_MAX = 64;

const INTEGER = /^-?\d+$/;
const SAFE_INTEGER_CHARS = 15;

/** Reads an AnyValue. Strings come stripped. */
export function readAnyValue(value: unknown, depth = 0): AttributeValue {
  if (typeof value !== 'object' || value === null) return readBare(value);
  const any = value as Record<string, unknown>;
  if (any.stringValue !== undefined && any.stringValue !== null) {
    return typeof any.stringValue === 'string' ? stripText(any.stringValue) : readBare(any.stringValue);
  }
  if (any.intValue !== undefined && any.intValue !== null) return readInteger(any.intValue);
  if (any.doubleValue !== undefined && any.doubleValue !== null) return readDouble(any.doubleValue);
  if (any.boolValue !== undefined && any.boolValue !== null) return readBare(any.boolValue);
  if (any.arrayValue !== undefined && any.arrayValue !== null) return readList(any.arrayValue, depth);
  if (any.kvlistValue !== undefined && any.kvlistValue !== null) return readMap(any.kvlistValue, depth);
  if (typeof any.bytesValue === 'string') return stripText(any.bytesValue);
  return undefined;
}

function readBare(value: unknown): AttributeValue {
  if (typeof value === 'string') return stripText(value);
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return value;
  return undefined;
}

/** int64: a JSON number, or decimal text read to the last digit; other text stays text. */
function readInteger(value: unknown): AttributeValue {
  if (typeof value !== 'string') return readBare(value);
  if (!INTEGER.test(value)) return stripText(value);
  if (value.length <= SAFE_INTEGER_CHARS) return Number(value);
  const exact = BigInt(value.slice(0, 400));
  return Number.isSafeInteger(Number(exact)) ? Number(exact) : exact;
}

/** A double; proto3 JSON writes NaN and the infinities as text. */
function readDouble(value: unknown): AttributeValue {
  if (typeof value !== 'string') return readBare(value);
  const number = Number(value);
  return value.trim() === '' || (Number.isNaN(number) && value !== 'NaN') ? stripText(value) : number;
}

function readList(value: unknown, depth: number): Json[] {
  const values = (value as { values?: unknown }).values;
  if (!Array.isArray(values) || depth >= VALUE_DEPTH_MAX) return [];
  return values.map((item) => jsonOf(readAnyValue(item, depth + 1)));
}

function readMap(value: unknown, depth: number): { [key: string]: Json } {
  const map: { [key: string]: Json } = {};
  const values = (value as { values?: unknown }).values;
  if (!Array.isArray(values) || depth >= VALUE_DEPTH_MAX) return map;
  for (const pair of values as { key?: unknown; value?: unknown }[]) {
    if (typeof pair?.key === 'string')
      setOwn(map, stripText(pair.key), jsonOf(readAnyValue(pair.value, depth + 1)));
  }
  return map;
}

/** The value as JSON holds it. */
export function jsonOf(value: AttributeValue): Json {
  if (value === undefined) return null;
  return typeof value === 'bigint' ? jsonFromBigint(value) : value;
}

/** A value as a label: text, or a number or boolean written out; empty text, lists and maps are no label. */
export function labelOf(value: AttributeValue): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : undefined;
  if (typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  return undefined;
}

/** Parses JSON text to a value; undefined for what is not JSON of an object or list. */
export function parseJsonText(text: string): Json[] | { [key: string]: Json } | undefined {
  const first = text.trimStart()[0];
  if (first !== '{' && first !== '[') return undefined;
  try {
    return JSON.parse(text) as Json[] | { [key: string]: Json };
  } catch {
    return undefined;
  }
}

/** A map given as such or as JSON text; undefined for anything else. */
export function mapOf(value: AttributeValue | Json): { [key: string]: Json } | undefined {
  const read = typeof value === 'string' ? parseJsonText(value) : value;
  return typeof read === 'object' && read !== null && !Array.isArray(read)
    ? (read as { [key: string]: Json })
    : undefined;
}
