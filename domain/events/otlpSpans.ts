/** OTLP traces → calls. A bad span does not affect others; only a body that is not OTLP is refused as a whole. Pure. */

import { type Client, findClient } from './clients.js';
import type { CallProcess, MappedBatch, SpanLink } from './event.js';
import { ItemFault, type MapContext, shown } from './itemFault.js';
import {
  type GroupNames,
  groupsOf,
  isObject,
  type OtlpEntry,
  type OtlpSource,
  processOf,
} from './otlpGroups.js';
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
export interface SpanSource extends OtlpSource {
  client: Client | undefined;
  process: CallProcess | null;
}

/** The lists of a request that hold spans. */
export const SPAN_GROUPS: GroupNames = { resources: 'resourceSpans', scopes: 'scopeSpans', items: 'spans' };

/** Calls, rejected spans with their index, ignored spans and their links. @throws DomainError invalid_body. */
export function mapOtlpRequest(request: OtlpRequest, context: MapContext): MappedBatch {
  const batch: MappedBatch = { calls: [], rejections: [], ignored: 0, links: [] };
  let index = 0;
  let last: { entry: OtlpEntry; process: CallProcess | null } | undefined;
  for (const { source: sender, items, entry } of groupsOf(request, SPAN_GROUPS)) {
    if (last?.entry !== entry) last = { entry, process: processOf(entry.resource, entry.scopes, items[0]) };
    const { process } = last;
    const source = { ...sender, client: findClient(sender.scopeName, sender.scopeVersion), process };
    for (const span of items) {
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
