import type { SpanLink } from './event.js';

/** Spans between two that are walked over; a longer way, or a circle, is no kinship. */
const WALK_STEPS_MAX = 256;

/** What lies inside what, over all traces: from the links of spans that are known, calls and others alike. */
export class SpanTree {
  readonly #parents = new Map<string, string>();

  constructor(links: Iterable<SpanLink>) {
    for (const { traceId, spanId, parentSpanId } of links) {
      if (parentSpanId !== null) this.#parents.set(traceId + spanId, traceId + parentSpanId);
    }
  }

  /** The spans around this one, from the inside out, as `spanKey`s. */
  *around(span: SpanLink): Generator<string> {
    let key =
      span.parentSpanId === null ? this.#parents.get(spanKey(span)) : span.traceId + span.parentSpanId;
    for (let step = 0; key !== undefined && step < WALK_STEPS_MAX; step += 1) {
      yield key;
      key = this.#parents.get(key);
    }
  }

  /** Whether `inner` lies inside `outer`, however many spans are between them. */
  isInside(inner: SpanLink | null, outer: SpanLink | null): boolean {
    if (inner === null || outer === null || inner.traceId !== outer.traceId) return false;
    const wanted = spanKey(outer);
    if (spanKey(inner) === wanted) return false;
    for (const key of this.around(inner)) if (key === wanted) return true;
    return false;
  }
}

export function spanKey(span: SpanLink): string {
  return span.traceId + span.spanId;
}
