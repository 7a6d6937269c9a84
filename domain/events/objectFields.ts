/** Fields of an item that came as a JSON object: as labels, ids, flags, each judged with its name. */

import { hostOf } from './biller.js';
import { ID_CHARS_MAX, type Json, LABEL_CHARS_MAX } from './event.js';
import { checkLength, ItemFault, shown } from './itemFault.js';

export type JsonObject = { [key: string]: Json };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A field of an object; undefined for null, and for an inherited name such as `constructor`. */
export function fieldOf(object: JsonObject | undefined, name: string): Json | undefined {
  return object !== undefined && Object.hasOwn(object, name) ? (object[name] ?? undefined) : undefined;
}

/**
 * A field as text: a string, or a number or boolean written out. Empty text is absent.
 * @throws ItemFault invalid_field for a list or an object.
 */
export function textOf(object: JsonObject | undefined, name: string): string | undefined {
  const value = fieldOf(object, name);
  if (value === undefined || value === '') return undefined;
  if (typeof value === 'object') throw new ItemFault('invalid_field', `${name} is not a text`);
  return String(value);
}

/** The first of several places that has the field, as text. */
export function firstText(objects: readonly (JsonObject | undefined)[], name: string): string | undefined {
  for (const object of objects) {
    const text = textOf(object, name);
    if (text !== undefined) return text;
  }
  return undefined;
}

export function labelIn(text: string | undefined, name: string): string | null {
  return text === undefined ? null : checkLength(text, LABEL_CHARS_MAX, name);
}

export function idIn(text: string | undefined, name: string): string | null {
  return text === undefined ? null : checkLength(text, ID_CHARS_MAX, name);
}

/** A boolean field; absent is false. @throws ItemFault invalid_field for anything but true, false, 1 and 0. */
export function flagOf(object: JsonObject | undefined, name: string): boolean {
  const value = fieldOf(object, name);
  if (value === undefined || value === false || value === 0 || value === 'false') return false;
  if (value === true || value === 1 || value === 'true') return true;
  throw new ItemFault('invalid_field', `${name}: ${shown(value)} is neither true nor false`);
}

/** Addresses that an item names for its call. */
export function hostsOf(object: JsonObject | undefined): string[] {
  return ['server_address', 'base_url', 'api_base', 'url']
    .map((name) => fieldOf(object, name))
    .filter((value): value is string => typeof value === 'string' && hostOf(value) !== undefined);
}

/** The entries that no field was read from; null when none is left. */
export function restOf(object: JsonObject | undefined, read: ReadonlySet<string>): JsonObject | null {
  if (object === undefined) return null;
  const rest = Object.fromEntries(Object.entries(object).filter(([name]) => !read.has(name)));
  return Object.keys(rest).length === 0 ? null : rest;
}
