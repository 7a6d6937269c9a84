import type { Violation } from '../../domain/alerts/alert.js';
import { identityBiller } from '../../domain/events/biller.js';
import { completeTelling } from '../../domain/events/completeTelling.js';
import type { SpanLink } from '../../domain/events/event.js';
import { SpanTree } from '../../domain/events/spanTree.js';
import { mergeTellings } from '../../domain/events/telling.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { OrgDb } from '../orgDb.js';
import type { StorableEvent } from './eventColumns.js';
import { priceOf, type StoreResult } from './ingest.js';
import type { NewAlert } from './policyAlerts.js';
import { completeEvent } from './revisions.js';
import { type AlertChanges, type JudgeCost, SettledCalls, settleAlerts } from './settledAlerts.js';
import {
  applyPair,
  callOfStored,
  knownCostOf,
  linkOf,
  lockLive,
  placeOf,
  placeOfNew,
  SPAN_COLUMNS,
  type SpanRow,
  storableOf,
} from './storedCalls.js';
import type { StoredEvent } from './storedEvents.js';
import { compareClaims, hasClaim, spanNumber } from './storeStatement.js';

/** What was judged of the events of a batch, as far as their calls' alerts depend on it. */
export interface JudgedTellings {
  /** Alerts that this transaction has made. */
  fresh: readonly NewAlert[];
  /** What a superseded telling says that breaks a policy, by its event's id. */
  saidBy: ReadonlyMap<string, readonly Violation[]>;
  judgeCost: JudgeCost;
}

/**
 * Decides, for the events of a batch whose claim another event holds, which of the two is the call: the same
 * response id or the same span came before, in another request, another way in or another process. Their alerts follow.
 */
export async function settleTellings(
  orgDb: OrgDb,
  events: readonly StorableEvent[],
  result: Pick<StoreResult, 'stored' | 'claimed'>,
  prices: PriceBook,
  { fresh, saidBy, judgeCost }: JudgedTellings,
): Promise<AlertChanges> {
  const settled = new SettledCalls();
  const contested = events
    .filter((event) => hasClaim(event) && result.stored.has(event.id) && !result.claimed.has(event.id))
    .sort(compareClaims);
  for (const event of contested) {
    await claimSpan(orgDb, event);
    if (event.supersededBy !== null) continue;
    const holder = await lockHolder(orgDb, event);
    if (holder && holder.event.id !== event.id) await settlePair(orgDb, holder, event, prices, settled);
  }
  for (const event of events) {
    const { supersededBy } = event;
    if (supersededBy === null || !result.stored.has(event.id) || result.stored.has(supersededBy)) continue;
    await completeStored(orgDb, supersededBy, { event, said: saidBy.get(event.id) ?? [] }, prices, settled);
  }
  return settleAlerts(orgDb, settled, fresh, judgeCost);
}

/**
 * A telling whose winner came again in this batch but was stored before: what the telling adds reached only the
 * winner's repeat, which is not stored, so the event that stands for the call is completed by it.
 */
async function completeStored(
  orgDb: OrgDb,
  winnerId: string,
  { event, said }: { event: StorableEvent; said: readonly Violation[] },
  prices: PriceBook,
  settled: SettledCalls,
): Promise<void> {
  const live = await lockLive(orgDb, winnerId);
  if (!live) return;
  const tree = new SpanTree(event.call.trace === null ? [] : [event.call.trace]);
  const call = completeTelling(callOfStored(live, null), event.call, tree);
  const completed = ofAnyProject(storableOf(live, call, prices), event);
  await completeEvent(orgDb, placeOf(live), completed);
  settled.note({ event: completed, costBefore: knownCostOf(live), said }, event.id);
}

/** A call that nobody named a project of has that of the workspace whose key told it, whichever telling stands for it. */
function ofAnyProject(completed: StorableEvent, telling: StorableEvent): StorableEvent {
  return { ...completed, projectId: completed.projectId ?? telling.projectId };
}

/** A telling that lost its response id to another still has its place in its trace. */
async function claimSpan(orgDb: OrgDb, event: StorableEvent): Promise<void> {
  const { trace } = event.call;
  if (!trace) return;
  await orgDb.run(
    `insert into call_spans (org_id, trace_id, span_id, parent_span_id, event_id) values ($1, $2::uuid, $3, $4, $5::uuid) on conflict do nothing`,
    [
      orgDb.orgId,
      trace.traceId,
      spanNumber(trace.spanId),
      trace.parentSpanId === null ? null : spanNumber(trace.parentSpanId),
      event.id,
    ],
  );
}

interface Holder {
  event: StoredEvent;
  trace: SpanLink | null;
}

/** The live event behind the claim that this event lost, locked, with its place in its trace. */
async function lockHolder(orgDb: OrgDb, event: StorableEvent): Promise<Holder | undefined> {
  const { trace, responseId } = event.call;
  const rows = await orgDb.rows<SpanRow>(
    `select event_id, ${SPAN_COLUMNS} from call_spans where org_id = $1 and event_id is not null and event_id <> $6::uuid
       and ((biller = $2 and response_id = $3) or (trace_id = $4::uuid and span_id = $5))
     order by response_id nulls last limit 1`,
    [
      orgDb.orgId,
      identityBiller(event.call),
      responseId,
      trace?.traceId ?? null,
      trace ? spanNumber(trace.spanId) : null,
      event.id,
    ],
  );
  const row = rows[0];
  if (!row?.event_id) return undefined;
  const live = await lockLive(orgDb, row.event_id);
  return live && { event: live, trace: live.id === row.event_id ? linkOf(row) : null };
}

async function settlePair(
  orgDb: OrgDb,
  holder: Holder,
  event: StorableEvent,
  prices: PriceBook,
  settled: SettledCalls,
): Promise<void> {
  const held = callOfStored(holder.event, holder.trace);
  const tree = new SpanTree([held.trace, event.call.trace].filter((link) => link !== null));
  const { winner, call } = mergeTellings(held, event.call, tree);
  if (winner === 'live') {
    const completed = ofAnyProject(storableOf(holder.event, call, prices), event);
    await applyPair(orgDb, placeOf(holder.event), placeOfNew(event), completed);
    const costBefore = knownCostOf(holder.event);
    settled.note({ event: completed, costBefore, said: [] }, event.id);
  } else {
    const completed = {
      ...event,
      call,
      price: priceOf(call, prices),
      projectId: call.projectId ?? event.projectId,
    };
    await applyPair(orgDb, placeOfNew(event), placeOf(holder.event), completed);
    settled.note({ event: completed, costBefore: undefined, said: [] }, holder.event.id);
  }
}
