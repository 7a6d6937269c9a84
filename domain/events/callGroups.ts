/** Which calls of a set are one call: proven by an id, or by one span lying inside another. */
import type { Pace, Steps } from '../steps.js';
import { NO_PARENT } from './ancestry.js';
import type { CallProofs } from './callProofs.js';
import { type CallTraits, canBeOneCall, traitsOf } from './callTraits.js';
import { DisjointSets } from './disjointSets.js';
import type { CallRecord, SpanLink } from './event.js';
import { kinBranches } from './kinBranches.js';
import { rankTellings } from './rankTellings.js';
import { SpanTree, WALK_STEPS_MAX } from './spanTree.js';
import { compareTellings, isSameUsage, responseKey } from './telling.js';

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

/**
 * The branch that an outer span tells of, of several inside it: that with its response id, else with its counts.
 * When it is none of them, the outer span sums them up, and its labels go to the last.
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
  const compare = yield* rankTellings(richest, isInside, pace);
  const order = branches.map((_, at) => at).sort(compare);
  yield;
  return order.map((at) => branches[at] as readonly number[]);
}

function* richestOf(calls: readonly CallRecord[], branch: readonly number[], pace: Pace): Steps<CallRecord> {
  let richest = calls[branch[0] as number] as CallRecord;
  for (const index of branch) {
    const call = calls[index] as CallRecord;
    if (compareTellings(call, richest, NO_TREE) > 0) richest = call;
    if (pace.isDue(WORK_OF_CALL)) yield;
  }
  return richest;
}
