import type { Removed, RetentionStep } from '../../domain/installation/retention.js';
import type { Database } from '../client.js';
import { type SystemDb, unscoped } from '../orgDb.js';
import { textArray } from '../pgArray.js';

/** Days for which past runs are kept. */
const RUNS_KEPT_DAYS = 400;
const WHY = 'the retention concerns all organizations';
const MESSAGE_CHARS_MAX = 1_000;

interface StepRef {
  runId: string;
  step: RetentionStep;
}

export async function startRetentionStep(database: Database, { runId, step }: StepRef): Promise<void> {
  await unscoped(database, WHY, (system) =>
    system.run('insert into retention_runs (id, step) values ($1, $2) on conflict (id, step) do nothing', [
      runId,
      step,
    ]),
  );
}

export async function noteRemoved(
  database: Database,
  { runId, step }: StepRef,
  { rows, partitions }: Removed,
): Promise<void> {
  await unscoped(database, WHY, (system) =>
    system.run(
      `update retention_runs set removed_rows = removed_rows + $3, dropped_partitions = dropped_partitions || $4::text[]
       where id = $1 and step = $2`,
      [runId, step, rows, textArray(partitions)],
    ),
  );
}

export async function endRetentionStep(
  database: Database,
  { runId, step }: StepRef,
  failure: string | null,
): Promise<void> {
  await unscoped(database, WHY, (system) =>
    system.run(
      `insert into retention_runs (id, step, finished_at, error_message) values ($1, $2, now(), $3)
       on conflict (id, step) do update set finished_at = now(), error_message = excluded.error_message`,
      [runId, step, failure?.slice(0, MESSAGE_CHARS_MAX) ?? null],
    ),
  );
}

export async function pruneRetentionRuns(database: Database): Promise<number> {
  return unscoped(database, WHY, (system) =>
    system.run(
      `delete from retention_runs where started_at < now() - make_interval(days => ${RUNS_KEPT_DAYS})`,
    ),
  );
}

export interface RetentionState {
  step: RetentionStep;
  lastSuccessMicros: bigint | null;
  /** Failed runs since the last success. */
  failures: number;
  /** Of the newest run. */
  removedRows: number;
  droppedPartitions: string[];
  errorMessage: string | null;
}

/** SQL of the state of each step that ever ran; works for every role that may read the table. */
const RETENTION_STATE = `
select newest.step, good.finished_at as "lastSuccessMicros", newest.removed_rows as "removedRows",
  newest.dropped_partitions as "droppedPartitions", newest.error_message as "errorMessage",
  (select count(*) from retention_runs r where r.step = newest.step and r.error_message is not null
    and (good.started_at is null or r.started_at > good.started_at)) as failures
from (select distinct on (step) * from retention_runs order by step, started_at desc) newest
left join lateral (
  select started_at, finished_at from retention_runs g
  where g.step = newest.step and g.finished_at is not null and g.error_message is null
  order by started_at desc limit 1) good on true
order by newest.step`;

export async function listRetentionState(database: Database): Promise<RetentionState[]> {
  return unscoped(database, WHY, (system) => system.rows<RetentionState>(RETENTION_STATE));
}

/** Inputs of a retention step. */
export interface RetentionWork {
  database: Database;
  /** Connection string of the tables' owner, without a pooler. */
  directUrl: string;
  nowMicros: bigint;
  /** Called after each part of the work. Throws to end the step. */
  report(removed: Removed): Promise<void>;
}

/** Every organization, in no particular order. */
export async function listOrganizationIds(database: Database): Promise<string[]> {
  const rows = await unscoped(database, 'what is too old is removed whosever it is', (system) =>
    system.rows<{ id: string }>('select id from organizations order by id'),
  );
  return rows.map(({ id }) => id);
}

/** Rows of one organization in a table, in the order of a column that follows org_id in an index. */
export interface Rows {
  table: 'events' | 'event_payloads' | 'event_adjustments' | 'event_price_changes' | 'alerts';
  column: 'timestamp' | 'event_id' | 'created_at';
  type: 'timestamptz' | 'uuid';
  before: string;
}

/** The rows of an organization to delete, and how a slice of them is deleted. */
export interface Removal {
  rows: Rows;
  /** Most rows of a slice, except rows with equal values of the column. */
  sliceRows: number;
  why: string;
  /** Deletes a slice, whose `values` are for `sliceCondition`; returns the number of rows. */
  remove(system: SystemDb, values: SliceValues): Promise<number>;
}

/**
 * Organization, the value before which rows are deleted, the last value of the previous slice, the last of this one.
 */
export type SliceValues = [string, string, string | null, string | null];

/** Deletes rows slice by slice, each in one transaction, and reports each. Returns their number. */
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

/** SQL condition of a slice, over parameters from $2 on: before, after, up to. */
export function sliceCondition({ column, type }: Pick<Rows, 'column' | 'type'>): string {
  return `org_id = $1 and ${column} < $2::${type} and ($3::${type} is null or ${column} > $3::${type}) and ($4::${type} is null or ${column} <= $4::${type})`;
}
