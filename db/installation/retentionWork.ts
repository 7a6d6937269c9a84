import type { Removed } from '../../domain/installation/retention.js';
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
  table: 'events' | 'event_payloads' | 'event_adjustments' | 'event_price_changes' | 'alerts';
  column: 'timestamp' | 'event_id' | 'created_at';
  /** SQL type of the column. */
  type: 'timestamptz' | 'uuid';
  /** Rows before this value are looked at. */
  before: string;
}

/** The rows of an organization that are to go, and how a slice of them is removed. */
export interface Removal {
  rows: Rows;
  /** Rows of a slice at most, but for rows that are alike in the column. */
  sliceRows: number;
  why: string;
  /** Removes a slice, given by `values` for `sliceCondition`; returns how many rows went. */
  remove(system: SystemDb, values: SliceValues): Promise<number>;
}

/** Organization, the value before which everything goes, the last value of the slice before, the last of this one. */
export type SliceValues = [string, string, string | null, string | null];

/** Removes rows slice by slice, each in a transaction of its own, and reports each. Returns how many went. */
export async function removeSlices(
  { database, report }: Pick<RetentionWork, 'database' | 'report'>,
  orgId: string,
  { rows: { table, column, type, before }, sliceRows, why, remove }: Removal,
): Promise<number> {
  let total = 0;
  for (let after: string | null = null; ; ) {
    const { upTo, removed } = await unscoped(database, why, async (system) => {
      const [cut] = await system.rows<{ at: string }>(
        `select ${column}::text as at from ${table}
         where org_id = $1 and ${column} < $2::${type} and ($3::${type} is null or ${column} > $3::${type})
         order by ${column} offset ${sliceRows - 1} limit 1`,
        [orgId, before, after],
      );
      const upTo: string | null = cut?.at ?? null;
      return { upTo, removed: await remove(system, [orgId, before, after, upTo]) };
    });
    total += removed;
    if (removed > 0) await report({ rows: removed, partitions: [] });
    if (upTo === null) return total;
    after = upTo;
  }
}

/** The condition of a slice, over parameters from $2 on: before, after, up to. */
export function sliceCondition({ column, type }: Pick<Rows, 'column' | 'type'>): string {
  return `org_id = $1 and ${column} < $2::${type} and ($3::${type} is null or ${column} > $3::${type}) and ($4::${type} is null or ${column} <= $4::${type})`;
}
