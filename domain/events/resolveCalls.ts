/**
 * One call, several spans: inside one set of calls, which tell of the same call, which of them stands for it, and
 * what the others add to it (docs/ingest.md, docs/decisions/0001). The work grows with the number of spans and not
 * with the shape of their trace, and is done in steps.
 */

import { finish, Pace, type Steps } from '../steps.js';
import { NO_PARENT } from './ancestry.js';
import { groupCalls } from './callGroups.js';
import { callIdentity, listProofs } from './callProofs.js';
import { completeTelling } from './completeTelling.js';
import type { CallRecord, SpanLink } from './event.js';
import { rankTellings } from './rankTellings.js';
import { SpanTree } from './spanTree.js';
import { compareTellings } from './telling.js';

const WORK_OF_CALL = 256;
/** Up to here calls are compared as they are. */
const PLAIN_SORT_MAX = 8;
/** Of a span that lies neither inside nor around another one. */
const NO_NODE = -2;

/** A call of the set with what became of it, in the place of the call that was given. */
export interface ResolvedCall {
  /** The call, completed where it stands for others. */
  call: CallRecord;
  /** Index of the call that stands for this one; null: it stands for itself. */
  supersededBy: number | null;
}

/** As `resolveCallsInSteps`, without a pause. */
export function resolveCalls(calls: readonly CallRecord[], links: readonly SpanLink[]): ResolvedCall[] {
  return finish(resolveCallsInSteps(calls, links));
}

/**
 * Resolves the tellings of a set, in the order given. `links` are the spans that are no calls of the set: ignored,
 * rejected or known from before. A call that is given twice stands for itself both times, since it is one event and
 * storing it again changes nothing. The result does not depend on the order.
 */
export function* resolveCallsInSteps(
  calls: readonly CallRecord[],
  links: readonly SpanLink[],
): Steps<ResolvedCall[]> {
  const resolved = calls.map((call): ResolvedCall => ({ call, supersededBy: null }));
  const pace = new Pace();
  const proofs = yield* listProofs(calls, pace);
  if (!proofs.mayRepeat) return resolved;
  const tree = new SpanTree(linksOf(calls, links));
  yield;
  const { groups, sums } = yield* groupCalls(calls, proofs, tree, pace);
  for (const members of groups) {
    if (members.length === 1) continue;
    yield* resolveGroup(resolved, { calls, members, sums, tree }, pace);
  }
  return resolved;
}

function* linksOf(calls: readonly CallRecord[], links: readonly SpanLink[]): Generator<SpanLink> {
  yield* links;
  for (const { trace } of calls) if (trace !== null) yield trace;
}

/** Indices of calls that are one call, and those of all that sum several up. */
interface Group {
  calls: readonly CallRecord[];
  members: readonly number[];
  sums: ReadonlySet<number>;
  tree: SpanTree;
}

function* resolveGroup(
  resolved: ResolvedCall[],
  { calls, members, sums, tree }: Group,
  pace: Pace,
): Steps<void> {
  const callAt = (index: number) => calls[index] as CallRecord;
  const summing = new Set(members.filter((index) => sums.has(index)).map(callAt));
  // Spans in a circle may each sum up the other; then none of them does.
  if (members.every((index) => summing.has(callAt(index)))) summing.clear();
  const tellings = members.map(callAt).filter((call) => !summing.has(call));
  const [winner, ...others] = (yield* richestFirst(tellings, tree, pace)) as [CallRecord, ...CallRecord[]];
  let call = winner;
  for (const other of [...others, ...Array.from(summing, withoutCounts)]) {
    call = completeTelling(call, other, tree);
    if (pace.isDue(WORK_OF_CALL)) yield;
  }
  const identity = callIdentity(winner);
  const stands = members.find((index) => calls[index] === winner) as number;
  for (const index of members) {
    const isSame = callIdentity(callAt(index)) === identity;
    resolved[index] = { call: isSame ? call : callAt(index), supersededBy: isSame ? null : stands };
  }
}

function* richestFirst(
  tellings: readonly CallRecord[],
  tree: SpanTree,
  pace: Pace,
): Steps<readonly CallRecord[]> {
  if (tellings.length <= PLAIN_SORT_MAX)
    return [...tellings].sort((one, other) => compareTellings(other, one, tree));
  const nodes = Int32Array.from(tellings, ({ trace }) => (trace && tree.nodeOf(trace)) ?? NO_NODE);
  const around = Int32Array.from(tellings, ({ trace }) => (trace ? tree.nodeAround(trace) : NO_PARENT));
  yield;
  const isInside = (inner: number, outer: number): boolean => {
    const node = nodes[outer] as number;
    return node !== NO_NODE && nodes[inner] !== node && tree.isAtOrInside(around[inner] as number, node);
  };
  const compare = yield* rankTellings(tellings, isInside, pace);
  const order = tellings.map((_, at) => at).sort((one, other) => compare(other, one));
  yield;
  return order.map((at) => tellings[at] as CallRecord);
}

/** A span that sums up several calls adds its labels to one of them, never its counts, its id or what it was asked. */
function withoutCounts(call: CallRecord): CallRecord {
  return { ...call, usage: null, reportedCostPico: null, promptHash: null };
}
