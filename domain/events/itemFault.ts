import { PICO_PER_USD, type Pico, picoFromDecimal, picoFromNumber } from '../money.js';
import { isoFromMicros, parseInstant } from '../period.js';
import type { Provider } from '../providers.js';
import { hostOf } from './biller.js';
import {
  COST_USD_MAX,
  DURATION_MS_MAX,
  ID_CHARS_MAX,
  type Json,
  LABEL_CHARS_MAX,
  type RejectionReason,
  TOKENS_MAX,
} from './event.js';
import { stripText } from './jsonValues.js';

/** The fault of one item: the item is rejected with a reason, the others are stored. */

const SHOWN_CHARS = 64;
const INTEGER_TEXT = /^[+-]?\d{1,40}$/;
const DECIMAL_TEXT = /^[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:e[+-]?\d{1,4})?$/i;
const MICROS_PER_MILLI = 1_000n;
/** Maximum lead of a client's clock: 24 hours. */
const AHEAD_MICROS = 86_400_000_000n;

export class ItemFault extends Error {
  readonly reason: RejectionReason;

  constructor(reason: RejectionReason, message: string) {
    super(message);
    this.name = 'ItemFault';
    this.reason = reason;
  }
}

/** A value for a message: stripped and cut. */
export function shown(value: unknown): string {
  const text =
    typeof value === 'object' && value !== null
      ? Array.isArray(value)
        ? 'a list'
        : 'an object'
      : String(value);
  const clean = stripText(text);
  return clean.length > SHOWN_CHARS ? `${clean.slice(0, SHOWN_CHARS)}…` : clean;
}

/** A whole number of tokens, 0…10^12, or its text; any other value is a fault (P-16 in docs/reliability.md). */
export function readTokens(value: unknown, field: string): number {
  const number = wholeNumberOf(value);
  if (number === undefined || number < 0 || number > TOKENS_MAX || Object.is(number, -0)) {
    throw new ItemFault(
      'invalid_number',
      `${field}: ${shown(value)} is not a whole number from 0 to ${TOKENS_MAX}`,
    );
  }
  return number;
}

function wholeNumberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isInteger(value) ? value : undefined;
  if (typeof value === 'bigint')
    return value <= BigInt(TOKENS_MAX) && value >= 0n ? Number(value) : undefined;
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  if (!INTEGER_TEXT.test(text)) return undefined;
  // A negative zero stays negative and is refused like every negative number.
  return text.length <= 15 ? Number(text) : wholeNumberOf(BigInt(text.replace(/^\+/, '')));
}

/** Reads dollars, 0…10^6, from a number or decimal text → pico-dollars. */
export function readCost(value: unknown, field: string): Pico {
  const pico =
    typeof value === 'number'
      ? picoFromNumber(value)
      : typeof value === 'bigint'
        ? value * PICO_PER_USD
        : typeof value === 'string'
          ? picoFromDecimal(value)
          : undefined;
  if (pico === undefined || pico < 0n || pico > BigInt(COST_USD_MAX) * PICO_PER_USD || Object.is(value, -0)) {
    throw new ItemFault(
      'invalid_number',
      `${field}: ${shown(value)} is not an amount from 0 to ${COST_USD_MAX} USD`,
    );
  }
  return pico;
}

/** Reads milliseconds, 0…10^9, rounded half up to whole milliseconds. */
export function readDurationMs(value: unknown, field: string): number {
  const number = typeof value === 'string' && DECIMAL_TEXT.test(value.trim()) ? Number(value) : value;
  if (
    typeof number !== 'number' ||
    !(number >= 0) ||
    Object.is(number, -0) ||
    Math.round(number) > DURATION_MS_MAX
  ) {
    throw new ItemFault(
      'invalid_number',
      `${field}: ${shown(value)} is not a duration from 0 to ${DURATION_MS_MAX} ms`,
    );
  }
  return Math.round(number);
}

/**
 * The duration between two times in milliseconds, rounded half up. An end before the start, or too late, is a
 * fault.
 */
export function durationBetween(startNanos: bigint, endNanos: bigint): number {
  if (endNanos < startNanos) throw new ItemFault('invalid_number', 'the end lies before the start');
  const millis = (endNanos - startNanos + 500_000n) / 1_000_000n;
  if (millis > BigInt(DURATION_MS_MAX)) {
    throw new ItemFault(
      'invalid_number',
      `the end lies ${millis} ms after the start; at most ${DURATION_MS_MAX} ms are taken`,
    );
  }
  return Number(millis);
}

/** The range of accepted call times. */
export interface TimeWindow {
  nowMicros: bigint;
  oldestMicros: bigint;
}

/** Refuses a time before the oldest accepted day or more than 24 hours ahead, so that a wrong clock is noticed. */
export function checkTime(micros: bigint, window: TimeWindow): void {
  if (micros < window.oldestMicros || micros > window.nowMicros + AHEAD_MICROS) {
    const millis = micros / MICROS_PER_MILLI;
    const shownTime =
      millis > 8_640_000_000_000_000n || millis < 0n
        ? `${micros} µs`
        : new Date(Number(millis)).toISOString();
    throw new ItemFault(
      'timestamp_out_of_range',
      `${shownTime} lies before the oldest day kept or more than 24 hours ahead`,
    );
  }
}

/** A text of at most `charsMax`. A longer one is never cut; the item is rejected. */
export function checkLength(text: string, charsMax: number, field: string): string {
  if (text.length > charsMax) {
    throw new ItemFault(
      'string_too_long',
      `${field} has ${text.length} characters; at most ${charsMax} are taken`,
    );
  }
  return text;
}

/** Times of a call, from OTLP nanoseconds (text, number or bigint) or ISO 8601. */

export interface CallTime {
  startMicros: bigint;
  endMicros: bigint;
  durationMs: number;
  /** The start as the hash contains it. */
  hashTimestamp: string;
}

const NANOS_TEXT = /^\d{1,20}$/;
const NANOS_PER_MICRO = 1_000n;

/** A span without an end ends at its start. @throws ItemFault missing_field, invalid_number, timestamp_out_of_range. */
export function timeOfSpan(start: unknown, end: unknown, window: TimeWindow): CallTime {
  const startNanos = readNanos(start, 'startTimeUnixNano');
  if (startNanos === undefined) throw new ItemFault('missing_field', 'startTimeUnixNano is missing');
  const startMicros = startNanos / NANOS_PER_MICRO;
  checkTime(startMicros, window);
  const endNanos = readNanos(end, 'endTimeUnixNano') || startNanos;
  return {
    startMicros,
    endMicros: endNanos / NANOS_PER_MICRO,
    durationMs: durationBetween(startNanos, endNanos),
    // A JSON number has already lost its last digits here, but a repeat has the same decimal text.
    hashTimestamp: typeof start === 'string' ? start : startNanos.toString(),
  };
}

function readNanos(value: unknown, field: string): bigint | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'bigint' && value >= 0n) return value;
  if (typeof value === 'string' && NANOS_TEXT.test(value)) return BigInt(value);
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return BigInt(value);
  throw new ItemFault('invalid_number', `${field}: ${shown(value)} is not a count of nanoseconds`);
}

/** Reads ISO 8601 to microseconds; a time without an offset is UTC. */
export function readInstant(value: unknown, field: string): bigint {
  if (value === undefined || value === null || value === '')
    throw new ItemFault('missing_field', `${field} is missing`);
  const instant = typeof value === 'string' ? parseInstant(value) : undefined;
  if (instant === undefined)
    throw new ItemFault('invalid_field', `${field}: ${shown(value)} is not an ISO 8601 time`);
  return instant.micros;
}

/** UTC with six decimals: the time in the hash if no nanoseconds were sent. */
export function hashTimestampOf(micros: bigint): string {
  const iso = isoFromMicros(micros);
  return iso.length === 20 ? `${iso.slice(0, 19)}.000000Z` : iso;
}

/** External inputs of mapping: the clock, the oldest accepted day, and the provider that the price book infers. */
export interface MapContext extends TimeWindow {
  /** Now, microseconds since 1970-01-01Z. */
  nowMicros: bigint;
  /** Earlier calls are refused: 2020-01-01, or the limit of EVENT_RETENTION_DAYS. */
  oldestMicros: bigint;
  /** The one provider that sells this model first-hand; undefined: none or several do. */
  inferProvider(model: string): Provider | undefined;
}

export type JsonObject = { [key: string]: Json };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A field of an object; undefined for null and for inherited names such as `constructor`. */
export function fieldOf(object: JsonObject | undefined, name: string): Json | undefined {
  return object !== undefined && Object.hasOwn(object, name) ? (object[name] ?? undefined) : undefined;
}

/** A scalar field as text; empty text counts as absent. @throws ItemFault invalid_field for a list or an object. */
export function textOf(object: JsonObject | undefined, name: string): string | undefined {
  const value = fieldOf(object, name);
  if (value === undefined || value === '') return undefined;
  if (typeof value === 'object') throw new ItemFault('invalid_field', `${name} is not a text`);
  return String(value);
}

/** The field as text, from the first object that has it. */
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

/** A boolean field; absent: false. @throws ItemFault invalid_field for any value but true, false, 1 and 0. */
export function flagOf(object: JsonObject | undefined, name: string): boolean {
  const value = fieldOf(object, name);
  if (value === undefined || value === false || value === 0 || value === 'false') return false;
  if (value === true || value === 1 || value === 'true') return true;
  throw new ItemFault('invalid_field', `${name}: ${shown(value)} is neither true nor false`);
}

export function hostsOf(object: JsonObject | undefined): string[] {
  return ['server_address', 'base_url', 'api_base', 'url']
    .map((name) => fieldOf(object, name))
    .filter((value): value is string => typeof value === 'string' && hostOf(value) !== undefined);
}

/** The entries that were not read as fields; null: none. */
export function restOf(object: JsonObject | undefined, read: ReadonlySet<string>): JsonObject | null {
  if (object === undefined) return null;
  const rest = Object.fromEntries(Object.entries(object).filter(([name]) => !read.has(name)));
  return Object.keys(rest).length === 0 ? null : rest;
}
