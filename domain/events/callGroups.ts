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

/** Spans between two that are walked over; a longer way, or a circle, is no kinship. */
export const WALK_STEPS_MAX = 256;

/** Which span lies inside which, over all traces, by the known links; nodes are numbered from 0. */
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

/** Distances up a forest in constant time; parents may form circles, each cut into roots with places on the circle. */
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

/** Which calls of a set are one call: proven by an id, or by one span lying inside another. */

const WORK_OF_CALL = 128;
const WORK_OF_COMPARISON = 8;
const NONE = -1;
const NO_TREE = new SpanTree([]);

export interface CallGroups {
  /** Indices of the calls by call, in the order of their first ones. */
  groups: number[][];
  /** Outer spans that several calls lie in and that equal none of them. */
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

/** For each call that lies around others of its kind: those of which it is the nearest one around. */
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
    // Neither inside nor around anything.
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

/** The branch that an outer span reports: same response id, else same counts; else it sums up and labels the last. */
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

/** Branches by their richest calls, of which only the spans' own word tells that one lies inside another. */
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

/** A call inside an outer one. */
export interface InnerCall {
  index: number;
  node: number;
  /** Equal for calls that are known to be one already. */
  group: number;
}

/**
 * Puts calls together that are one already, or of which one lies inside the other. A branch lists its calls from the
 * one that was taken up last, and the branches stand in the order in which they were last joined.
 *
 * The calls are taken up one by one, and each walks up its trace once, not farther than kinship goes. A call above it
 * that is still to come is left a note; the nearest one that has been taken up ends the walk, since it has left notes
 * above itself.
 *
 * @param places a list as long as the tree, filled with -1; it is so again when the work is done.
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

/** Branches as chains of places, so that two are joined without copying either. */
class Branches {
  readonly #sets: DisjointSets;
  /** By what the sets find: when it was last joined, its first place and its last one. */
  readonly #joinedAt: number[] = [];
  readonly #first: number[] = [];
  readonly #last: number[] = [];
  /** By place: the one behind it. */
  readonly #next: number[];

  constructor(count: number) {
    this.#sets = new DisjointSets(count);
    this.#next = new Array(count).fill(NO_PLACE);
  }

  /** Adds the next place in front of the branches of its kin. */
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
      // The place by which a branch was last joined is the first of its chain.
      const branch = this.#sets.find(place);
      if (this.#joinedAt[branch] !== place) continue;
      const chain: number[] = [];
      for (let at = place; at !== NO_PLACE; at = this.#next[at] as number) chain.push(at);
      branches.push(chain);
    }
    return branches;
  }
}
