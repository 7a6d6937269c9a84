/**
 * OTLP in protobuf (opentelemetry-proto: collector/trace/v1, trace/v1, resource/v1, common/v1), read by hand straight
 * into the shape of OTLP/JSON: faster than a reflection decoder and without its second copy (docs/decisions/0003).
 * Every field number below is the one of the specification. Unknown fields are skipped.
 */
import type { OtlpRequest, OtlpSpan } from '../../domain/events/otlpSpans.js';
import { FIXED64, LENGTH, malformed, VARINT, WireReader } from './wireReader.js';

/** Levels of lists and maps inside one attribute. */
const VALUE_DEPTH_MAX = 64;

type ReadField<T> = (reader: WireReader, message: T, end: number) => void;
/** Readers by field number and wire type: number × 8 + type, which is the field's tag. */
export type Fields<T> = readonly (ReadField<T> | undefined)[];

export function fields<T>(byTag: Record<number, ReadField<T>>): Fields<T> {
  const table: (ReadField<T> | undefined)[] = new Array(18 * 8).fill(undefined);
  for (const [tag, read] of Object.entries(byTag)) table[Number(tag)] = read;
  return table;
}

export function tag(field: number, wireType: number): number {
  return field * 8 + wireType;
}

/** Reads a message up to `end` into `message`. */
export function readMessage<T>(reader: WireReader, table: Fields<T>, message: T, end: number): T {
  reader.enter();
  while (reader.at < end) {
    const fieldTag = reader.uint32();
    const read = table[fieldTag];
    if (read === undefined) skipField(reader, fieldTag, end);
    else read(reader, message, end);
  }
  checkEnd(reader, end);
  return message;
}

function skipField(reader: WireReader, fieldTag: number, end: number): void {
  if (fieldTag < 8) throw malformed('a field has the number 0');
  reader.skip(fieldTag & 7, end);
}

function checkEnd(reader: WireReader, end: number): void {
  if (reader.at > end) throw malformed('a field is longer than what holds it');
}

/** A reader of an embedded message. */
export function inside<T, I>(
  table: Fields<I>,
  make: () => I,
  put: (message: T, inner: I) => void,
): ReadField<T> {
  return (reader, message, end) => {
    const innerEnd = reader.end(end);
    put(message, readMessage(reader, table, make(), innerEnd));
  };
}

interface AnyValue {
  stringValue?: string;
  boolValue?: boolean;
  intValue?: number | bigint;
  doubleValue?: number;
  arrayValue?: { values: AnyValue[] };
  kvlistValue?: { values: KeyValue[] };
  bytesValue?: string;
}

interface KeyValue {
  key: string;
  value: AnyValue;
}

/**
 * Reads a key-value pair. Nine of ten messages of a request are pairs and values, so they are read by hand and not
 * through a table.
 */
function readPair(reader: WireReader, end: number, depth: number): KeyValue {
  reader.enter();
  const pair: KeyValue = { key: '', value: {} };
  while (reader.at < end) {
    const fieldTag = reader.uint32();
    if (fieldTag === tag(1, LENGTH)) pair.key = reader.key(reader.end(end));
    else if (fieldTag === tag(2, LENGTH)) {
      const innerEnd = reader.end(end);
      pair.value = readValue(reader, pair.value, innerEnd, depth);
    } else skipField(reader, fieldTag, end);
  }
  checkEnd(reader, end);
  return pair;
}

/** Reads an AnyValue: the last written field of its oneof wins, and lists written in parts are concatenated. */
function readValue(reader: WireReader, before: AnyValue, end: number, depth: number): AnyValue {
  reader.enter();
  let value = before;
  while (reader.at < end) {
    const fieldTag = reader.uint32();
    switch (fieldTag) {
      case tag(1, LENGTH):
        value = { stringValue: reader.text(reader.end(end)) };
        break;
      case tag(2, VARINT):
        value = { boolValue: reader.int64() !== 0 };
        break;
      case tag(3, VARINT):
        value = { intValue: reader.int64() };
        break;
      case tag(4, FIXED64):
        value = { doubleValue: reader.double() };
        break;
      case tag(5, LENGTH):
        value = {
          arrayValue: { values: readItems(reader, value.arrayValue?.values ?? [], end, depth, readItem) },
        };
        break;
      case tag(6, LENGTH):
        value = {
          kvlistValue: { values: readItems(reader, value.kvlistValue?.values ?? [], end, depth, readPair) },
        };
        break;
      case tag(7, LENGTH):
        value = { bytesValue: reader.base64(reader.end(end)) };
        break;
      default:
        skipField(reader, fieldTag, end);
    }
  }
  checkEnd(reader, end);
  return value;
}

const readItem = (reader: WireReader, end: number, depth: number): AnyValue =>
  readValue(reader, {}, end, depth);

/** Reads a list whose items are its field 1. */
function readItems<I>(
  reader: WireReader,
  items: I[],
  limit: number,
  depth: number,
  readOne: (reader: WireReader, end: number, depth: number) => I,
): I[] {
  if (depth >= VALUE_DEPTH_MAX) throw malformed(`an attribute nests deeper than ${VALUE_DEPTH_MAX} levels`);
  const end = reader.end(limit);
  while (reader.at < end) {
    const fieldTag = reader.uint32();
    if (fieldTag === tag(1, LENGTH)) items.push(readOne(reader, reader.end(end), depth + 1));
    else skipField(reader, fieldTag, end);
  }
  checkEnd(reader, end);
  return items;
}

export interface Attributed {
  attributes: KeyValue[];
}

export const readAttribute: ReadField<Attributed> = (reader, message, end) => {
  message.attributes.push(readPair(reader, reader.end(end), 0));
};

interface SpanEvent extends Attributed {
  timeUnixNano?: bigint;
  name?: string;
}

const SPAN_EVENT: Fields<SpanEvent> = fields<SpanEvent>({
  [tag(1, FIXED64)]: (reader, event) => {
    event.timeUnixNano = reader.fixed64();
  },
  [tag(2, LENGTH)]: (reader, event, end) => {
    event.name = reader.text(reader.end(end));
  },
  [tag(3, LENGTH)]: readAttribute,
});

interface Status {
  message?: string;
  code?: number;
}

const STATUS: Fields<Status> = fields<Status>({
  [tag(2, LENGTH)]: (reader, status, end) => {
    status.message = reader.text(reader.end(end));
  },
  [tag(3, VARINT)]: (reader, status) => {
    status.code = reader.uint32();
  },
});

interface Span extends OtlpSpan, Attributed {
  attributes: KeyValue[];
  events?: SpanEvent[];
}

const SPAN: Fields<Span> = fields<Span>({
  [tag(1, LENGTH)]: (reader, span, end) => {
    span.traceId = reader.hex(reader.end(end));
  },
  [tag(2, LENGTH)]: (reader, span, end) => {
    span.spanId = reader.hex(reader.end(end));
  },
  [tag(4, LENGTH)]: (reader, span, end) => {
    span.parentSpanId = reader.hex(reader.end(end));
  },
  [tag(5, LENGTH)]: (reader, span, end) => {
    span.name = reader.text(reader.end(end));
  },
  [tag(7, FIXED64)]: (reader, span) => {
    span.startTimeUnixNano = reader.fixed64();
  },
  [tag(8, FIXED64)]: (reader, span) => {
    span.endTimeUnixNano = reader.fixed64();
  },
  [tag(9, LENGTH)]: readAttribute,
  [tag(11, LENGTH)]: inside(
    SPAN_EVENT,
    (): SpanEvent => ({ attributes: [] }),
    (span, event) => {
      if (span.events === undefined) span.events = [event];
      else span.events.push(event);
    },
  ),
  [tag(15, LENGTH)]: inside(
    STATUS,
    (): Status => ({}),
    (span, status) => {
      span.status = status;
    },
  ),
});

export interface Scope extends Attributed {
  name?: string;
  version?: string;
}

export const SCOPE: Fields<Scope> = fields<Scope>({
  [tag(1, LENGTH)]: (reader, scope, end) => {
    scope.name = reader.text(reader.end(end));
  },
  [tag(2, LENGTH)]: (reader, scope, end) => {
    scope.version = reader.text(reader.end(end));
  },
  [tag(3, LENGTH)]: readAttribute,
});

export const RESOURCE: Fields<Attributed> = fields<Attributed>({
  [tag(1, LENGTH)]: readAttribute,
});

interface ScopeSpans {
  scope?: Scope;
  spans: Span[];
}

export const newAttributed = (): Attributed => ({ attributes: [] });

const SCOPE_SPANS: Fields<ScopeSpans> = fields<ScopeSpans>({
  [tag(1, LENGTH)]: inside(SCOPE, newAttributed as () => Scope, (scopeSpans, scope) => {
    scopeSpans.scope = scope;
  }),
  [tag(2, LENGTH)]: inside(SPAN, newAttributed as () => Span, (scopeSpans, span) =>
    scopeSpans.spans.push(span),
  ),
});

interface ResourceSpans {
  resource?: Attributed;
  scopeSpans: ScopeSpans[];
}

const RESOURCE_SPANS: Fields<ResourceSpans> = fields<ResourceSpans>({
  [tag(1, LENGTH)]: inside(RESOURCE, newAttributed, (resourceSpans, resource) => {
    resourceSpans.resource = resource;
  }),
  [tag(2, LENGTH)]: inside(
    SCOPE_SPANS,
    (): ScopeSpans => ({ spans: [] }),
    (resourceSpans, scopeSpans) => resourceSpans.scopeSpans.push(scopeSpans),
  ),
});

const REQUEST: Fields<{ resourceSpans: ResourceSpans[] }> = fields<{ resourceSpans: ResourceSpans[] }>({
  [tag(1, LENGTH)]: inside(
    RESOURCE_SPANS,
    (): ResourceSpans => ({ scopeSpans: [] }),
    (request, resourceSpans) => request.resourceSpans.push(resourceSpans),
  ),
});

interface LogRecord extends Attributed {
  timeUnixNano?: bigint;
  observedTimeUnixNano?: bigint;
  body?: AnyValue;
  eventName?: string;
}

const LOG_RECORD: Fields<LogRecord> = fields<LogRecord>({
  [tag(1, FIXED64)]: (reader, record) => {
    record.timeUnixNano = reader.fixed64();
  },
  [tag(5, LENGTH)]: (reader, record, end) => {
    record.body = readValue(reader, record.body ?? {}, reader.end(end), 0);
  },
  [tag(6, LENGTH)]: readAttribute,
  [tag(11, FIXED64)]: (reader, record) => {
    record.observedTimeUnixNano = reader.fixed64();
  },
  [tag(12, LENGTH)]: (reader, record, end) => {
    record.eventName = reader.text(reader.end(end));
  },
});

interface ScopeLogs {
  scope?: Scope;
  logRecords: LogRecord[];
}

const SCOPE_LOGS: Fields<ScopeLogs> = fields<ScopeLogs>({
  [tag(1, LENGTH)]: inside(SCOPE, newAttributed as () => Scope, (scopeLogs, scope) => {
    scopeLogs.scope = scope;
  }),
  [tag(2, LENGTH)]: inside(LOG_RECORD, newAttributed as () => LogRecord, (scopeLogs, record) =>
    scopeLogs.logRecords.push(record),
  ),
});

interface ResourceLogs {
  resource?: Attributed;
  scopeLogs: ScopeLogs[];
}

const RESOURCE_LOGS: Fields<ResourceLogs> = fields<ResourceLogs>({
  [tag(1, LENGTH)]: inside(RESOURCE, newAttributed, (resourceLogs, resource) => {
    resourceLogs.resource = resource;
  }),
  [tag(2, LENGTH)]: inside(
    SCOPE_LOGS,
    (): ScopeLogs => ({ logRecords: [] }),
    (resourceLogs, scopeLogs) => resourceLogs.scopeLogs.push(scopeLogs),
  ),
});

interface LogsRequest {
  resourceLogs: ResourceLogs[];
}

const LOGS_REQUEST: Fields<LogsRequest> = fields<LogsRequest>({
  [tag(1, LENGTH)]: inside(
    RESOURCE_LOGS,
    (): ResourceLogs => ({ scopeLogs: [] }),
    (request, resourceLogs) => request.resourceLogs.push(resourceLogs),
  ),
});

/** Decodes an ExportLogsServiceRequest. @throws DomainError invalid_protobuf for malformed bytes. */
export function decodeLogsRequest(bytes: Uint8Array): LogsRequest {
  const reader = new WireReader(bytes);
  return readMessage(reader, LOGS_REQUEST, { resourceLogs: [] }, reader.length);
}

/**
 * Decodes an ExportTraceServiceRequest. Ids are lower-case hex, times bigints, an int64 is a number while exact.
 * @throws DomainError invalid_protobuf for malformed bytes.
 */
export function decodeTraceRequest(bytes: Uint8Array): OtlpRequest {
  const reader = new WireReader(bytes);
  return readMessage(reader, REQUEST, { resourceSpans: [] }, reader.length);
}

/** The rejected items in an answer; `rejectedSpans` is an int64, in OTLP/JSON a decimal text. */
export interface PartialSuccess {
  rejectedSpans: string | number | bigint;
  errorMessage: string;
}

/** Encodes an Export…ServiceResponse, which has one form for all signals: empty when all items were accepted. */
export function encodeExportResponse(partial: PartialSuccess | undefined): Buffer {
  if (partial === undefined) return Buffer.alloc(0);
  const parts: number[] = [];
  const rejected = BigInt(partial.rejectedSpans);
  if (rejected > 0n) parts.push(tag(1, VARINT), ...varint(rejected));
  const message = Buffer.from(partial.errorMessage, 'utf8');
  const head = message.length === 0 ? [] : [tag(2, LENGTH), ...varint(BigInt(message.length))];
  const body = Buffer.concat([Buffer.from([...parts, ...head]), message]);
  return Buffer.concat([Buffer.from([tag(1, LENGTH), ...varint(BigInt(body.length))]), body]);
}

function varint(value: bigint): number[] {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7fn) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return bytes;
}
