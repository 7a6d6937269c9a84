/** Traces of maximum size in whose shape it is expensive to find the spans that report the same call. */
import { randomBytes } from 'node:crypto';
import type { OtlpBody, OtlpPair, OtlpSpan } from './otlpBytes.js';

export const SPANS_MAX = 10_000;
const NANOS_A_MILLI = 1_000_000n;
const SPAN_MILLIS = 60_000n;
/** Maximum levels of a walk up a trace. */
const WALK_LEVELS = 256;

/** The parent of each span by index; undefined: a root. */
export type Parents = (index: number) => number | undefined;

export interface TraceShape {
  name: string;
  spans: number;
  parent: Parents;
  /** Traces among which the spans are divided in turn; default one. */
  traces?: number;
  /** The attributes of a span; default those of a plain call. */
  attributes?: (index: number) => OtlpPair[];
  /** The id of a span; default its index. */
  spanId?: (index: number) => number;
}

export function text(key: string, stringValue: string): OtlpPair {
  return { key, value: { stringValue } };
}

export function count(key: string, intValue: number): OtlpPair {
  return { key, value: { intValue } };
}

/** The minimum attributes of a call with usage. */
export function plainCall(model = 'gpt-4o'): OtlpPair[] {
  return [
    text('gen_ai.system', 'openai'),
    text('gen_ai.request.model', model),
    count('gen_ai.usage.input_tokens', 10),
    count('gen_ai.usage.output_tokens', 5),
  ];
}

const star: Parents = (index) => (index === 0 ? undefined : 0);
const chain: Parents = (index) => (index === 0 ? undefined : index - 1);
/** A chain with one more span at each of its spans. */
const comb: Parents = (index) => (index === 0 ? undefined : index % 2 === 1 ? index - 1 : index - 2);
/** A chain as long as a walk, with all other spans at its end. */
const brush: Parents = (index) => (index === 0 ? undefined : index <= WALK_LEVELS ? index - 1 : WALK_LEVELS);
const cycle =
  (length: number): Parents =>
  (index) =>
    index < length ? (index + 1) % length : index % length;

/** Every shape with this number of spans. */
export function traceShapes(spans = SPANS_MAX): TraceShape[] {
  const otherModel = (index: number) => plainCall(index <= WALK_LEVELS ? 'gpt-4o' : 'gpt-4o-mini');
  return [
    { name: 'star', spans, parent: star },
    { name: 'chain', spans, parent: chain },
    {
      name: 'chain, written from its end',
      spans,
      parent: (index) => (index === spans - 1 ? undefined : index + 1),
    },
    { name: 'comb', spans, parent: comb },
    { name: 'brush', spans, parent: brush },
    { name: 'brush of two models', spans, parent: brush, attributes: otherModel },
    {
      name: 'star of two models in turn',
      spans,
      parent: (index) => (index === 0 ? undefined : index % 2 === 1 ? 0 : index - 1),
      attributes: (index) => plainCall(index === 0 || index % 2 === 0 ? 'gpt-4o' : 'gpt-4o-mini'),
    },
    {
      name: 'pairs in many traces',
      spans,
      traces: spans / 2,
      parent: (index) => (index < spans / 2 ? undefined : index - spans / 2),
    },
    { name: 'many roots', spans, traces: 1, parent: () => undefined },
    { name: 'circle', spans, parent: cycle(spans) },
    { name: 'circle with a brush', spans, parent: cycle(WALK_LEVELS) },
    {
      name: 'one response id',
      spans,
      parent: star,
      attributes: () => [...plainCall(), text('gen_ai.response.id', 'chatcmpl-worst')],
    },
    {
      name: 'one response id in a chain',
      spans,
      parent: brush,
      attributes: () => [...plainCall(), text('gen_ai.response.id', 'chatcmpl-worst-chain')],
    },
    { name: 'one span id', spans, parent: () => undefined, spanId: () => 0 },
    {
      name: 'no usage',
      spans,
      parent: star,
      attributes: () => [text('gen_ai.system', 'openai'), text('gen_ai.request.model', 'gpt-4o')],
    },
  ];
}

/** The request of a shape, in new traces. */
export function bodyOfShape({ spans, parent, traces = 1, attributes, spanId }: TraceShape): OtlpBody {
  const start = BigInt(Date.now()) * NANOS_A_MILLI - SPAN_MILLIS * NANOS_A_MILLI;
  const traceIds = Array.from({ length: traces }, () => randomBytes(16).toString('hex'));
  const idOf = (index: number) => ((spanId?.(index) ?? index) + 1).toString(16).padStart(16, '0');
  const list = Array.from({ length: spans }, (_, index): OtlpSpan => {
    const outer = parent(index);
    return {
      traceId: traceIds[index % traces] as string,
      spanId: idOf(index),
      ...(outer === undefined ? {} : { parentSpanId: idOf(outer) }),
      name: 'chat',
      startTimeUnixNano: start.toString(),
      endTimeUnixNano: (start + NANOS_A_MILLI).toString(),
      attributes: attributes?.(index) ?? plainCall(),
    };
  });
  return bodyOf(list);
}

export function bodyOf(spans: OtlpSpan[], resource: OtlpPair[] = []): OtlpBody {
  return {
    resourceSpans: [
      { resource: { attributes: resource }, scopeSpans: [{ scope: { name: 'worst' }, spans }] },
    ],
  };
}
