import type { Logger } from 'pino';
import { recordAudit } from '../../db/access/auditLog.js';
import type { Database } from '../../db/client.js';
import {
  type IdentifiedReport,
  identitiesOf,
  lockIdentities,
  pointIdentities,
} from '../../db/events/callIdentities.js';
import { lockLiveEvents } from '../../db/events/events.js';
import {
  type GroupedCall,
  identitiesToPoint,
  ReportGroups,
  storedReport,
  writeMergedCalls,
} from '../../db/events/mergeReports.js';
import { SettledCalls } from '../../db/events/settledAlerts.js';
import {
  callOfStored,
  type EventRow,
  fromEventRow,
  SELECT_EVENT,
  type StoredEvent,
} from '../../db/events/storedEvents.js';
import { timeOfId } from '../../db/events/supersededChains.js';
import { type OrgDb, unscoped } from '../../db/orgDb.js';
import { textArray } from '../../db/pgArray.js';
import { repeatOnConflict } from '../../db/repeatOnConflict.js';
import { inTurns } from '../../db/turns.js';
import type { CallRecord, SpanLink } from '../../domain/events/event.js';
import { isResponseId } from '../../domain/events/sdkEvents.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Prices } from '../pricing/priceBookHolder.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';
import { settleAlertsOfStored } from './traceSweep.js';

/**
 * Repairs what versions before 0038_one_event_a_call stored. They walked at most sixteen steps from a response id to the
 * event that counted for it; each report beyond that became a call of its own. What they left is a row of events that
 * supersede each other, and others with the same request that count all the same.
 */

/** Events that one transaction looks at, by stage: it holds the fold back as long as it lasts. */
const SLICE_EVENTS = { search: 20_000, merge: 5_000 };

/** Organizations whose repair has not ended. */
export async function listUnrepairedOrganizations(database: Database): Promise<string[]> {
  const rows = await unscoped(database, 'upkeep looks for organizations to repair', (system) =>
    system.rows<{ org_id: string }>(
      'select org_id from call_repairs where finished_at is null order by org_id',
    ),
  );
  return rows.map((row) => row.org_id);
}

/** A repair as an operator sees it. */
export interface RepairState extends CallRepair {
  orgId: string;
  stage: RepairStage;
  startedMicros: bigint;
  finishedMicros: bigint | null;
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

/**
 * Repairs the next events of an organization, in one transaction: a repeat goes on behind them. Returns what was repaired
 * when that was the last of it, else whether there is more; another process that is at it has it done.
 */
export async function repairNextCalls(
  orgDb: OrgDb,
  prices: PriceBook,
  sliceEvents = SLICE_EVENTS,
): Promise<{ isDone: false } | { isDone: true; repair: CallRepair | undefined }> {
  return orgDb.transaction(async (inside) => {
    const [state] = await inside.rows<{ stage: 'search' | 'merge'; looked_until: string | null }>(
      `select stage, looked_until::text as looked_until from call_repairs
       where org_id = $1 and finished_at is null for update skip locked`,
      [inside.orgId],
    );
    if (state === undefined) return { isDone: true, repair: undefined };
    const { stage, looked_until: from } = state;
    const until = await findCut(inside, from, sliceEvents[stage]);
    const slice = { from, until };
    if (stage === 'search') await searchRequests(inside, slice);
    else await mergeRequests(inside, slice, prices);
    if (until !== null) {
      await inside.run('update call_repairs set looked_until = $2::timestamptz where org_id = $1', [
        inside.orgId,
        until,
      ]);
      return { isDone: false };
    }
    if (stage === 'search' && (await hasRequests(inside))) {
      await inside.run(`update call_repairs set stage = 'merge', looked_until = null where org_id = $1`, [
        inside.orgId,
      ]);
      return { isDone: false };
    }
    return { isDone: true, repair: await finish(inside) };
  });
}

/** Events of a time: after `from`, up to `until`; null where it has no such bound. */
interface Slice {
  from: string | null;
  until: string | null;
}

const OF_SLICE = `e.org_id = $1 and ($2::timestamptz is null or e.timestamp > $2::timestamptz)
  and ($3::timestamptz is null or e.timestamp <= $3::timestamptz)`;

/** The time of the last event of the next slice; null where the slice is the last one. */
async function findCut(orgDb: OrgDb, from: string | null, events: number): Promise<string | null> {
  const [cut] = await orgDb.rows<{ at: string }>(
    `select timestamp::text as at from events
     where org_id = $1 and ($2::timestamptz is null or timestamp > $2::timestamptz)
     order by timestamp offset ${events - 1} limit 1`,
    [orgDb.orgId, from],
  );
  return cut?.at ?? null;
}

/** Notes the requests that have an event which is superseded by a superseded event of the same request. */
async function searchRequests(orgDb: OrgDb, { from, until }: Slice): Promise<void> {
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

async function hasRequests(orgDb: OrgDb): Promise<boolean> {
  const rows = await orgDb.rows('select from call_repair_requests where org_id = $1 limit 1', [orgDb.orgId]);
  return rows.length > 0;
}

/** Lets one event of each call count, of those that have noted requests. */
async function mergeRequests(orgDb: OrgDb, { from, until }: Slice, prices: PriceBook): Promise<void> {
  const rows = await orgDb.rows<EventRow>(
    `select ${SELECT_EVENT} from events e join call_repair_requests r on r.org_id = e.org_id and r.request_id = e.request_id
     where ${OF_SLICE} and e.superseded_by is null`,
    [orgDb.orgId, from, until],
  );
  const reports = rows.flatMap((row) => reportOf(fromEventRow(row, false)));
  if (reports.length === 0) return;
  const merged = await mergeStored(orgDb, reports);
  const settled = new SettledCalls();
  await writeMergedCalls(orgDb, merged, prices, settled);
  await pointIdentities(orgDb, merged.flatMap(identitiesToPoint));
  await settleAlertsOfStored(orgDb, settled);
  const repaired = merged.filter(({ superseded }) => superseded.length > 0);
  const losers = repaired.flatMap(({ superseded }) => superseded.map(({ stored }) => stored as StoredEvent));
  await orgDb.run(
    'update call_repairs set events = events + $2, cost_usd = cost_usd + $3::numeric where org_id = $1',
    [orgDb.orgId, losers.length, decimalFromPico(losers.reduce((sum, { costPico }) => sum + costPico, 0n))],
  );
  await orgDb.run(
    'update call_repair_requests set is_repaired = true where org_id = $1 and request_id = any($2::text[])',
    [orgDb.orgId, textArray(repaired.map(({ call }) => call.requestId))],
  );
}

/** The calls that these events are of, each with every event of it that counts, locked. */
async function mergeStored(orgDb: OrgDb, reports: readonly IdentifiedReport[]): Promise<GroupedCall[]> {
  const identities = await lockIdentities(orgDb, reports);
  const ids = [...identities.map(({ holderId }) => holderId), ...reports.map(({ id }) => id)];
  const live = await lockLiveEvents(orgDb, ids);
  const groups = new ReportGroups(identities, live);
  for (const { id, call } of reports) {
    const event = live.get(id);
    if (event === undefined) continue;
    groups.addLive(event.id);
    groups.joinIdentities(event.id, identitiesOf(call));
  }
  const storedById = new Map([...live.values()].map((event) => [event.id, event]));
  return inTurns(groups.merge((id, link) => storedReport(storedById.get(id) as StoredEvent, link)));
}

const SPAN_REQUEST = /^([0-9a-f]{32}):([0-9a-f]{16})$/;

/** An event as a report with the one identity that its request id proves; nothing where a client made that up. */
function reportOf(event: StoredEvent): IdentifiedReport[] {
  const { id, kind, requestId } = event;
  if (requestId === null) return [];
  const [, traceId, spanId] = SPAN_REQUEST.exec(requestId) ?? [];
  const link: SpanLink | null =
    traceId === undefined || spanId === undefined ? null : { traceId, spanId, parentSpanId: null };
  const isProof = kind === 'otel_span' || (kind === 'sdk_event' && isResponseId(requestId));
  if (!isProof) return [];
  const call: CallRecord = callOfStored(event, link);
  return [{ id, call }];
}

async function finish(orgDb: OrgDb): Promise<CallRepair> {
  const [row] = await orgDb.rows<RepairRow>(
    `update call_repairs set stage = 'done', finished_at = now(),
       calls = (select count(*) from call_repair_requests where org_id = $1 and is_repaired)
     where org_id = $1 returning *`,
    [orgDb.orgId],
  );
  await orgDb.run('delete from call_repair_requests where org_id = $1', [orgDb.orgId]);
  const repair = repairOf(row as RepairRow);
  if (repair.events > 0) {
    await recordAudit(orgDb, {
      action: 'calls.repaired',
      actor: { kind: 'system', id: 'repair of calls' },
      subject: null,
      details: { calls: repair.calls, events: repair.events, cost_usd: decimalFromPico(repair.costPico) },
      requestId: null,
    });
  }
  return repair;
}

/**
 * Reduces calls which an earlier version counted more than once to one event each: takes the next
 * events of each organization that is not done. Returns whether more is waiting. One organization that fails keeps none
 * of the others from it.
 */
export async function repairCalls(
  deps: UseCaseDeps & { prices: Pick<Prices, 'of'>; logger: Logger },
): Promise<boolean> {
  const { logger } = deps;
  let more = false;
  for (const orgId of await listUnrepairedOrganizations(deps.database)) {
    try {
      const book = await deps.prices.of(orgId);
      const step = await repeatOnConflict(() => repairNextCalls(orgDbOf(deps, orgId), book));
      if (!step.isDone) more = true;
      else if (step.repair !== undefined && step.repair.events > 0) {
        const { calls, events, costPico } = step.repair;
        logger.warn(
          { org_id: orgId, calls, events, cost_usd: decimalFromPico(costPico) },
          'calls that were counted more than once count once now',
        );
      }
    } catch (error) {
      logger.warn(
        { err: error, org_id: orgId },
        'calls counted more than once were not repaired; it is tried again',
      );
    }
  }
  return more;
}

/** Stages of the search for calls that an earlier version counted more than once (docs/decisions/0001). */
export const REPAIR_STAGES = ['search', 'merge', 'done'] as const;
export type RepairStage = (typeof REPAIR_STAGES)[number];

/** What a repair changed. */
export interface CallRepair {
  /** Calls that were counted more than once. */
  calls: number;
  /** Their events that count no more. */
  events: number;
  /** What those events had counted for. */
  costPico: Pico;
}
