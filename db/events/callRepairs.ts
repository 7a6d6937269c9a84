import { decimalFromPico, type Pico } from '../../domain/money.js';
import type { Database } from '../client.js';
import { type OrgDb, unscoped } from '../orgDb.js';
import { textArray } from '../pgArray.js';
import { timeOfId } from './events.js';
import { type EventRow, fromEventRow, SELECT_EVENT, type StoredEvent } from './storedEvents.js';

/** Stages of the search for calls that an earlier version counted more than once (docs/decisions/0001). */
export const REPAIR_STAGES = ['search', 'merge', 'done'] as const;
export type RepairStage = (typeof REPAIR_STAGES)[number];

/** The changes of a repair. */
export interface CallRepair {
  /** Calls that were counted more than once. */
  calls: number;
  /** Their events that no longer count. */
  events: number;
  /** The cost for which those events counted. */
  costPico: Pico;
}

/** The state of a repair for operators. */
export interface RepairState extends CallRepair {
  orgId: string;
  stage: RepairStage;
  startedMicros: bigint;
  finishedMicros: bigint | null;
}

interface RepairRow {
  stage: RepairStage;
  calls: number;
  events: number;
  cost_usd: Pico;
  started_at: bigint;
  finished_at: bigint | null;
}

function repairOf({ calls, events, cost_usd: costPico }: RepairRow): CallRepair {
  return { calls, events, costPico };
}

/** Organizations with an unfinished repair. */
export async function listUnrepairedOrganizations(database: Database): Promise<string[]> {
  const rows = await unscoped(database, 'upkeep looks for organizations to repair', (system) =>
    system.rows<{ org_id: string }>(
      'select org_id from call_repairs where finished_at is null order by org_id',
    ),
  );
  return rows.map((row) => row.org_id);
}

/** The repairs of all organizations. */
export async function listCallRepairs(database: Database): Promise<RepairState[]> {
  const rows = await unscoped(database, 'the operator sees what was repaired', (system) =>
    system.rows<RepairRow & { org_id: string }>('select * from call_repairs order by org_id'),
  );
  return rows.map((row) => ({
    orgId: row.org_id,
    stage: row.stage,
    startedMicros: row.started_at,
    finishedMicros: row.finished_at,
    ...repairOf(row),
  }));
}

/** Locks the open repair of the organization; undefined: none is open, or another process works on it. */
export async function takeRepair(
  inside: OrgDb,
): Promise<{ stage: 'search' | 'merge'; lookedUntil: string | null } | undefined> {
  const [repair] = await inside.rows<{ stage: 'search' | 'merge'; lookedUntil: string | null }>(
    `select stage, looked_until::text as "lookedUntil" from call_repairs
     where org_id = $1 and finished_at is null for update skip locked`,
    [inside.orgId],
  );
  return repair;
}

/** Records the progress of a repair's stage. */
export async function noteRepairedUntil(inside: OrgDb, until: string): Promise<void> {
  await inside.run('update call_repairs set looked_until = $2::timestamptz where org_id = $1', [
    inside.orgId,
    until,
  ]);
}

/** Begins the second stage of a repair; false: the first stage noted no request. */
export async function startMerging(inside: OrgDb): Promise<boolean> {
  const changed = await inside.run(
    `update call_repairs set stage = 'merge', looked_until = null
     where org_id = $1 and exists (select from call_repair_requests where org_id = $1)`,
    [inside.orgId],
  );
  return changed > 0;
}

/** Events of a time: after `from`, up to `until`; null: unbounded. */
export interface EventSlice {
  from: string | null;
  until: string | null;
}

const OF_SLICE = `e.org_id = $1 and ($2::timestamptz is null or e.timestamp > $2::timestamptz)
  and ($3::timestamptz is null or e.timestamp <= $3::timestamptz)`;

/** The time of the last event of the next slice; null: the slice is the last one. */
export async function findSliceEnd(
  orgDb: OrgDb,
  from: string | null,
  events: number,
): Promise<string | null> {
  const [cut] = await orgDb.rows<{ at: string }>(
    `select timestamp::text as at from events
     where org_id = $1 and ($2::timestamptz is null or timestamp > $2::timestamptz)
     order by timestamp offset ${events - 1} limit 1`,
    [orgDb.orgId, from],
  );
  return cut?.at ?? null;
}

/** Notes requests with an event that is superseded by a superseded event of the same request. */
export async function noteBrokenRequests(orgDb: OrgDb, { from, until }: EventSlice): Promise<void> {
  await orgDb.run(
    `insert into call_repair_requests (org_id, request_id)
     select distinct $1::uuid, e.request_id from events e cross join lateral (
       select request_id, superseded_by from events
       where org_id = $1 and timestamp = ${timeOfId('e.superseded_by')} and id = e.superseded_by limit 1) w
     where ${OF_SLICE} and e.superseded_by is not null and w.superseded_by is not null and w.request_id = e.request_id
     on conflict do nothing`,
    [orgDb.orgId, from, until],
  );
}

/** Counting events whose requests are noted. */
export async function listEventsToRepair(orgDb: OrgDb, { from, until }: EventSlice): Promise<StoredEvent[]> {
  const rows = await orgDb.rows<EventRow>(
    `select ${SELECT_EVENT} from events e join call_repair_requests r on r.org_id = e.org_id and r.request_id = e.request_id
     where ${OF_SLICE} and e.superseded_by is null`,
    [orgDb.orgId, from, until],
  );
  return rows.map((row) => fromEventRow(row, false));
}

/** Adds the changes of a step to the repair's sums. */
export async function recordRepaired(
  orgDb: OrgDb,
  {
    events,
    costPico,
    requestIds,
  }: { events: number; costPico: Pico; requestIds: readonly (string | null)[] },
): Promise<void> {
  await orgDb.run(
    'update call_repairs set events = events + $2, cost_usd = cost_usd + $3::numeric where org_id = $1',
    [orgDb.orgId, events, decimalFromPico(costPico)],
  );
  await orgDb.run(
    'update call_repair_requests set is_repaired = true where org_id = $1 and request_id = any($2::text[])',
    [orgDb.orgId, textArray(requestIds)],
  );
}

/** Ends the repair of the organization. */
export async function finishRepair(orgDb: OrgDb): Promise<CallRepair> {
  const [row] = await orgDb.rows<RepairRow>(
    `update call_repairs set stage = 'done', finished_at = now(),
       calls = (select count(*) from call_repair_requests where org_id = $1 and is_repaired)
     where org_id = $1 returning *`,
    [orgDb.orgId],
  );
  await orgDb.run('delete from call_repair_requests where org_id = $1', [orgDb.orgId]);
  return repairOf(row as RepairRow);
}
