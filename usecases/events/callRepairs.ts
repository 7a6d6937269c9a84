import type { Logger } from 'pino';
import { recordAudit } from '../../db/access/auditLog.js';
import {
  type IdentifiedReport,
  identitiesOf,
  lockIdentities,
  pointIdentities,
} from '../../db/events/callIdentities.js';
import {
  type CallRepair,
  type EventSlice,
  findSliceEnd,
  finishRepair,
  listEventsToRepair,
  listUnrepairedOrganizations,
  noteBrokenRequests,
  noteRepairedUntil,
  recordRepaired,
  startMerging,
  takeRepair,
} from '../../db/events/callRepairs.js';
import { lockLiveEvents } from '../../db/events/events.js';
import {
  type GroupedCall,
  identitiesToPoint,
  ReportGroups,
  storedReport,
  writeMergedCalls,
} from '../../db/events/mergeReports.js';
import { callOfStored, type StoredEvent } from '../../db/events/storedEvents.js';
import type { OrgDb } from '../../db/orgDb.js';
import { repeatOnConflict } from '../../db/pgErrors.js';
import { SettledCalls } from '../../db/policies/policyAlerts.js';
import { inTurns } from '../../db/turns.js';
import type { CallRecord, SpanLink } from '../../domain/events/event.js';
import { isResponseId } from '../../domain/events/sdkEvents.js';
import { decimalFromPico } from '../../domain/money.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Prices } from '../pricing/priceBookHolder.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';
import { settleAlertsOfStored } from './settleAlertsOfStored.js';

/**
 * Repairs data of versions before 0038_one_event_a_call. They followed at most sixteen steps from a response id to the
 * event that counted for it; each further report became a separate call. The result is a chain of events that supersede
 * each other, beside further events of the same request that all count.
 */

/** Events of one transaction, by stage: the fold waits as long as the transaction lasts. */
const SLICE_EVENTS = { search: 20_000, merge: 5_000 };

/**
 * Repairs the next events of an organization in one transaction; a repeat continues after them. Returns the number of
 * repairs when this was the last part, else whether more remain; when another process repairs the same organization,
 * that one does the work.
 */
export async function repairNextCalls(
  orgDb: OrgDb,
  prices: PriceBook,
  sliceEvents = SLICE_EVENTS,
): Promise<{ isDone: false } | { isDone: true; repair: CallRepair | undefined }> {
  return orgDb.transaction(async (inside) => {
    const repair = await takeRepair(inside);
    if (repair === undefined) return { isDone: true, repair };
    const { stage, lookedUntil: from } = repair;
    const until = await findSliceEnd(inside, from, sliceEvents[stage]);
    if (stage === 'search') await noteBrokenRequests(inside, { from, until });
    else await mergeRequests(inside, { from, until }, prices);
    if (until !== null) {
      await noteRepairedUntil(inside, until);
      return { isDone: false };
    }
    if (stage === 'search' && (await startMerging(inside))) return { isDone: false };
    return { isDone: true, repair: await finish(inside) };
  });
}

/** Makes one event of each call count, for calls whose requests are noted. */
async function mergeRequests(orgDb: OrgDb, slice: EventSlice, prices: PriceBook): Promise<void> {
  const reports = (await listEventsToRepair(orgDb, slice)).flatMap(reportOf);
  if (reports.length === 0) return;
  const merged = await mergeStored(orgDb, reports);
  const settled = new SettledCalls();
  await writeMergedCalls(orgDb, merged, prices, settled);
  await pointIdentities(orgDb, merged.flatMap(identitiesToPoint));
  await settleAlertsOfStored(orgDb, settled);
  const repaired = merged.filter(({ superseded }) => superseded.length > 0);
  const losers = repaired.flatMap(({ superseded }) => superseded.map(({ stored }) => stored as StoredEvent));
  await recordRepaired(orgDb, {
    events: losers.length,
    costPico: losers.reduce((sum, { costPico }) => sum + costPico, 0n),
    requestIds: repaired.map(({ call }) => call.requestId),
  });
}

/** The calls of these events, each with all its counting events, locked. */
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

/** An event as a report with the identity that its request id proves; empty where a client generated the id. */
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
  const repair = await finishRepair(orgDb);
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
 * Reduces calls that an earlier version counted more than once to one event each: processes the next events of each
 * unfinished organization. Returns whether more remain. A failure in one organization does not stop the others.
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
