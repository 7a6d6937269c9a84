/**
 * Character stripping: only tab, line feed, carriage return and printable ASCII
 * stay, in every string and in every object key. Two keys that become equal: the later one holds.
 */
import { DomainError } from '../errors.js';
import type { Json } from './event.js';

const FOREIGN = /[^\t\n\r\x20-\x7e]/;
const FOREIGN_ALL = /[^\t\n\r\x20-\x7e]/g;

/** Levels that a value may nest; requests are refused above 64 before they are decoded. */
const DEPTH_MAX = 128;

/** The text without its foreign characters; the same string when it has none. */
export function stripText(text: string): string {
  return FOREIGN.test(text) ? text.replace(FOREIGN_ALL, '') : text;
}

/**
 * A decoded JSON value with every string and key stripped; the same object when nothing had to go. Numbers stay
 * as they are, a bigint becomes a number where it fits and decimal text where it does not.
 * @throws DomainError json_too_deep beyond 128 levels.
 */
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

/** Sets a key as plain data whatever its name: `__proto__` by assignment would set the prototype instead. */
export function setOwn<T>(target: Record<string, T>, key: string, value: T): void {
  if (key === '__proto__') {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    target[key] = value;
  }
}

/** A 64-bit integer as JSON can hold it: a number while that is exact, else its decimal text. */
export function jsonFromBigint(value: bigint): number | string {
  return value >= -9_007_199_254_740_991n && value <= 9_007_199_254_740_991n
    ? Number(value)
    : value.toString();
}
