import { isoFromMicros } from '../../domain/period.js';
import { plainArray, textArray } from '../pgArray.js';

/**
 * Events of an organization by their times and ids: parameters $1 to $5 of a statement, and its condition on them. Each
 * time is looked up once, since many events may have it, and ids are compared by a hash table.
 *
 * A join would let Postgres choose to read all events between the first and the last time instead. It does where its
 * statistics are older than these events, because it expects none there: that is, wherever calls are recent
 * (docs/decisions/0042).
 */
export interface EventPlace {
  id: string;
  timestamp: string;
}

export const placeAt = (id: string, micros: bigint): EventPlace => ({ id, timestamp: isoFromMicros(micros) });

// The bounds select the partitions, which Postgres cannot derive from a list.
export const AT_PLACES = `org_id = $1 and timestamp = any($2::timestamptz[])
  and timestamp between $4::timestamptz and $5::timestamptz and (id in (select unnest($3::uuid[]))) is true`;

/** The first parameter behind those of the places. */
export const AFTER_PLACES = 6;

/** Places in the order of parameter $3, in which the arrays of `valueAt` must be too. */
export function inOrderOfIds<T extends { id: string }>(places: readonly T[]): T[] {
  return [...places].sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** @param places at least one, in the order of their ids */
export function placesOf(
  orgId: string,
  places: readonly EventPlace[],
): [string, string, string, string, string] {
  const times = [...new Set(places.map(({ timestamp }) => timestamp))];
  const sorted = times.map(withMicros).sort();
  return [
    orgId,
    textArray(times),
    plainArray(places.map(({ id }) => id)),
    sorted[0] as string,
    sorted.at(-1) as string,
  ];
}

/** Adds the fraction to a whole second, which as text would sort after the times within it. */
function withMicros(time: string): string {
  return time.includes('.') ? time : time.replace('Z', '.000000Z');
}

/** The element of an array parameter that belongs to the row's event, found by a binary search of the ids. */
export function valueAt(parameter: number, type: string): string {
  return `($${parameter}::${type}[])[width_bucket(id, $3::uuid[])]`;
}
