import { identityBiller } from '../../domain/events/biller.js';
import type { BillerSpan, CallRecord, SpanLink } from '../../domain/events/event.js';
import { decimalFromPico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import { type CallPrice, priceCall } from '../../domain/pricing/cost.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';

/** A call that is ready to be stored: resolved, hashed and priced. */
export interface StorableEvent {
  /** uuid that carries the call's time. */
  id: string;
  apiKeyHash: string;
  apiKeyId: string;
  call: CallRecord;
  price: CallPrice;
  projectId: string | null;
  /** Set on another telling of a call in the same batch. */
  supersededBy: string | null;
}

type Column = readonly [
  name: string,
  type: string,
  quoted: boolean,
  of: (event: StorableEvent) => string | number | bigint | boolean | null,
];

/** The columns of an event in the order of the statement's parameters. */
const COLUMNS: readonly Column[] = [
  ['id', 'uuid', false, (e) => e.id],
  ['timestamp', 'timestamptz', true, (e) => isoFromMicros(e.call.startMicros)],
  ['end_at', 'timestamptz', true, (e) => isoFromMicros(e.call.endMicros)],
  ['superseded_by', 'uuid', false, (e) => e.supersededBy],
  ['kind', 'text', true, (e) => e.call.kind],
  ['status', 'text', true, (e) => e.call.status],
  ['http_status', 'int4', false, (e) => e.call.httpStatus],
  ['provider', 'text', true, (e) => e.call.provider],
  ['billed_by', 'text', true, (e) => e.call.billedBy],
  ['provider_account_id', 'text', true, (e) => e.call.providerAccountId],
  ['provider_key_id', 'text', true, (e) => e.call.providerKeyId],
  ['model', 'text', true, (e) => e.call.model],
  ['response_model', 'text', true, (e) => e.call.responseModel],
  ['request_id', 'text', true, (e) => e.call.requestId],
  ['api_key_hash', 'text', true, (e) => e.apiKeyHash],
  ['api_key_id', 'text', true, (e) => e.apiKeyId],
  ['session_id', 'text', true, (e) => e.call.sessionId],
  ['team_id', 'text', true, (e) => e.call.teamId],
  ['feature', 'text', true, (e) => e.call.feature],
  ['project_id', 'text', true, (e) => e.projectId],
  ['user_id', 'text', true, (e) => e.call.userId],
  ['environment', 'text', true, (e) => e.call.environment],
  ['service_tier', 'text', true, (e) => e.call.serviceTier],
  ['is_batch', 'bool', false, (e) => e.call.isBatch],
  ['batch_id', 'text', true, (e) => e.call.batchId],
  ['input_tokens', 'int8', false, (e) => (e.call.usage ? e.call.usage.input + e.call.usage.inputAudio : 0)],
  [
    'output_tokens',
    'int8',
    false,
    (e) => (e.call.usage ? e.call.usage.output + e.call.usage.outputAudio : 0),
  ],
  ['cache_read', 'int8', false, (e) => e.call.usage?.cacheRead ?? 0],
  ['cache_creation', 'int8', false, (e) => e.call.usage?.cacheCreation ?? 0],
  ['cache_creation_5m', 'int8', false, (e) => e.call.usage?.cacheCreation5m ?? null],
  ['cache_creation_1h', 'int8', false, (e) => e.call.usage?.cacheCreation1h ?? null],
  ['reasoning_tok', 'int8', false, (e) => e.call.usage?.reasoning ?? 0],
  ['cached_tok', 'int8', false, (e) => e.call.usage?.cached ?? 0],
  ['input_audio', 'int8', false, (e) => e.call.usage?.inputAudio ?? 0],
  ['output_audio', 'int8', false, (e) => e.call.usage?.outputAudio ?? 0],
  ['context_band', 'int4', false, (e) => e.price.contextBand],
  ['unmetered', 'bool', false, (e) => isUnmetered(e.call)],
  ['cost_usd', 'numeric', false, (e) => decimalFromPico(costOf(e).pico)],
  [
    'computed_cost_usd',
    'numeric',
    false,
    (e) => (e.price.computedPico === null ? null : decimalFromPico(e.price.computedPico)),
  ],
  [
    'reported_cost_usd',
    'numeric',
    false,
    (e) => (e.call.reportedCostPico === null ? null : decimalFromPico(e.call.reportedCostPico)),
  ],
  ['cost_source', 'text', true, (e) => costOf(e).source],
  ['price_gaps', 'text', true, (e) => joinList(e.price.priceGaps)],
  ['usage_source', 'text', true, (e) => e.call.origin.usageSource],
  ['input_semantics', 'text', true, (e) => e.call.origin.inputSemantics],
  ['usage_missing', 'text', true, (e) => joinList(e.call.origin.usageMissing)],
  ['usage_flags', 'text', true, (e) => joinList(e.call.origin.usageFlags)],
  ['usage_raw', 'text', true, (e) => e.call.origin.usageRaw],
  ['duration_ms', 'int8', false, (e) => e.call.durationMs],
  ['stop_reason', 'text', true, (e) => e.call.stopReason],
  ['blocked_rule_id', 'text', true, (e) => e.call.blockedRuleId],
  [
    'prevented_usd',
    'numeric',
    false,
    (e) => (e.call.preventedPico === null ? null : decimalFromPico(e.call.preventedPico)),
  ],
  ['told_classes', 'int2', false, (e) => e.call.toldClasses],
  ['biller_from_host', 'bool', false, (e) => e.call.billerFromHost],
  ['biller_span', 'text', true, (e) => (e.call.billerSpan === null ? null : spanText(e.call.billerSpan))],
  ['service_name', 'text', true, (e) => e.call.serviceName],
  ['scope_name', 'text', true, (e) => e.call.scopeName],
];

/** Lists travel as one text each: an array of arrays of unequal length is no Postgres array. */
const LIST_COLUMNS = new Set(['price_gaps', 'usage_missing', 'usage_flags']);

function joinList(values: readonly string[]): string | null {
  return values.length === 0 ? null : values.join(',');
}

/** A call that consumed something nobody told: without usage, and neither failed nor blocked. A stream that was cancelled is billed too. */
export function isUnmetered(call: CallRecord): boolean {
  return call.usage === null && (call.status === 'ok' || call.status === 'cancelled');
}

/**
 * What the event's cost_usd is (decisions.md 9): as reported, else computed, else 0 and named unpriced. A call that
 * used nothing costs nothing, whether its model has a price or not.
 */
export function costOf(event: Pick<StorableEvent, 'call' | 'price'>): {
  pico: bigint;
  source: 'reported' | 'computed' | 'unpriced';
} {
  if (event.call.reportedCostPico !== null) return { pico: event.call.reportedCostPico, source: 'reported' };
  if (event.price.computedPico !== null) return { pico: event.price.computedPico, source: 'computed' };
  return { pico: 0n, source: 'unpriced' };
}

const NAMES = COLUMNS.map(([name]) => name).join(', ');
const SELECTED = COLUMNS.map(([name]) =>
  LIST_COLUMNS.has(name) ? `string_to_array(i.${name}, ',')` : `i.${name}`,
).join(', ');
const UNNESTED = COLUMNS.map(([, type], index) => `$${index + 2}::${type}[]`).join(', ');
const FIRST_CLAIM = COLUMNS.length + 2;
const FIRST_PAYLOAD = FIRST_CLAIM + 6;

/**
 * One statement for a batch: the events that are new, the claims on response ids and spans, the payloads of new
 * events. It answers with the ids of the events that it stored and those of the claims that it won.
 */
const STORE_SQL = `
with stored as (
  insert into events (org_id, revised_xid, ${NAMES})
  select $1::uuid, case when i.superseded_by is null then null else current_xid() end, ${SELECTED}
  from unnest(${UNNESTED}) as i (${NAMES})
  on conflict do nothing
  returning id
), claimed as (
  insert into call_spans (org_id, biller, response_id, trace_id, span_id, parent_span_id, event_id)
  select $1::uuid, c.* from unnest($${FIRST_CLAIM}::text[], $${FIRST_CLAIM + 1}::text[], $${FIRST_CLAIM + 2}::uuid[],
    $${FIRST_CLAIM + 3}::int8[], $${FIRST_CLAIM + 4}::int8[], $${FIRST_CLAIM + 5}::uuid[]) as c
  on conflict do nothing
  returning event_id
), kept as (
  insert into event_payloads (org_id, timestamp, event_id, payload, tool_input, tool_output, service)
  select $1::uuid, p.* from unnest($${FIRST_PAYLOAD}::timestamptz[], $${FIRST_PAYLOAD + 1}::uuid[], $${FIRST_PAYLOAD + 2}::jsonb[],
    $${FIRST_PAYLOAD + 3}::jsonb[], $${FIRST_PAYLOAD + 4}::jsonb[], $${FIRST_PAYLOAD + 5}::jsonb[])
    as p (at, event_id, payload, tool_input, tool_output, service)
  where p.event_id in (select id from stored)
)
select (select array_agg(id) from stored) as stored, (select array_agg(event_id) from claimed) as claimed`;

interface StoreRow {
  stored: string[] | null;
  claimed: (string | null)[] | null;
}

export interface StoreResult {
  /** Ids of the events that were new. */
  stored: Set<string>;
  /** Ids of the events whose claim was won. */
  claimed: Set<string>;
}

/** Stores a batch of one organization inside the running transaction. Repeats change nothing. */
export async function insertEvents(
  orgDb: OrgDb,
  events: readonly StorableEvent[],
  links: readonly SpanLink[],
): Promise<StoreResult> {
  const values: (string | null)[] = [orgDb.orgId];
  for (const [, , quoted, of] of COLUMNS) {
    const column = events.map(of);
    values.push(quoted ? textArray(column as (string | null)[]) : plainArray(column));
  }
  values.push(...claimColumns(events, links), ...payloadColumns(events));
  const rows = await orgDb.rows<StoreRow>(STORE_SQL, values, 'store_events');
  const row = rows[0];
  return {
    stored: new Set(row?.stored ?? []),
    claimed: new Set((row?.claimed ?? []).filter((id): id is string => id !== null)),
  };
}

/** Whether a call can be told again by another span or way in. */
export function hasClaim(event: StorableEvent): boolean {
  return event.call.responseId !== null || event.call.trace !== null;
}

function claimColumns(events: readonly StorableEvent[], links: readonly SpanLink[]): string[] {
  const claims = events.filter(hasClaim);
  const spans: (SpanLink | null)[] = [...claims.map((event) => event.call.trace), ...links];
  // A superseded telling keeps its place in the trace, but the response id is its winner's.
  const owners = claims.map((event) =>
    event.supersededBy === null && event.call.responseId !== null ? event.call : null,
  );
  const none = links.map(() => null);
  return [
    textArray([...owners.map((call) => (call ? identityBiller(call) : null)), ...none]),
    textArray([...owners.map((call) => call?.responseId ?? null), ...none]),
    plainArray(spans.map((span) => span?.traceId ?? null)),
    plainArray(spans.map((span) => (span ? spanNumber(span.spanId) : null))),
    plainArray(spans.map((span) => (span?.parentSpanId ? spanNumber(span.parentSpanId) : null))),
    plainArray([...claims.map((event) => event.id), ...none]),
  ];
}

/** A span id's 64 bits as the signed integer that Postgres keeps. */
export function spanNumber(spanId: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${spanId}`));
}

function payloadColumns(events: readonly StorableEvent[]): string[] {
  const kept = events.filter(
    ({ call }) =>
      call.payload !== null || call.toolInput !== null || call.toolOutput !== null || call.service !== null,
  );
  const json = (of: (call: CallRecord) => unknown) =>
    textArray(
      kept.map(({ call }) => {
        const value = of(call);
        return value === null ? null : JSON.stringify(value);
      }),
    );
  return [
    textArray(kept.map(({ call }) => isoFromMicros(call.startMicros))),
    plainArray(kept.map(({ id }) => id)),
    json((call) => call.payload),
    json((call) => call.toolInput),
    json((call) => call.toolOutput),
    json((call) => call.service),
  ];
}

/** Counts refused items by hour and reason. */
export async function recordRejections(
  orgDb: OrgDb,
  rejections: readonly { serviceName: string; scopeName: string; reason: string; count: number }[],
): Promise<void> {
  if (rejections.length === 0) return;
  await orgDb.run(
    `insert into ingest_rejections (org_id, hour, service_name, scope_name, reason, count)
     select $1::uuid, date_trunc('hour', now()), r.* from unnest($2::text[], $3::text[], $4::text[], $5::int8[]) as r
     on conflict (org_id, hour, service_name, scope_name, reason) do update set count = ingest_rejections.count + excluded.count`,
    [
      orgDb.orgId,
      textArray(rejections.map((r) => r.serviceName)),
      textArray(rejections.map((r) => r.scopeName)),
      textArray(rejections.map((r) => r.reason)),
      plainArray(rejections.map((r) => r.count)),
    ],
  );
}

/** Columns that another telling of a call can complete; the others tell which event it is. */
const FIXED_COLUMNS = new Set([
  'id',
  'timestamp',
  'superseded_by',
  'kind',
  'provider',
  'model',
  'request_id',
  'api_key_hash',
  'api_key_id',
  'service_name',
  'scope_name',
  'told_classes',
]);
const COMPLETED_COLUMNS = COLUMNS.filter(([name]) => !FIXED_COLUMNS.has(name));

/** `column = $n` for each column that can be completed, from parameter `first` on. */
export function assignments(first: number): string {
  return COMPLETED_COLUMNS.map(([name, type], index) => {
    const parameter = `$${first + index}`;
    return `${name} = ${LIST_COLUMNS.has(name) ? `string_to_array(${parameter}::text, ',')` : `${parameter}::${type}`}`;
  }).join(', ');
}

/** The values for `assignments`. */
export function updateValues(event: StorableEvent): (string | number | bigint | boolean | null)[] {
  return COMPLETED_COLUMNS.map(([, , , of]) => of(event));
}

/** A call without usage: one that failed used nothing and costs nothing; of another nobody knows. */
const FREE: CallPrice = { computedPico: 0n, priceGaps: [], contextBand: 0 };
const UNKNOWN: CallPrice = { computedPico: null, priceGaps: [], contextBand: 0 };

/** The price of a call at its time; absent usage is no usage of zero. */
export function priceOf(call: CallRecord, prices: PriceBook): CallPrice {
  if (call.usage === null) return isUnmetered(call) ? UNKNOWN : FREE;
  return priceCall(prices, {
    biller: call.billedBy,
    model: call.responseModel ?? call.model,
    requestedModel: call.responseModel === null ? null : call.model,
    atMicros: call.startMicros,
    usage: call.usage,
    isBatch: call.isBatch,
    serviceTier: call.serviceTier,
  });
}

/** A span as one text, for the rare event whose biller another span named. */
export function spanText({ trace, startMicros, endMicros }: BillerSpan): string {
  const place = [trace?.traceId ?? '', trace?.spanId ?? '', trace?.parentSpanId ?? ''];
  return [...place, startMicros, endMicros].join(' ');
}

/** The telling behind `spanText`. */
export function spanOfText(text: string): BillerSpan {
  const [traceId = '', spanId = '', parent = '', start = '0', end = '0'] = text.split(' ');
  const trace = traceId === '' ? null : { traceId, spanId, parentSpanId: parent === '' ? null : parent };
  return { trace, startMicros: BigInt(start), endMicros: BigInt(end) };
}
