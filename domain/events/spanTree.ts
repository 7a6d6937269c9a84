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
    // UsageReport by the span itself, whether the tree knows it or not.
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

/** A node without a parent has this one. */
export const NO_PARENT = -1;

/**
 * Distances up a forest whose nodes have one parent each, in constant time after one pass over it. Parents may form
 * circles: what sends spans may write anything.
 *
 * Each node has the interval of the numbers of all nodes below it, so that an ancestor is told by comparing two numbers.
 * A circle is cut: each of its nodes is the root of a tree, and has its place on the circle.
 */
export class Ancestry {
  readonly #root: Int32Array;
  /** Levels below the root. */
  readonly #depth: Int32Array;
  /** The first and the last number of the nodes at or below a node. */
  readonly #first: Int32Array;
  readonly #last: Int32Array;
  /** Of the roots that lie on a circle: which one, the place on it, and how many are on it. */
  readonly #circle: Int32Array;
  readonly #place: Int32Array;
  readonly #circleLength: number[] = [];

  /** @param parents the parent of each node, or NO_PARENT. */
  constructor(parents: readonly number[]) {
    const count = parents.length;
    this.#root = new Int32Array(count);
    this.#depth = new Int32Array(count);
    this.#first = new Int32Array(count);
    this.#last = new Int32Array(count);
    this.#circle = new Int32Array(count).fill(-1);
    this.#place = new Int32Array(count);
    this.#findCircles(parents);
    this.#number(parents);
  }

  /** Steps up from a node to another one: 0 for the node itself, -1 where the other lies not above it. */
  distance(from: number, to: number): number {
    const number = this.#first[from] as number;
    if ((this.#first[to] as number) <= number && number <= (this.#last[to] as number))
      return (this.#depth[from] as number) - (this.#depth[to] as number);
    const circle = this.#circle[to] as number;
    const root = this.#root[from] as number;
    if (circle === -1 || this.#circle[root] !== circle) return -1;
    const length = this.#circleLength[circle] as number;
    const around = (this.#place[to] as number) - (this.#place[root] as number);
    return (this.#depth[from] as number) + (around < 0 ? around + length : around);
  }

  #findCircles(parents: readonly number[]): void {
    const seenBy = new Int32Array(parents.length).fill(-1);
    for (let start = 0; start < parents.length; start += 1) {
      let node = start;
      while (node !== NO_PARENT && seenBy[node] === -1) {
        seenBy[node] = start;
        node = parents[node] as number;
      }
      // Met again on the walk that has just begun: a circle that no earlier walk came to.
      if (node === NO_PARENT || seenBy[node] !== start || this.#circle[node] !== -1) continue;
      const circle = this.#circleLength.length;
      let length = 0;
      for (let at = node; this.#circle[at] === -1; at = parents[at] as number) {
        this.#circle[at] = circle;
        this.#place[at] = length;
        length += 1;
      }
      this.#circleLength.push(length);
    }
  }

  #number(parents: readonly number[]): void {
    const count = parents.length;
    const firstChild = new Int32Array(count).fill(-1);
    const nextSibling = new Int32Array(count).fill(-1);
    /** From the roots down, level by level. */
    const order: number[] = [];
    for (let node = 0; node < count; node += 1) {
      const parent = parents[node] as number;
      if (parent === NO_PARENT || this.#circle[node] !== -1) {
        this.#root[node] = node;
        order.push(node);
      } else {
        nextSibling[node] = firstChild[parent] as number;
        firstChild[parent] = node;
      }
    }
    const rootCount = order.length;
    for (let at = 0; at < order.length; at += 1) {
      const node = order[at] as number;
      for (let child = firstChild[node] as number; child !== -1; child = nextSibling[child] as number) {
        this.#root[child] = this.#root[node] as number;
        this.#depth[child] = (this.#depth[node] as number) + 1;
        order.push(child);
      }
    }
    const size = new Int32Array(count).fill(1);
    for (let at = count - 1; at >= rootCount; at -= 1) {
      const node = order[at] as number;
      const parent = parents[node] as number;
      size[parent] = (size[parent] as number) + (size[node] as number);
    }
    /** The next number for a child of a node. */
    const free = new Int32Array(count);
    let next = 0;
    for (let at = 0; at < count; at += 1) {
      const node = order[at] as number;
      const nodes = size[node] as number;
      let first = next;
      if (at < rootCount) next += nodes;
      else {
        const parent = parents[node] as number;
        first = free[parent] as number;
        free[parent] = first + nodes;
      }
      this.#first[node] = first;
      this.#last[node] = first + nodes - 1;
      free[node] = first + 1;
    }
  }
}
