import type { CallRecord, SpanLink } from '../../domain/events/event.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import { priceOf } from '../../domain/pricing/eventPrice.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Biller, Provider } from '../../domain/providers.js';
import { type StorableEvent, spanOfText } from './eventColumns.js';
import type { StoredEvent } from './storedEvents.js';

/** A span as call_spans keeps it. */
export interface SpanRow {
  trace_id: string | null;
  span_id: string | null;
  parent_span_id: string | null;
  event_id: string | null;
}

/** Its columns but event_id, ids in hex. */
export const SPAN_COLUMNS = 'trace_id, to_hex(span_id) as span_id, to_hex(parent_span_id) as parent_span_id';

/** Its place in its trace; null where it is known by its response id alone. */
export function linkOf(span: SpanRow): SpanLink | null {
  if (span.trace_id === null || span.span_id === null) return null;
  const hex = (id: string) => id.padStart(16, '0');
  return {
    traceId: span.trace_id.replaceAll('-', ''),
    spanId: hex(span.span_id),
    parentSpanId: span.parent_span_id === null ? null : hex(span.parent_span_id),
  };
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
    prompts: () => [],
    promptHash: event.promptHash ?? null,
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

/** A stored event in the form that its completed call gives it. */
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

/** What a stored event costs; null where nobody knows. */
export function knownCostOf(event: StoredEvent): Pico | null {
  return event.costSource === 'unpriced' ? null : event.costPico;
}

/** Where an event lies. */
export interface Place {
  id: string;
  timestamp: string;
}

export const placeOf = (event: StoredEvent): Place => ({
  id: event.id,
  timestamp: isoFromMicros(event.timestampMicros),
});
