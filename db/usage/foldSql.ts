import { bookedOnSql, usageLogSql } from './usageLog.js';

/** What the statements of a fold have in common. $1 is the organization, $2 and $3 bound the transactions. */

/** Sets of an `on conflict`: what a fold brings is added to what is there. */
export const add = (table: string, names: readonly string[]) =>
  names.map((name) => `${name} = ${table}.${name} + excluded.${name}`).join(', ');

export const mergeSeen = (table: string) =>
  `first_seen = least(${table}.first_seen, excluded.first_seen), last_seen = greatest(${table}.last_seen, excluded.last_seen)`;

/** When the first and the last call was, as far as any came. */
export const SEEN = `
  coalesce(min(timestamp) filter (where sign > 0), min(timestamp)), coalesce(max(timestamp) filter (where sign > 0), max(timestamp))`;

// $4 is the end of the last closed month. What came after its month was closed goes to tables of its own, so that
// totals of a closed month are never added to.
const LOG = `select *, ${bookedOnSql('$4')} as booked_on from (${usageLogSql('$2', '$3')}) entries where status <> 'blocked'`;
export const OWN_TIME = `select * from (${LOG}) booked where booked_on is null`;
export const LATE = `select * from (${LOG} and timestamp < $4::timestamptz) booked where booked_on is not null`;
