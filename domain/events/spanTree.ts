import { Ancestry, NO_PARENT } from './ancestry.js';
import type { SpanLink } from './event.js';

/** Spans between two that are walked over; a longer way, or a circle, is no kinship. */
export const WALK_STEPS_MAX = 256;

/**
 * What lies inside what, over all traces: from the links of spans that are known, calls and others alike. A span and a
 * parent that somebody names are nodes, numbered from 0.
 */
export class SpanTree {
  readonly #nodes = new Map<string, number>();
  readonly #parents: number[] = [];
  #ancestry: Ancestry | undefined;

  /** Where two links of one span name parents, the later one holds. */
  constructor(links: Iterable<SpanLink>) {
    for (const { traceId, spanId, parentSpanId } of links) {
      if (parentSpanId === null) continue;
      const node = this.#take(traceId + spanId);
      this.#parents[node] = this.#take(traceId + parentSpanId);
    }
  }

  #take(key: string): number {
    const known = this.#nodes.get(key);
    if (known !== undefined) return known;
    const node = this.#parents.length;
    this.#nodes.set(key, node);
    this.#parents.push(NO_PARENT);
    return node;
  }

  get size(): number {
    return this.#parents.length;
  }

  /** The node of a span; undefined where no link of the tree knows anything around or inside it. */
  nodeOf(span: SpanLink): number | undefined {
    return this.#nodes.get(spanKey(span));
  }

  parentOf(node: number): number {
    return this.#parents[node] as number;
  }

  /** The node right around a span: as the span itself says, else as the tree's links do. */
  nodeAround(span: SpanLink): number {
    if (span.parentSpanId !== null) return this.#nodes.get(span.traceId + span.parentSpanId) ?? NO_PARENT;
    const node = this.nodeOf(span);
    return node === undefined ? NO_PARENT : this.parentOf(node);
  }

  /** Whether `inner` lies inside `outer`, however many spans are between them. */
  isInside(inner: SpanLink | null, outer: SpanLink | null): boolean {
    if (inner === null || outer === null || inner.traceId !== outer.traceId) return false;
    if (inner.spanId === outer.spanId) return false;
    // Told by the span itself, whether the tree knows it or not.
    if (inner.parentSpanId === outer.spanId) return true;
    if (this.#parents.length === 0) return false;
    const node = this.nodeOf(outer);
    return node !== undefined && this.isAtOrInside(this.nodeAround(inner), node);
  }

  /** Whether a node around a span is another one, or lies inside it near enough. */
  isAtOrInside(around: number, outer: number): boolean {
    if (around === NO_PARENT) return false;
    this.#ancestry ??= new Ancestry(this.#parents);
    const steps = this.#ancestry.distance(around, outer);
    return steps !== -1 && steps < WALK_STEPS_MAX;
  }
}

function spanKey(span: SpanLink): string {
  return span.traceId + span.spanId;
}
