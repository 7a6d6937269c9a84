import { DomainError } from '../../domain/errors.js';
import { LOG_GROUPS, mapLogRequest } from '../../domain/events/agentLogs.js';
import { countPoints, METRIC_GROUPS, mapMetricsRequest } from '../../domain/events/agentMetrics.js';
import { INGEST_ITEMS_MAX, type MappedBatch } from '../../domain/events/event.js';
import type { MapContext } from '../../domain/events/itemFault.js';
import { mapLiteLlmPayloads } from '../../domain/events/litellm/litellmCalls.js';
import { listLangfuseItems, readLangfuseItems } from '../../domain/events/observations/langfuseBatch.js';
import { mapObservation } from '../../domain/events/observations/observation.js';
import { countGroups, countItems, type GroupNames } from '../../domain/events/otlpGroups.js';
import { mapOtlpRequest, type OtlpRequest, SPAN_GROUPS } from '../../domain/events/otlpSpans.js';
import { mapSdkEvents } from '../../domain/events/sdkEvents.js';
import { parseJson } from '../../domain/parseJson.js';
import { decodeMetricsRequest } from '../otlp/metrics.js';
import { decodeLogsRequest, decodeTraceRequest } from '../otlp/protobuf.js';

/** The forms of sent calls. */
export type BodyKind =
  | 'otlp_json'
  | 'otlp_protobuf'
  | 'logs_json'
  | 'logs_protobuf'
  | 'metrics_json'
  | 'metrics_protobuf'
  | 'observation'
  | 'langfuse'
  | 'litellm_json'
  | 'litellm_lines'
  | 'events_json'
  | 'events_lines';

/** A body whose items are counted and not yet judged. */
export interface DecodedBody {
  items: number;
  /** Errors: invalid_body, and unknown_observation_type for types that are not mapped. */
  map(context: MapContext): MappedBatch;
}

/** Errors: invalid_json, json_too_deep, invalid_protobuf, invalid_body, too_many_items. */
export function decodeBody(kind: BodyKind, bytes: Buffer): DecodedBody {
  switch (kind) {
    case 'otlp_json':
      return otlpOf(parseJson(bytes) as OtlpRequest, SPAN_GROUPS, mapOtlpRequest);
    case 'otlp_protobuf':
      return otlpOf(decodeTraceRequest(bytes), SPAN_GROUPS, mapOtlpRequest);
    case 'logs_json':
      return otlpOf(parseJson(bytes), LOG_GROUPS, mapLogRequest);
    case 'logs_protobuf':
      return otlpOf(decodeLogsRequest(bytes), LOG_GROUPS, mapLogRequest);
    case 'metrics_json':
      return metricsOf(parseJson(bytes));
    case 'metrics_protobuf':
      return metricsOf(decodeMetricsRequest(bytes));
    case 'observation': {
      const observation = parseJson(bytes);
      return { items: 1, map: (context) => mapObservation(observation, context) };
    }
    case 'langfuse': {
      const items = listLangfuseItems(parseJson(bytes));
      if (items.length > INGEST_ITEMS_MAX) throw tooManyItems(items.length);
      return { items: items.length, map: () => readLangfuseItems(items) };
    }
    case 'litellm_json':
      return litellmOf(listOf(parseJson(bytes)));
    case 'litellm_lines':
      return litellmOf(readLines(bytes));
    case 'events_json':
      return eventsOf(readEvents(parseJson(bytes)));
    case 'events_lines':
      return eventsOf(readLines(bytes));
  }
}

function otlpOf<T>(
  request: T,
  names: GroupNames,
  map: (request: T, context: MapContext) => MappedBatch,
): DecodedBody {
  const items = countItems(request, names);
  if (items > INGEST_ITEMS_MAX) throw tooManyItems(items);
  const groups = countGroups(request, names);
  if (groups > INGEST_ITEMS_MAX) throw tooManyItems(groups);
  return { items, map: (context) => map(request, context) };
}

/** A data point is an item. */
function metricsOf(request: unknown): DecodedBody {
  const items = countPoints(request);
  const groups = countGroups(request, METRIC_GROUPS);
  if (Math.max(items, groups) > INGEST_ITEMS_MAX) throw tooManyItems(Math.max(items, groups));
  return { items, map: (context) => mapMetricsRequest(request, context) };
}

/** One payload comes without a list. */
const listOf = (body: unknown): readonly unknown[] => (Array.isArray(body) ? body : [body]);

function litellmOf(payloads: readonly unknown[]): DecodedBody {
  if (payloads.length > INGEST_ITEMS_MAX) throw tooManyItems(payloads.length);
  return { items: payloads.length, map: (context) => mapLiteLlmPayloads(payloads, context) };
}

function eventsOf(events: readonly unknown[]): DecodedBody {
  if (events.length > INGEST_ITEMS_MAX) throw tooManyItems(events.length);
  return { items: events.length, map: (context) => mapSdkEvents(events, context) };
}

function tooManyItems(count: number): DomainError {
  return new DomainError(
    'too_many_items',
    `the body has ${count} items; send at most ${INGEST_ITEMS_MAX} in one request`,
  );
}

function readEvents(body: unknown): unknown[] {
  const items = typeof body === 'object' && body !== null && 'events' in body ? body.events : body;
  if (Array.isArray(items)) return items;
  throw new DomainError('invalid_body', 'events: must be an array of events', {
    issues: [{ in: 'body', field: 'events', message: 'must be an array of events' }],
  });
}

const LINE_FEED = 0x0a;

function readLines(bytes: Buffer): unknown[] {
  const items: unknown[] = [];
  let start = 0;
  for (let line = 1; start < bytes.length; line += 1) {
    const newline = bytes.indexOf(LINE_FEED, start);
    const end = newline === -1 ? bytes.length : newline;
    const text = bytes.subarray(start, end);
    start = end + 1;
    if (isBlank(text)) continue;
    if (items.length > INGEST_ITEMS_MAX) throw tooManyItems(items.length);
    try {
      items.push(parseJson(text));
    } catch (error) {
      if (error instanceof DomainError) throw new DomainError(error.code, `line ${line}: ${error.message}`);
      throw error;
    }
  }
  return items;
}

const SPACE = 0x20;
const TAB = 0x09;
const CARRIAGE_RETURN = 0x0d;
const FORM_FEED = 0x0c;
const VERTICAL_TAB = 0x0b;
const NO_BREAK_SPACE = 0xa0;
const BLANKS = new Set([SPACE, TAB, CARRIAGE_RETURN, FORM_FEED, VERTICAL_TAB, NO_BREAK_SPACE]);

function isBlank(line: Buffer): boolean {
  for (const byte of line) if (!BLANKS.has(byte)) return false;
  return true;
}
