/** Builders of OTLP as it comes over the wire, and the shortest ways to map it. */
import type { CallRecord, MappedBatch, Rejection } from '../../../domain/events/event.js';
import type { MapContext } from '../../../domain/events/itemFault.js';
import { mapOtlpRequest } from '../../../domain/events/otlpSpans.js';
import { microsOfDay } from '../../../domain/period.js';

/** 2026-11-20T12:00:00Z. */
export const NOW = microsOfDay('2026-11-20') + 43_200_000_000n;
export const START_NANOS = (NOW - 60_000_000n) * 1_000n;
export const TRACE_ID = '5b8efff798038103d269b633813fc60c';
export const SPAN_ID = 'eee19b7ec3c1b174';

export const context: MapContext = {
  nowMicros: NOW,
  oldestMicros: microsOfDay('2020-01-01'),
  inferProvider: (model) =>
    model.startsWith('gpt-') ? 'openai' : model.startsWith('claude-') ? 'anthropic' : undefined,
};

export type AttributeMap = { [key: string]: unknown };

/** A value as an exporter writes it. */
export function anyValue(value: unknown): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number')
    return Number.isInteger(value) ? { intValue: value } : { doubleValue: value };
  if (Array.isArray(value)) return { arrayValue: { values: value.map(anyValue) } };
  return { kvlistValue: { values: attributeList(value as AttributeMap) } };
}

export function attributeList(attributes: AttributeMap): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }));
}

export interface SpanParts {
  /** By name, or the key-values as sent. */
  attributes?: AttributeMap | object[];
  resource?: AttributeMap;
  scopeAttributes?: AttributeMap;
  scope?: string;
  version?: string;
  [field: string]: unknown;
}

export function aSpan({
  attributes = {},
  resource,
  scope,
  version,
  scopeAttributes,
  ...fields
}: SpanParts): object {
  return {
    traceId: TRACE_ID,
    spanId: SPAN_ID,
    name: 'chat',
    startTimeUnixNano: START_NANOS.toString(),
    endTimeUnixNano: (START_NANOS + 1_500_000_000n).toString(),
    attributes: Array.isArray(attributes) ? attributes : attributeList(attributes),
    ...fields,
  };
}

/** A request of one span. */
export function aRequest(parts: SpanParts): { resourceSpans: object[] } {
  return requestOf([aSpan(parts)], parts);
}

export function requestOf(spans: unknown[], parts: SpanParts = {}): { resourceSpans: object[] } {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributeList(parts.resource ?? {}) },
        scopeSpans: [
          {
            scope: {
              name: parts.scope ?? 'test-scope',
              version: parts.version ?? '1.0.0',
              attributes: attributeList(parts.scopeAttributes ?? {}),
            },
            spans,
          },
        ],
      },
    ],
  };
}

/** The fewest attributes that make a span a call. */
export const LEAST = {
  'gen_ai.system': 'openai',
  'gen_ai.request.model': 'gpt-4o',
  'gen_ai.usage.input_tokens': 10,
  'gen_ai.usage.output_tokens': 5,
};

export function mapSpan(parts: SpanParts): MappedBatch {
  return mapOtlpRequest(aRequest(parts), context);
}

/** The one call of a request; fails when there is another number of them. */
export function callOf(parts: SpanParts): CallRecord {
  const batch = mapSpan(parts);
  if (batch.calls.length !== 1) {
    throw new Error(`expected one call: ${JSON.stringify(batch.rejections)}, ${batch.ignored} ignored`);
  }
  return batch.calls[0] as CallRecord;
}

/** The call of a span that carries the least and these attributes. */
export function callWith(attributes: AttributeMap, parts: SpanParts = {}): CallRecord {
  return callOf({ ...parts, attributes: { ...LEAST, ...attributes } });
}

export function rejectionOf(parts: SpanParts): Rejection {
  const { rejections, calls } = mapSpan(parts);
  if (rejections.length !== 1)
    throw new Error(`expected one rejection, got ${rejections.length} and ${calls.length} calls`);
  return rejections[0] as Rejection;
}

/** The classes of a call in the order input, cache read, cache write, output, reasoning. */
export function classesOf(call: CallRecord): number[] | null {
  const { usage } = call;
  return usage === null
    ? null
    : [usage.input, usage.cacheRead, usage.cacheCreation, usage.output, usage.reasoning];
}
