import type { Pace, Steps } from '../steps.js';
import { DisjointSets } from '../unionFind.js';
import {
  type CallTraits,
  canBeOneCall,
  compareReports,
  isSameUsage,
  rankReports,
  responseKey,
  traitsOf,
} from './callReport.js';
import type { CallRecord, SpanLink } from './event.js';
import type { CallProofs } from './resolveCalls.js';

/** Maximum steps of a walk from a span up to another. Spans farther apart, or in a circle of links, are not nested. */
export const WALK_STEPS_MAX = 256;

/** The nesting of spans in all traces by the known links; nodes are numbered from 0. */
export class SpanTree {
  readonly #nodes = new Map<string, number>();
  readonly #parents: number[] = [];
  #ancestry: Ancestry | undefined;

  /** If two links of one span name parents, the later one counts. */
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

  /** The node of a span; undefined: no link mentions the span or its parent. */
  nodeOf(span: SpanLink): number | undefined {
    return this.#nodes.get(spanKey(span));
  }

  parentOf(node: number): number {
    return this.#parents[node] as number;
  }

  /** The node of a span's parent: by the span's own link, else by the tree's links. */
  nodeAround(span: SpanLink): number {
    if (span.parentSpanId !== null) return this.#nodes.get(span.traceId + span.parentSpanId) ?? NO_PARENT;
    const node = this.nodeOf(span);
    return node === undefined ? NO_PARENT : this.parentOf(node);
  }

  /** Whether `inner` lies inside `outer`, with any number of spans between them. */
  isInside(inner: SpanLink | null, outer: SpanLink | null): boolean {
    if (inner === null || outer === null || inner.traceId !== outer.traceId) return false;
    if (inner.spanId === outer.spanId) return false;
    // The span's own link proves it, also if the tree lacks the span.
    if (inner.parentSpanId === outer.spanId) return true;
    if (this.#parents.length === 0) return false;
    const node = this.nodeOf(outer);
    return node !== undefined && this.isAtOrInside(this.nodeAround(inner), node);
  }

  /** Whether `around`, a node that encloses a span, is `outer` or lies inside it within `WALK_STEPS_MAX`. */
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

/** The parent of a node without a parent. */
export const NO_PARENT = -1;

/**
 * Distances to ancestors in constant time. Parents may form circles; each node of a circle becomes a root with its
 * place on the circle.
 */
export class Ancestry {
  readonly #root: Int32Array;
  /** Levels below the root. */
  readonly #depth: Int32Array;
  /** Nodes are numbered in preorder: the first and last number of a node's subtree. */
  readonly #first: Int32Array;
  readonly #last: Int32Array;
  /** For roots on a circle: the circle's number, the root's place on it, and below the number of roots on it. */
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

  /** Steps up from one node to another; 0: the same node; -1: `to` is no ancestor. */
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
      // The walk returned to a node of itself: a circle that no earlier walk has found.
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
    /** The nodes from the roots down, level by level. */
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
    /** The next free preorder number for a child, by node. */
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

/** Groups calls that are one call, as proven by an id or by one span inside another. */

const WORK_OF_CALL = 128;
const WORK_OF_COMPARISON = 8;
const NONE = -1;
const NO_TREE = new SpanTree([]);

export interface CallGroups {
  /** Indices of the calls, grouped by call and ordered by the first index of each group. */
  groups: number[][];
  /** Outer spans that contain several calls and equal none of them. */
  sums: ReadonlySet<number>;
}

export function* groupCalls(
  calls: readonly CallRecord[],
  proofs: CallProofs,
  tree: SpanTree,
  pace: Pace,
): Steps<CallGroups> {
  const sets = new DisjointSets(calls.length);
  const sums = new Set<number>();
  for (const [first, ...others] of proofs.byProof.values()) {
    for (const other of others) sets.join(first as number, other);
    if (pace.isDue(WORK_OF_CALL)) yield;
  }
  const places = new Int32Array(tree.size).fill(NONE);
  for (const [outer, inners] of yield* innersByOuter(calls, proofs, tree, pace)) {
    const known = inners.map(({ index, node }) => ({ index, node, group: sets.find(index) }));
    const branches = yield* kinBranches(known, tree, places, pace);
    const { branch, isSum } = yield* chooseBranch(calls, calls[outer] as CallRecord, branches, pace);
    for (const inner of branch) sets.join(outer, inner);
    if (isSum) sums.add(outer);
  }
  const groups = new Map<number, number[]>();
  for (const index of calls.keys()) {
    const set = sets.find(index);
    const group = groups.get(set);
    if (group) group.push(index);
    else groups.set(set, [index]);
    if (pace.isDue(WORK_OF_CALL)) yield;
  }
  return { groups: [...groups.values()], sums };
}

interface Inner {
  index: number;
  node: number;
}

/** For each call that encloses others it could equal: the calls whose nearest such enclosing call it is. */
function* innersByOuter(
  calls: readonly CallRecord[],
  { bySpan }: CallProofs,
  tree: SpanTree,
  pace: Pace,
): Steps<Map<number, Inner[]>> {
  const traits: CallTraits[] = [];
  const callAt = new Int32Array(tree.size).fill(NONE);
  const placed: Inner[] = [];
  for (const index of bySpan.values()) {
    const call = calls[index] as CallRecord;
    const node = tree.nodeOf(call.trace as SpanLink);
    // The span lies neither inside nor around another one.
    if (node === undefined) continue;
    traits[index] = traitsOf(call);
    callAt[node] = index;
    placed.push({ index, node });
    if (pace.isDue(WORK_OF_CALL)) yield;
  }
  const inners = new Map<number, Inner[]>();
  for (const inner of placed) {
    const own = traits[inner.index] as CallTraits;
    let above = tree.parentOf(inner.node);
    let step = 0;
    for (; step < WALK_STEPS_MAX && above !== NO_PARENT; step += 1) {
      const outer = callAt[above] as number;
      if (outer !== NONE && outer !== inner.index && canBeOneCall(own, traits[outer] as CallTraits)) {
        const known = inners.get(outer);
        if (known) known.push(inner);
        else inners.set(outer, [inner]);
        break;
      }
      above = tree.parentOf(above);
    }
    if (pace.isDue(step * WORK_OF_COMPARISON + WORK_OF_CALL)) yield;
  }
  return inners;
}

interface Choice {
  branch: readonly number[];
  isSum: boolean;
}

/**
 * The branch that an outer span reports: with the same response id, else with the same counts. Otherwise the outer
 * span is a sum, and its labels go to the last branch.
 */
function* chooseBranch(
  calls: readonly CallRecord[],
  outer: CallRecord,
  branches: readonly (readonly number[])[],
  pace: Pace,
): Steps<Choice> {
  const [only] = branches;
  if (only !== undefined && branches.length === 1) return { branch: only, isSum: false };
  const ordered = yield* poorestFirst(calls, branches, pace);
  const last = ordered.at(-1) as readonly number[];
  const find = (isIt: (call: CallRecord) => boolean) =>
    ordered.find((branch) => branch.some((index) => isIt(calls[index] as CallRecord)));
  const key = responseKey(outer);
  const named = key === null ? undefined : find((call) => responseKey(call) === key);
  const { usage } = outer;
  if (named !== undefined || usage === null) return { branch: named ?? last, isSum: false };
  const equal = find((call) => call.usage !== null && isSameUsage(call.usage, usage));
  return { branch: equal ?? last, isSum: equal === undefined };
}

/** Branches ordered by their richest calls; only the spans' own parent links decide that one lies inside another. */
function* poorestFirst(
  calls: readonly CallRecord[],
  branches: readonly (readonly number[])[],
  pace: Pace,
): Steps<(readonly number[])[]> {
  const richest: CallRecord[] = [];
  for (const branch of branches) richest.push(yield* richestOf(calls, branch, pace));
  const isInside = (inner: number, other: number) =>
    NO_TREE.isInside((richest[inner] as CallRecord).trace, (richest[other] as CallRecord).trace);
  const compare = yield* rankReports(richest, isInside, pace);
  const order = branches.map((_, at) => at).sort(compare);
  yield;
  return order.map((at) => branches[at] as readonly number[]);
}

function* richestOf(calls: readonly CallRecord[], branch: readonly number[], pace: Pace): Steps<CallRecord> {
  let richest = calls[branch[0] as number] as CallRecord;
  for (const index of branch) {
    const call = calls[index] as CallRecord;
    if (compareReports(call, richest, NO_TREE) > 0) richest = call;
    if (pace.isDue(WORK_OF_CALL)) yield;
  }
  return richest;
}

const WORK_OF_STEP = 64;
const NO_PLACE = -1;

/** A call inside an outer call. */
export interface InnerCall {
  index: number;
  node: number;
  /** Equal for calls that are already known to be one. */
  group: number;
}

/**
 * Joins calls that are already one, or of which one lies inside the other. A branch lists its calls from the last
 * one processed, and branches are ordered by their last join.
 *
 * The calls are processed one by one. Each walks up its trace once, at most as far as nesting counts. It leaves a
 * note for calls above it that are not processed yet. The nearest processed call ends the walk, since it has left
 * notes above itself.
 *
 * @param places a list as long as the tree, filled with -1; it is filled with -1 again at the end.
 */
export function* kinBranches(
  inners: readonly InnerCall[],
  tree: SpanTree,
  places: Int32Array,
  pace: Pace,
): Steps<number[][]> {
  const [only] = inners;
  if (only !== undefined && inners.length === 1) return [[only.index]];
  for (const [at, { node }] of inners.entries()) places[node] = at;
  const branches = new Branches(inners.length);
  const notes = new Notes(inners.length);
  const placeByGroup = new Map<number, number>();
  for (const [at, { node, group }] of inners.entries()) {
    const kin: number[] = [];
    const sameGroup = placeByGroup.get(group);
    if (sameGroup === undefined) placeByGroup.set(group, at);
    else kin.push(sameGroup);
    for (const below of notes.of(at)) kin.push(below);
    let above = tree.parentOf(node);
    let step = 0;
    for (; step < WALK_STEPS_MAX && above !== NO_PARENT && above !== node; step += 1) {
      const place = places[above] as number;
      if (place !== NO_PLACE && place < at) {
        kin.push(place);
        break;
      }
      if (place !== NO_PLACE) notes.leave(place, at);
      above = tree.parentOf(above);
    }
    branches.add(at, kin);
    if (pace.isDue(step + WORK_OF_STEP)) yield;
  }
  for (const { node } of inners) places[node] = NO_PLACE;
  return branches.list().map((branch) => branch.map((at) => (inners[at] as InnerCall).index));
}

class Notes {
  readonly #first: number[];
  readonly #next: number[] = [];
  readonly #who: number[] = [];

  constructor(count: number) {
    this.#first = new Array(count).fill(NO_PLACE);
  }

  leave(place: number, who: number): void {
    this.#next.push(this.#first[place] as number);
    this.#who.push(who);
    this.#first[place] = this.#who.length - 1;
  }

  *of(place: number): Generator<number> {
    for (let at = this.#first[place] as number; at !== NO_PLACE; at = this.#next[at] as number)
      yield this.#who[at] as number;
  }
}

/** Branches as linked lists of places, so that a join copies neither list. */
class Branches {
  readonly #sets: DisjointSets;
  /** By set representative: the time of the last join, and below the first and the last place. */
  readonly #joinedAt: number[] = [];
  readonly #first: number[] = [];
  readonly #last: number[] = [];
  /** By place: the next place. */
  readonly #next: number[];

  constructor(count: number) {
    this.#sets = new DisjointSets(count);
    this.#next = new Array(count).fill(NO_PLACE);
  }

  /** Puts the next place in front of the joined branches of its kin. */
  add(place: number, kin: readonly number[]): void {
    const found = [...new Set(kin.map((other) => this.#sets.find(other)))];
    if (found.length > 1) found.sort((a, b) => (this.#joinedAt[a] as number) - (this.#joinedAt[b] as number));
    let last = place;
    for (const branch of found) {
      this.#next[last] = this.#first[branch] as number;
      last = this.#last[branch] as number;
    }
    for (const branch of found) this.#sets.join(place, branch);
    const joined = this.#sets.find(place);
    this.#joinedAt[joined] = place;
    this.#first[joined] = place;
    this.#last[joined] = last;
  }

  list(): number[][] {
    const branches: number[][] = [];
    for (const place of this.#next.keys()) {
      // The place of the last join is the first of its list.
      const branch = this.#sets.find(place);
      if (this.#joinedAt[branch] !== place) continue;
      const chain: number[] = [];
      for (let at = place; at !== NO_PLACE; at = this.#next[at] as number) chain.push(at);
      branches.push(chain);
    }
    return branches;
  }
}
