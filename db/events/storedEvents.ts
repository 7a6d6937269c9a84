import {
  type CallRecord,
  type CostSource,
  EVENT_COLUMNS,
  type EventKind,
  type EventStatus,
  type InputSemantics,
  type Json,
  type SpanLink,
} from '../../domain/events/event.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import { priceOf } from '../../domain/pricing/cost.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Biller, Provider } from '../../domain/providers.js';
import { type StorableEvent, spanOfText } from './eventColumns.js';
import { type EventPlace, placeAt } from './eventPlaces.js';

export interface StoredEvent {
  id: string;
  timestampMicros: bigint;
  endMicros: bigint;
  ingestedMicros: bigint;
  kind: EventKind;
  status: EventStatus;
  httpStatus: number | null;
  provider: string;
  billedBy: string;
  providerAccountId: string | null;
  providerKeyId: string | null;
  model: string;
  responseModel: string | null;
  requestId: string | null;
  apiKeyHash: string;
  apiKeyId: string;
  sessionId: string;
  teamId: string | null;
  feature: string | null;
  projectId: string | null;
  userId: string | null;
  environment: string | null;
  serviceTier: string | null;
  isBatch: boolean;
  batchId: string | null;
  inputTokens: number;
  outputTokens: number;
  cacheRead: number;
  cacheCreation: number;
  cacheCreation5m: number | null;
  cacheCreation1h: number | null;
  reasoningTok: number;
  cachedTok: number;
  inputAudio: number;
  outputAudio: number;
  contextBand: number;
  unmetered: boolean;
  reportedClasses: number;
  billerFromHost: boolean;
  /** The span that named the biller, if it was another one (spanText). */
  billerSpan: string | null;
  serviceName: string;
  scopeName: string;
  costPico: Pico;
  computedCostPico: Pico | null;
  reportedCostPico: Pico | null;
  costSource: CostSource;
  priceGaps: string[];
  usageSource: string;
  inputSemantics: InputSemantics;
  usageMissing: string[];
  /** Defects of the usage counts as received. */
  usageFlags: string[];
  usageRaw: string | null;
  durationMs: number;
  stopReason: string;
  blockedRuleId: string | null;
  preventedPico: Pico | null;
  supersededBy: string | null;
  /** Present only where the event is locked for completion. */
  promptHash?: bigint | null;
  /** Present only where payloads were requested. */
  payload?: EventPayload;
}

export interface EventPayload {
  payload: Json | null;
  toolInput: Json | null;
  toolOutput: Json | null;
  service: Json | null;
}

const INNER_COLUMNS = [
  'input_audio',
  'output_audio',
  'context_band',
  'unmetered',
  'reported_cost_usd',
  'usage_raw',
  'told_classes',
  'biller_from_host',
  'biller_span',
  'service_name',
  'scope_name',
] as const;
export const PAYLOAD_COLUMNS =
  'p.event_id is not null as has_payload, p.payload, p.tool_input, p.tool_output, p.service';
export const PAYLOAD_JOIN =
  'left join lateral (select * from event_payloads where org_id = e.org_id and timestamp = e.timestamp and event_id = e.id offset 0) p on true';

/** As text: it uses all 64 bits, more than a number holds. */
export const SELECT_PROMPT_HASH = 'e.prompt_hash::text as prompt_hash';

export const SELECT_EVENT = [...EVENT_COLUMNS, ...INNER_COLUMNS].map((name) => `e.${name}`).join(', ');

// biome-ignore lint/suspicious/noExplicitAny: one row of a statement of this file, read field by field below
export type EventRow = Record<string, any>;

export function fromEventRow(row: EventRow, withPayload: boolean): StoredEvent {
  const event: StoredEvent = {
    id: row.id,
    timestampMicros: row.timestamp,
    endMicros: row.end_at,
    ingestedMicros: row.ingested_at,
    kind: row.kind,
    status: row.status,
    httpStatus: row.http_status,
    provider: row.provider,
    billedBy: row.billed_by,
    providerAccountId: row.provider_account_id,
    providerKeyId: row.provider_key_id,
    model: row.model,
    responseModel: row.response_model,
    requestId: row.request_id,
    apiKeyHash: row.api_key_hash,
    apiKeyId: row.api_key_id,
    sessionId: row.session_id,
    teamId: row.team_id,
    feature: row.feature,
    projectId: row.project_id,
    userId: row.user_id,
    environment: row.environment,
    serviceTier: row.service_tier,
    isBatch: row.is_batch,
    batchId: row.batch_id,
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    cacheRead: row.cache_read,
    cacheCreation: row.cache_creation,
    cacheCreation5m: row.cache_creation_5m,
    cacheCreation1h: row.cache_creation_1h,
    reasoningTok: row.reasoning_tok,
    cachedTok: row.cached_tok,
    inputAudio: row.input_audio,
    outputAudio: row.output_audio,
    contextBand: row.context_band,
    unmetered: row.unmetered,
    reportedClasses: row.told_classes,
    billerFromHost: row.biller_from_host,
    billerSpan: row.biller_span,
    serviceName: row.service_name,
    scopeName: row.scope_name,
    costPico: row.cost_usd,
    computedCostPico: row.computed_cost_usd,
    reportedCostPico: row.reported_cost_usd,
    costSource: row.cost_source,
    priceGaps: row.price_gaps ?? [],
    usageSource: row.usage_source,
    inputSemantics: row.input_semantics,
    usageMissing: row.usage_missing ?? [],
    usageFlags: row.usage_flags ?? [],
    usageRaw: row.usage_raw,
    durationMs: row.duration_ms,
    stopReason: row.stop_reason,
    blockedRuleId: row.blocked_rule_id,
    preventedPico: row.prevented_usd,
    supersededBy: row.superseded_by,
  };
  if (row.prompt_hash !== undefined)
    event.promptHash = row.prompt_hash === null ? null : BigInt(row.prompt_hash);
  if (withPayload) {
    event.payload = {
      payload: row.payload ?? null,
      toolInput: row.tool_input ?? null,
      toolOutput: row.tool_output ?? null,
      service: row.service ?? null,
    };
  }
  return event;
}

export interface SpanRow {
  trace_id: string | null;
  span_id: string | null;
  parent_span_id: string | null;
  event_id: string | null;
}

/** The span's columns except event_id, ids in hex. */
export const SPAN_COLUMNS = 'trace_id, to_hex(span_id) as span_id, to_hex(parent_span_id) as parent_span_id';

/** The event's place in its trace; null: only its response id is known. */
export function linkOf(span: SpanRow): SpanLink | null {
  if (span.trace_id === null || span.span_id === null) return null;
  const hex = (id: string) => id.padStart(16, '0');
  return {
    traceId: span.trace_id.replaceAll('-', ''),
    spanId: hex(span.span_id),
    parentSpanId: span.parent_span_id === null ? null : hex(span.parent_span_id),
  };
}

/** A stored event as a call; payload and prompts are not loaded. */
export function callOfStored(event: StoredEvent, trace: SpanLink | null): CallRecord {
  return {
    kind: event.kind,
    provider: event.provider as Provider,
    billedBy: event.billedBy as Biller,
    billerFromHost: event.billerFromHost,
    billerSpan: event.billerSpan === null ? null : spanOfText(event.billerSpan),
    reportedClasses: event.reportedClasses,
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
    prompts: () => [],
    promptHash: event.promptHash ?? null,
    payload: null,
    toolInput: null,
    toolOutput: null,
    service: null,
    serviceName: event.serviceName,
    scopeName: event.scopeName,
    scopeVersion: '',
    process: null,
    trace,
  };
}

const SPAN_IDENTITY = /^[0-9a-f]{32}:[0-9a-f]{16}$/;

/** A stored event's request id is the response id, unless it is an observation's or derived from the span's ids. */
function responseIdOf({ kind, requestId }: StoredEvent): string | null {
  if (kind === 'observability_generation') return null;
  return requestId === null || SPAN_IDENTITY.test(requestId) ? null : requestId;
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

export function storableOf(event: StoredEvent, call: CallRecord, prices: PriceBook): StorableEvent {
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

/** The cost of a stored event; null: unknown. */
export function knownCostOf(event: StoredEvent): Pico | null {
  return event.costSource === 'unpriced' ? null : event.costPico;
}

export const placeOf = (event: StoredEvent): EventPlace => placeAt(event.id, event.timestampMicros);
