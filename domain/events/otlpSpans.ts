/** OTLP traces → calls. A bad span does not affect others; only a body that is not OTLP is refused as a whole. Pure. */
import { DomainError, type FieldIssue } from '../errors.js';
import { type Client, findClient } from './clients.js';
import { LABEL_CHARS_MAX, type MappedBatch, type SpanLink } from './event.js';
import { ItemFault, type MapContext, shown } from './itemFault.js';
import { stripText } from './jsonValues.js';
import { SpanAttributes } from './spanAttributes.js';
import { callOfSpan, isCallSpan } from './spanCall.js';

/**
 * An ExportTraceServiceRequest decoded from JSON or protobuf; unknown fields are ignored, 64-bit numbers may have
 * any form.
 */
export interface OtlpRequest {
  resourceSpans?: unknown;
}

export interface OtlpSpan {
  traceId?: unknown;
  spanId?: unknown;
  parentSpanId?: unknown;
  name?: unknown;
  startTimeUnixNano?: unknown;
  endTimeUnixNano?: unknown;
  attributes?: unknown;
  events?: unknown;
  status?: unknown;
}

/** A scope of a service, with the attributes that apply to all its spans. */
export interface SpanSource {
  serviceName: string;
  scopeName: string;
  scopeVersion: string;
  client: Client | undefined;
  outer: SpanAttributes;
}

/** Number of spans in a request, so that a request with too many is refused before it is mapped. */
export function countSpans(request: OtlpRequest): number {
  let count = 0;
  for (const resource of looseList((request as OtlpRequest | null)?.resourceSpans)) {
    for (const scope of looseList((resource as { scopeSpans?: unknown } | null)?.scopeSpans)) {
      count += looseList((scope as { spans?: unknown } | null)?.spans).length;
    }
  }
  return count;
}

/** The larger of the numbers of resources and scopes in a request; each costs as much as a small span. */
export function countGroups(request: OtlpRequest): number {
  const resources = looseList((request as OtlpRequest | null)?.resourceSpans);
  let scopes = 0;
  for (const resource of resources)
    scopes += looseList((resource as { scopeSpans?: unknown } | null)?.scopeSpans).length;
  return Math.max(resources.length, scopes);
}

function looseList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Calls, rejected spans with their index, ignored spans and their links. @throws DomainError invalid_body. */
export function mapOtlpRequest(request: OtlpRequest, context: MapContext): MappedBatch {
  const batch: MappedBatch = { calls: [], rejections: [], ignored: 0, links: [] };
  let index = 0;
  for (const { source, spans } of sourcesOf(request)) {
    for (const span of spans) {
      mapSpan(span, source, index, context, batch);
      index += 1;
    }
  }
  return batch;
}

function mapSpan(
  span: unknown,
  source: SpanSource,
  index: number,
  context: MapContext,
  batch: MappedBatch,
): void {
  const { serviceName, scopeName } = source;
  let link: SpanLink | null = null;
  try {
    if (typeof span !== 'object' || span === null || Array.isArray(span)) {
      throw new ItemFault('invalid_field', 'the span is not an object');
    }
    link = linkOf(span);
    const attributes = new SpanAttributes((span as OtlpSpan).attributes, source.outer);
    const name = (span as OtlpSpan).name;
    if (isCallSpan(attributes, typeof name === 'string' ? name : '')) {
      batch.calls.push(callOfSpan(span, link, attributes, source, context));
      return;
    }
    batch.ignored += 1;
  } catch (fault) {
    if (!(fault instanceof ItemFault)) throw fault;
    const { reason, message } = fault;
    batch.rejections.push({ index, label: labelOf(span), reason, message, serviceName, scopeName });
  }
  // A root ends every walk up a trace, so only links of spans with a parent are kept.
  if (link?.parentSpanId) batch.links.push(link);
}

/** Name and id of a span for messages, stripped and cut; '': it has neither. */
function labelOf(span: unknown): string {
  const { name, spanId } = isObject(span) ? span : {};
  const named = typeof name === 'string' && name !== '' ? ` "${shown(name)}"` : '';
  const identified = typeof spanId === 'string' && spanId !== '' ? `id ${shown(spanId)}` : '';
  if (named === '') return identified && `span ${identified}`;
  return `span${named}${identified && `, ${identified}`}`;
}

interface SourcedSpans {
  source: SpanSource;
  spans: readonly unknown[];
}

/** The spans by source. Checks the whole structure before the first span is mapped. */
function sourcesOf(request: OtlpRequest): SourcedSpans[] {
  const issues = new Issues();
  const sources: SourcedSpans[] = [];
  if (!isObject(request)) issues.add('body', 'must be an object with resourceSpans');
  for (const [at, resource] of listAt(request, 'resourceSpans', '', issues)) {
    const resourceAttributes = attributesOf(resource, 'resource', at, undefined, issues);
    for (const [scopeAt, scope] of listAt(resource, 'scopeSpans', `${at}.`, issues)) {
      const outer = attributesOf(scope, 'scope', scopeAt, resourceAttributes, issues);
      const spans = itemsAt(scope, 'spans', `${scopeAt}.`, issues);
      sources.push({ source: sourceOf(scope, outer), spans });
    }
  }
  issues.throwAny();
  return sources;
}

/** Maximum reported faults of a body; a body with so many has another format altogether. */
const ISSUES_MAX = 20;

class Issues {
  readonly #found: FieldIssue[] = [];

  /** @throws DomainError invalid_body at the maximum number of faults. */
  add(field: string, message: string): void {
    this.#found.push({ in: 'body', field, message });
    if (this.#found.length >= ISSUES_MAX) this.throwAny();
  }

  /** @throws DomainError invalid_body if there is any fault. */
  throwAny(): void {
    const [first] = this.#found;
    if (first === undefined) return;
    throw new DomainError('invalid_body', `${first.field}: ${first.message}`, { issues: this.#found });
  }
}

function sourceOf(scopeSpans: unknown, outer: SpanAttributes): SpanSource {
  const scope = (isObject(scopeSpans) ? scopeSpans.scope : undefined) as
    | { name?: unknown; version?: unknown }
    | undefined;
  const scopeName = shortText(scope?.name);
  const scopeVersion = shortText(scope?.version);
  return {
    serviceName: shortText(outer.label('serviceName')),
    scopeName,
    scopeVersion,
    client: findClient(scopeName, scopeVersion),
    outer,
  };
}

/** Names of services and scopes are only labels of ingest health, so long ones are cut instead of refused. */
function shortText(value: unknown): string {
  return typeof value === 'string' ? stripText(value).slice(0, LABEL_CHARS_MAX) : '';
}

function attributesOf(
  holder: unknown,
  field: 'resource' | 'scope',
  at: string,
  outer: SpanAttributes | undefined,
  issues: Issues,
): SpanAttributes {
  const part = isObject(holder) ? holder[field] : undefined;
  if (part !== undefined && part !== null && !isObject(part))
    issues.add(`${at}.${field}`, 'must be an object');
  const pairs = isObject(part) ? part.attributes : undefined;
  if (pairs !== undefined && pairs !== null && !Array.isArray(pairs)) {
    issues.add(`${at}.${field}.attributes`, 'must be a list of key and value');
    return new SpanAttributes(undefined, outer);
  }
  return new SpanAttributes(pairs, outer);
}

/** The objects of a list with their paths; any other item is a fault of the body. */
function listAt(
  holder: unknown,
  field: string,
  prefix: string,
  issues: Issues,
): [string, Record<string, unknown>][] {
  const items: [string, Record<string, unknown>][] = [];
  itemsAt(holder, field, prefix, issues).forEach((item, index) => {
    const path = `${prefix}${field}[${index}]`;
    if (isObject(item)) items.push([path, item]);
    else issues.add(path, 'must be an object');
  });
  return items;
}

/** The items of a list; absent: no items; any other value is a fault of the body. */
function itemsAt(holder: unknown, field: string, prefix: string, issues: Issues): readonly unknown[] {
  const list = isObject(holder) ? holder[field] : undefined;
  if (list === undefined || list === null) return [];
  if (Array.isArray(list)) return list;
  issues.add(`${prefix}${field}`, 'must be a list');
  return [];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const TRACE_ID = /^[0-9a-f]{32}$/;
const SPAN_ID = /^[0-9a-f]{16}$/;
const ZEROS = /^0*$/;

/** The span's place in its trace; null: its ids are not OpenTelemetry ids. */
function linkOf(span: OtlpSpan): SpanLink | null {
  const traceId = hexOf(span.traceId, TRACE_ID);
  const spanId = hexOf(span.spanId, SPAN_ID);
  if (traceId === null || spanId === null) return null;
  const parentSpanId = hexOf(span.parentSpanId, SPAN_ID);
  return { traceId, spanId, parentSpanId };
}

function hexOf(value: unknown, pattern: RegExp): string | null {
  if (typeof value !== 'string') return null;
  const hex = value.toLowerCase();
  return pattern.test(hex) && !ZEROS.test(hex) ? hex : null;
}
