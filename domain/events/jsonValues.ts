import { DomainError } from '../errors.js';
import { type Json, PAYLOAD_ATTRIBUTES_MAX, PAYLOAD_BYTES_MAX } from './event.js';

/**
 * OTLP values from JSON (64-bit integers as text or number) or protobuf. Unreadable values are kept and checked
 * when used.
 */

/** An attribute's value; undefined: an empty value; a bigint: an integer beyond 2^53. */
export type AttributeValue =
  | string
  | number
  | bigint
  | boolean
  | Json[]
  | { [key: string]: Json }
  | undefined;

/** Levels of lists and maps that are read inside an attribute; deeper ones become null. */
export const VALUE_DEPTH_MAX = 64;

const INTEGER = /^-?\d+$/;
const SAFE_INTEGER_CHARS = 15;

/** Reads an AnyValue and strips its strings. */
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

/** int64: a JSON number, or decimal text read exactly; other text stays text. */
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

/** The value as JSON. */
export function jsonOf(value: AttributeValue): Json {
  if (value === undefined) return null;
  return typeof value === 'bigint' ? jsonFromBigint(value) : value;
}

/** A value as a label: text, or a number or boolean as text. Undefined for empty text, lists and maps. */
export function labelOf(value: AttributeValue): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : undefined;
  if (typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  return undefined;
}

/** The object or list in a JSON text; undefined for any other text. */
export function parseJsonText(text: string): Json[] | { [key: string]: Json } | undefined {
  const first = text.trimStart()[0];
  if (first !== '{' && first !== '[') return undefined;
  try {
    return JSON.parse(text) as Json[] | { [key: string]: Json };
  } catch {
    return undefined;
  }
}

/** A map, given as such or as JSON text; undefined for any other value. */
export function mapOf(value: AttributeValue | Json): { [key: string]: Json } | undefined {
  const read = typeof value === 'string' ? parseJsonText(value) : value;
  return typeof read === 'object' && read !== null && !Array.isArray(read)
    ? (read as { [key: string]: Json })
    : undefined;
}

/**
 * Keeps tab, line feed, carriage return and printable ASCII in strings and keys. The later of two equal keys
 * counts.
 */

const FOREIGN = /[^\t\n\r\x20-\x7e]/;
const FOREIGN_ALL = /[^\t\n\r\x20-\x7e]/g;

/** Maximum nesting of a value; requests deeper than 64 are refused before this. */
const DEPTH_MAX = 128;

/** The text without its foreign characters; the same string when it has none. */
export function stripText(text: string): string {
  return FOREIGN.test(text) ? text.replace(FOREIGN_ALL, '') : text;
}

/** The value with all strings and keys stripped; a bigint becomes a number or text. @throws DomainError json_too_deep. */
export function stripJson(value: unknown): Json {
  return strip(value, 0) as Json;
}

function strip(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case 'string':
      return stripText(value);
    case 'number':
    case 'boolean':
      return value;
    case 'bigint':
      return jsonFromBigint(value);
    case 'object':
      if (value === null) return null;
      if (depth > DEPTH_MAX)
        throw new DomainError('json_too_deep', `A value nests deeper than ${DEPTH_MAX} levels.`);
      return Array.isArray(value)
        ? stripArray(value, depth)
        : stripObject(value as Record<string, unknown>, depth);
    default:
      return null;
  }
}

function stripArray(items: unknown[], depth: number): unknown[] {
  let copy: unknown[] | undefined;
  for (let index = 0; index < items.length; index += 1) {
    const item = items[index];
    const clean = strip(item, depth + 1);
    if (copy === undefined && !Object.is(clean, item)) copy = items.slice(0, index);
    copy?.push(clean);
  }
  return copy ?? items;
}

function stripObject(object: Record<string, unknown>, depth: number): Record<string, unknown> {
  const keys = Object.keys(object);
  const values: unknown[] = [];
  let changed = false;
  for (const key of keys) {
    const value = object[key];
    const clean = strip(value, depth + 1);
    values.push(clean);
    if (!Object.is(clean, value) || FOREIGN.test(key)) changed = true;
  }
  if (!changed) return object;
  const copy: Record<string, unknown> = {};
  for (let index = 0; index < keys.length; index += 1)
    setOwn(copy, stripText(keys[index] as string), values[index]);
  return copy;
}

/** Defines a key as a data property, since an assignment to `__proto__` would set the prototype. */
export function setOwn<T>(target: Record<string, T>, key: string, value: T): void {
  if (key === '__proto__') {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    target[key] = value;
  }
}

/** A 64-bit integer for JSON: a number if that is exact, else its decimal text. */
export function jsonFromBigint(value: bigint): number | string {
  return value >= -9_007_199_254_740_991n && value <= 9_007_199_254_740_991n
    ? Number(value)
    : value.toString();
}

/** The stored payload of an item beside its fields: at most 256 attributes, at most 256 KB. */

/** Maximum stored events of a span, with their attributes. */
const SPAN_EVENTS_MAX = 128;

/** Unread attributes (names and values alternating) and the span's events; null: there are none. */
export function payloadOfSpan(unread: readonly AttributeValue[], events: unknown): Json | null {
  const keptEvents = readEvents(events);
  if (unread.length === 0 && keptEvents.length === 0) return null;
  const payload: { [key: string]: Json } = {};
  const end = Math.min(unread.length, PAYLOAD_ATTRIBUTES_MAX * 2);
  for (let index = 0; index < end; index += 2)
    setOwn(payload, unread[index] as string, jsonOf(unread[index + 1]));
  if (keptEvents.length > 0) payload._events = keptEvents;
  return withinLimit(payload);
}

function readEvents(events: unknown): Json[] {
  if (!Array.isArray(events)) return [];
  const kept: Json[] = [];
  for (const event of events.slice(0, SPAN_EVENTS_MAX) as ({
    name?: unknown;
    attributes?: unknown;
  } | null)[]) {
    if (typeof event !== 'object' || event === null) continue;
    const attributes: { [key: string]: Json } = {};
    const pairs = Array.isArray(event.attributes) ? event.attributes.slice(0, PAYLOAD_ATTRIBUTES_MAX) : [];
    for (const pair of pairs as ({ key?: unknown; value?: unknown } | null)[]) {
      if (typeof pair?.key === 'string')
        setOwn(attributes, stripText(pair.key), jsonOf(readAnyValue(pair.value)));
    }
    kept.push({ name: typeof event.name === 'string' ? stripText(event.name) : '', attributes });
  }
  return kept;
}

/** The value, or a note of its size if its JSON text exceeds the limit; never a part of the value. */
export function withinLimit(value: Json, bytesMax = PAYLOAD_BYTES_MAX): Json {
  // A stripped character takes at most two bytes when escaped, so this cheap bound often avoids writing the JSON.
  if (jsonCharsBound(value, bytesMax) <= bytesMax) return value;
  const bytes = JSON.stringify(value).length;
  return bytes <= bytesMax ? value : { _truncated: true, bytes };
}

const NUMBER_CHARS = 25;

/** An upper bound of the length of the value's JSON text; a longer text returns some number above `enough`. */
export function jsonCharsBound(value: Json, enough: number): number {
  if (typeof value === 'string') return value.length * 2 + 2;
  if (typeof value !== 'object' || value === null) return NUMBER_CHARS;
  let bound = 2;
  if (Array.isArray(value)) {
    for (const item of value) {
      bound += jsonCharsBound(item, enough - bound) + 1;
      if (bound > enough) break;
    }
    return bound;
  }
  for (const key in value) {
    bound += key.length * 2 + 4 + jsonCharsBound(value[key] as Json, enough - bound);
    if (bound > enough) break;
  }
  return bound;
}
