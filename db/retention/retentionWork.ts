import type { Removed } from '../../domain/retention.js';
import type { Database } from '../client.js';
import { type SystemDb, unscoped } from '../orgDb.js';

/** What a step of the retention works with. */
export interface RetentionWork {
  database: Database;
  /** A connection of the tables' owner, without a pooler between. */
  directUrl: string;
  nowMicros: bigint;
  /** Told after each piece of work. Throws to end the step there. */
  report(removed: Removed): Promise<void>;
}

/** Every organization there is, in no order that matters. */
export async function listOrganizationIds(database: Database): Promise<string[]> {
  const rows = await unscoped(database, 'what is too old is removed whosever it is', (system) =>
    system.rows<{ id: string }>('select id from organizations order by id'),
  );
  return rows.map(({ id }) => id);
}

/** Rows of one organization in a table, in the order of a column that an index has behind org_id. */
export interface Rows {
  table: 'events' | 'event_payloads' | 'event_adjustments' | 'event_price_changes';
  column: 'timestamp' | 'event_id';
  /** SQL type of the column. */
  type: 'timestamptz' | 'uuid';
  /** Rows before this value are looked at. */
  before: string;
}

/**
 * Goes through the rows before a value in slices of so many, each in a transaction of its own in which `remove` is
 * given the slice's bounds: the last value of the slice before (null: from the beginning), and its own last value
 * (null: all that is left). Stops behind the last.
 */
export async function inSlices(
  database: Database,
  why: string,
  orgId: string,
  { table, column, type, before }: Rows,
  sliceRows: number,
  remove: (system: SystemDb, after: string | null, upTo: string | null) => Promise<void>,
): Promise<void> {
  for (let after: string | null = null; ; ) {
    const upTo: string | null = await unscoped(database, why, async (system) => {
      const [cut] = await system.rows<{ at: string }>(
        `select ${column}::text as at from ${table}
         where org_id = $1 and ${column} < $2::${type}${after === null ? '' : ` and ${column} > $3::${type}`}
         order by ${column} offset ${sliceRows - 1} limit 1`,
        after === null ? [orgId, before] : [orgId, before, after],
      );
      await remove(system, after, cut?.at ?? null);
      return cut?.at ?? null;
    });
    if (upTo === null) return;
    after = upTo;
  }
}

/** The condition of a slice, over parameters from $2 on: before, after, up to. */
export function sliceCondition({ column, type }: Pick<Rows, 'column' | 'type'>): string {
  return `org_id = $1 and ${column} < $2::${type} and ($3::${type} is null or ${column} > $3::${type}) and ($4::${type} is null or ${column} <= $4::${type})`;
}
