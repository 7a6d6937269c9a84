import { identityBiller } from '../../domain/events/biller.js';
import type { CallRecord, SpanLink } from '../../domain/events/event.js';
import { resolveCalls } from '../../domain/events/resolveCalls.js';
import { SpanTree } from '../../domain/events/spanTree.js';
import { mergeTellings } from '../../domain/events/telling.js';
import { isoFromMicros } from '../../domain/period.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Biller, Provider } from '../../domain/providers.js';
import type { Database } from '../client.js';
import { OrgDb, unscoped } from '../orgDb.js';
import { plainArray } from '../pgArray.js';
import { listEventsById, type StoredEvent } from './events.js';
import { hasClaim, priceOf, type StorableEvent, type StoreResult, spanNumber, spanOfText } from './ingest.js';
import { completeEvent, supersedeEvent } from './revisions.js';

interface SpanRow {
  trace_id: string | null;
  span_id: string | null;
  parent_span_id: string | null;
  event_id: string | null;
}

const SPAN_COLUMNS = 'trace_id, to_hex(span_id) as span_id, to_hex(parent_span_id) as parent_span_id';

/**
 * Decides, for the events of a batch whose claim another event holds, which of the two is the call: the same
 * response id or the same span came before, in another request, another way in or another process.
 */
export async function settleTellings(
  orgDb: OrgDb,
  events: readonly StorableEvent[],
  result: StoreResult,
  prices: PriceBook,
): Promise<void> {
  const contested = events.filter(
    (event) => hasClaim(event) && result.stored.has(event.id) && !result.claimed.has(event.id),
  );
  for (const event of contested) {
    await claimSpan(orgDb, event);
    if (event.supersededBy !== null) continue;
    const holder = await findHolder(orgDb, event);
    if (holder && holder.event.id !== event.id) await settlePair(orgDb, holder, event, prices);
  }
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

/** The live event behind the claim that this event lost, with its place in its trace. */
async function findHolder(orgDb: OrgDb, event: StorableEvent): Promise<Holder | undefined> {
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
  const live = await findLive(orgDb, row.event_id);
  return live && { event: live, trace: live.id === row.event_id ? linkOf(row) : null };
}

/** Tellings that stood for one another in turn; more would be a circle. */
const SUCCESSIONS_MAX = 16;

async function findLive(orgDb: OrgDb, id: string): Promise<StoredEvent | undefined> {
  let current: string = id;
  for (let step = 0; step < SUCCESSIONS_MAX; step += 1) {
    const [event] = await listEventsById(orgDb, [current]);
    if (!event || event.supersededBy === null) return event;
    current = event.supersededBy;
  }
  return undefined;
}

async function settlePair(
  orgDb: OrgDb,
  holder: Holder,
  event: StorableEvent,
  prices: PriceBook,
): Promise<void> {
  const held = callOfStored(holder.event, holder.trace);
  const tree = new SpanTree([held.trace, event.call.trace].filter((link) => link !== null));
  const { winner, call } = mergeTellings(held, event.call, tree);
  if (winner === 'live') {
    await applyPair(orgDb, placeOf(holder.event), placeOfNew(event), storableOf(holder.event, call, prices));
  } else {
    await applyPair(orgDb, placeOfNew(event), placeOf(holder.event), {
      ...event,
      call,
      price: priceOf(call, prices),
    });
  }
}

interface Place {
  id: string;
  timestamp: string;
}

const placeOf = (event: StoredEvent): Place => ({
  id: event.id,
  timestamp: isoFromMicros(event.timestampMicros),
});
const placeOfNew = (event: StorableEvent): Place => ({
  id: event.id,
  timestamp: isoFromMicros(event.call.startMicros),
});

/** Rows are locked in the order of their ids, so two processes that settle the same pair wait instead of blocking each other. */
async function applyPair(orgDb: OrgDb, winner: Place, loser: Place, completed: StorableEvent): Promise<void> {
  const supersede = () => supersedeEvent(orgDb, loser, winner.id);
  const complete = () => completeEvent(orgDb, winner, completed);
  if (winner.id < loser.id) {
    await complete();
    await supersede();
  } else {
    await supersede();
    await complete();
  }
}

/** A stored event as the call that it tells of; payload and prompts stay where they are. */
export function callOfStored(event: StoredEvent, trace: SpanLink | null): CallRecord {
  return {
    kind: event.kind,
    provider: event.provider as Provider,
    billedBy: event.billedBy as Biller,
    billerFromHost: event.billerFromHost,
    billerSpan: event.billerSpan === null ? null : spanOfText(event.billerSpan),
    toldClasses: event.toldClasses,
    model: event.model,
    responseModel: event.responseModel,
    startMicros: event.timestampMicros,
    endMicros: event.endMicros,
    hashTimestamp: isoFromMicros(event.timestampMicros),
    durationMs: event.durationMs,
    requestId: event.requestId,
    responseId: responseIdOf(event),
    sessionId: event.sessionId,
    teamId: event.teamId,
    feature: event.feature,
    projectId: event.projectId,
    userId: event.userId,
    environment: event.environment,
    serviceTier: event.serviceTier,
    providerAccountId: event.providerAccountId,
    providerKeyId: event.providerKeyId,
    isBatch: event.isBatch,
    batchId: event.batchId,
    stopReason: event.stopReason,
    status: event.status,
    httpStatus: event.httpStatus,
    blockedRuleId: event.blockedRuleId,
    preventedPico: event.preventedPico,
    usage: event.usageSource === 'none' || event.unmetered ? null : usageOfStored(event),
    origin: {
      usageSource: event.usageSource,
      inputSemantics: event.inputSemantics,
      usageMissing: event.usageMissing,
      usageFlags: event.usageFlags as CallRecord['origin']['usageFlags'],
      usageRaw: event.usageRaw,
    },
    reportedCostPico: event.reportedCostPico,
    prompts: [],
    payload: null,
    toolInput: null,
    toolOutput: null,
    service: null,
    serviceName: event.serviceName,
    scopeName: event.scopeName,
    scopeVersion: '',
    trace,
  };
}

const SPAN_IDENTITY = /^[0-9a-f]{32}:[0-9a-f]{16}$/;

/** A stored event's request id is the response id, unless it was made from the span's own ids. */
function responseIdOf(event: StoredEvent): string | null {
  return event.requestId === null || SPAN_IDENTITY.test(event.requestId) ? null : event.requestId;
}

function usageOfStored(event: StoredEvent): CallRecord['usage'] {
  return {
    input: event.inputTokens - event.inputAudio,
    cacheRead: event.cacheRead,
    cacheCreation: event.cacheCreation,
    cacheCreation5m: event.cacheCreation5m,
    cacheCreation1h: event.cacheCreation1h,
    output: event.outputTokens - event.outputAudio,
    inputAudio: event.inputAudio,
    outputAudio: event.outputAudio,
    reasoning: event.reasoningTok,
    cached: event.cachedTok,
  };
}

function storableOf(event: StoredEvent, call: CallRecord, prices: PriceBook): StorableEvent {
  return {
    id: event.id,
    apiKeyHash: event.apiKeyHash,
    apiKeyId: event.apiKeyId,
    call,
    price: priceOf(call, prices),
    projectId: call.projectId ?? event.projectId,
    supersededBy: null,
  };
}

/** Traces of one sweep: bounds its memory. */
const SWEEP_TRACES_MAX = 5_000;

/**
 * Finds spans of one call that arrived in different requests, one an ancestor of the other: looks at the traces that
 * got spans since the last sweep. Runs every few seconds; sweeping twice changes nothing. Returns the events that
 * were superseded, and whether more traces are waiting.
 */
export async function sweepTraces(
  database: Database,
  prices: PriceBook,
): Promise<{ superseded: number; more: boolean }> {
  const found = await listTouchedTraces(database);
  let superseded = 0;
  for (const [orgId, traces] of found.byOrganization) {
    const orgDb = new OrgDb(database, orgId);
    superseded += await orgDb.transaction((inside) => resolveTraces(inside, traces, prices));
  }
  await unscoped(database, 'note how far the sweep has come', (system) =>
    system.run('update sweep_state set swept_xid = greatest(swept_xid, $1)', [found.below]),
  );
  return { superseded, more: found.more };
}

async function listTouchedTraces(database: Database) {
  return unscoped(database, 'the sweep looks for traces with new spans', async (system) => {
    const [state] = await system.rows<{ from_xid: number; below_xid: number }>(
      'select swept_xid as from_xid, pg_snapshot_xmin(pg_current_snapshot())::text::bigint as below_xid from sweep_state',
    );
    if (!state) throw new Error('the sweep state is one row');
    const rows = await system.rows<{ org_id: string; trace_id: string; ingest_xid: number }>(
      `select org_id, trace_id, min(ingest_xid)::bigint as ingest_xid from call_spans
       where ingest_xid >= $1 and ingest_xid < $2 and trace_id is not null
       group by 1, 2 order by 3 limit ${SWEEP_TRACES_MAX + 1}`,
      [state.from_xid, state.below_xid],
    );
    const more = rows.length > SWEEP_TRACES_MAX;
    const byOrganization = new Map<string, string[]>();
    for (const row of rows)
      byOrganization.set(row.org_id, [...(byOrganization.get(row.org_id) ?? []), row.trace_id]);
    const lastXid = rows[rows.length - 1]?.ingest_xid ?? state.below_xid;
    return { byOrganization, more, below: more ? Math.max(lastXid, state.from_xid + 1) : state.below_xid };
  });
}

async function resolveTraces(orgDb: OrgDb, traces: readonly string[], prices: PriceBook): Promise<number> {
  const spans = await orgDb.rows<SpanRow>(
    `select event_id, ${SPAN_COLUMNS} from call_spans
     where org_id = $1 and trace_id in (
       select trace_id from call_spans where org_id = $1 and trace_id = any($2::uuid[])
       group by trace_id having count(distinct event_id) > 1)`,
    [orgDb.orgId, plainArray(traces)],
  );
  if (spans.length === 0) return 0;
  const events = await listEventsById(orgDb, [...new Set(spans.flatMap((span) => span.event_id ?? []))]);
  const byId = new Map(
    events.filter((event) => event.supersededBy === null).map((event) => [event.id, event]),
  );
  const live: StoredEvent[] = [];
  const calls: CallRecord[] = [];
  const links: SpanLink[] = [];
  for (const span of spans) {
    const link = linkOf(span);
    const event = span.event_id === null ? undefined : byId.get(span.event_id);
    if (event) {
      live.push(event);
      calls.push(callOfStored(event, link));
    } else if (link) links.push(link);
  }
  const resolved = resolveCalls(calls, links);
  let superseded = 0;
  for (const [index, { supersededBy }] of resolved.entries()) {
    const loser = live[index];
    const winner = supersededBy === null ? undefined : live[supersededBy];
    const completed = supersededBy === null ? undefined : resolved[supersededBy];
    if (!loser || !winner || !completed || loser.id === winner.id) continue;
    await applyPair(orgDb, placeOf(winner), placeOf(loser), storableOf(winner, completed.call, prices));
    superseded += 1;
  }
  return superseded;
}

function linkOf(span: SpanRow): SpanLink | null {
  if (span.trace_id === null || span.span_id === null) return null;
  const hex = (id: string) => id.padStart(16, '0');
  return {
    traceId: span.trace_id.replaceAll('-', ''),
    spanId: hex(span.span_id),
    parentSpanId: span.parent_span_id === null ? null : hex(span.parent_span_id),
  };
}
