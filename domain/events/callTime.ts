/**
 * The times of a call: nanoseconds as OTLP sends them (text, a JSON number, or exact from protobuf) or ISO 8601.
 */
import { isoFromMicros, parseInstant } from '../period.js';
import { checkTime, durationBetween, ItemFault, shown, type TimeWindow } from './itemFault.js';

export interface CallTime {
  startMicros: bigint;
  endMicros: bigint;
  durationMs: number;
  /** The start as it enters the hash. */
  hashTimestamp: string;
}

const NANOS_TEXT = /^\d{1,20}$/;
const NANOS_PER_MICRO = 1_000n;

/**
 * Start and end of a span. An end that is absent or 0 is not known: the call then ends where it started.
 * @throws ItemFault missing_field, invalid_number, timestamp_out_of_range.
 */
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
    // A JSON number has lost its last digits before it comes here; its decimal text is still the same on a repeat.
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

/** UTC with exactly six decimals: how a time enters the hash where no nanoseconds were sent. */
export function hashTimestampOf(micros: bigint): string {
  const iso = isoFromMicros(micros);
  return iso.length === 20 ? `${iso.slice(0, 19)}.000000Z` : iso;
}
