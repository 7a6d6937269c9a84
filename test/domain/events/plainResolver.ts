/**
 * The rules of resolving, written down as plainly as they can be: every pair of calls is compared and every walk up a
 * trace is walked. Too slow for the product, which is held against it.
 */

import type { SpanTree } from '../../../domain/events/callGroups.js';
import {
  compareReports,
  couldBeOneCall,
  isSameUsage,
  mergeReport,
  responseKey,
} from '../../../domain/events/callReport.js';
import type { CallRecord, SpanLink } from '../../../domain/events/event.js';
import type { ResolvedCall } from '../../../domain/events/resolveCalls.js';

const WALK_STEPS_MAX = 256;

/** Nesting of spans, by walking the parents. */
export class PlainTree {
  readonly #parents = new Map<string, string>();

  constructor(links: readonly SpanLink[]) {
    for (const { traceId, spanId, parentSpanId } of links)
      if (parentSpanId !== null) this.#parents.set(traceId + spanId, traceId + parentSpanId);
  }

  around(span: SpanLink): string[] {
    const keys: string[] = [];
    let key =
      span.parentSpanId === null
        ? this.#parents.get(span.traceId + span.spanId)
        : span.traceId + span.parentSpanId;
    while (key !== undefined && keys.length < WALK_STEPS_MAX) {
      keys.push(key);
      key = this.#parents.get(key);
    }
    return keys;
  }

  isInside(inner: SpanLink | null, outer: SpanLink | null): boolean {
    if (inner === null || outer === null || inner.traceId !== outer.traceId) return false;
    return inner.spanId !== outer.spanId && this.around(inner).includes(outer.traceId + outer.spanId);
  }
}

/** The type that the product's comparisons take. */
const asTree = (tree: PlainTree) => tree as unknown as SpanTree;
const NO_TREE = asTree(new PlainTree([]));

export function resolvePlainly(calls: readonly CallRecord[], links: readonly SpanLink[]): ResolvedCall[] {
  const plainTree = new PlainTree([...links, ...calls.flatMap(({ trace }) => trace ?? [])]);
  const tree = asTree(plainTree);
  const callAt = (index: number) => calls[index] as CallRecord;
  const { groupOf, sums } = groupPlainly(calls, plainTree);
  return calls.map((own, index): ResolvedCall => {
    const members = [...calls.keys()].filter((other) => groupOf[other] === groupOf[index]);
    if (members.length === 1) return { call: own, supersededBy: null };
    let summing = [...new Set(members.filter((member) => sums.has(member)).map(callAt))];
    if (members.every((member) => summing.includes(callAt(member)))) summing = [];
    const [winner, ...others] = members
      .map(callAt)
      .filter((call) => !summing.includes(call))
      .sort((one, other) => compareReports(other, one, tree)) as [CallRecord, ...CallRecord[]];
    if (identityOf(own) !== identityOf(winner)) return { call: own, supersededBy: calls.indexOf(winner) };
    let call = winner;
    for (const other of others) call = mergeReport(call, other, tree);
    for (const sum of summing)
      call = mergeReport(call, { ...sum, usage: null, reportedCostPico: null, promptHash: null }, tree);
    return { call, supersededBy: null };
  });
}

function identityOf(call: CallRecord): string {
  return `${call.provider} ${call.requestId} ${call.startMicros} ${call.model} ${call.status === 'blocked'}`;
}

/** A number for each call, equal for those that are one, and the outer spans that sum up several. */
function groupPlainly(calls: readonly CallRecord[], tree: PlainTree) {
  const groupOf = [...calls.keys()];
  const unite = (one: number, other: number) => {
    const [a, b] = [groupOf[one] as number, groupOf[other] as number];
    for (const index of groupOf.keys()) if (groupOf[index] === b) groupOf[index] = a;
  };
  const callAt = (index: number) => calls[index] as CallRecord;
  const known = [...calls.keys()].filter(
    (index) => responseKey(callAt(index)) !== null || callAt(index).trace !== null,
  );
  for (const one of known) {
    for (const other of known) {
      const key = responseKey(callAt(one));
      if (identityOf(callAt(one)) === identityOf(callAt(other))) unite(one, other);
      if (key !== null && key === responseKey(callAt(other))) unite(one, other);
    }
  }
  const bySpan = new Map<string, number>();
  for (const index of known) {
    const { trace } = callAt(index);
    if (trace !== null) bySpan.set(trace.traceId + trace.spanId, index);
  }
  const innersByOuter = new Map<number, number[]>();
  for (const inner of bySpan.values()) {
    const outer = tree
      .around(callAt(inner).trace as SpanLink)
      .map((key) => bySpan.get(key))
      .find((one) => one !== undefined && one !== inner && couldBeOneCall(callAt(inner), callAt(one)));
    if (outer !== undefined) innersByOuter.set(outer, [...(innersByOuter.get(outer) ?? []), inner]);
  }
  const sums = new Set<number>();
  for (const [outer, inners] of innersByOuter) {
    const isKin = (one: number, other: number) => {
      const [a, b] = [callAt(one).trace, callAt(other).trace];
      return groupOf[one] === groupOf[other] || tree.isInside(a, b) || tree.isInside(b, a);
    };
    let branches: number[][] = [];
    for (const inner of inners) {
      const kin = branches.filter((branch) => branch.some((other) => isKin(inner, other)));
      branches = [...branches.filter((branch) => !kin.includes(branch)), [inner, ...kin.flat()]];
    }
    const { branch, isSum } = choosePlainly(calls, callAt(outer), branches);
    for (const inner of branch) unite(outer, inner);
    if (isSum) sums.add(outer);
  }
  return { groupOf, sums };
}

function choosePlainly(calls: readonly CallRecord[], outer: CallRecord, branches: readonly number[][]) {
  const [only] = branches;
  if (only !== undefined && branches.length === 1) return { branch: only, isSum: false };
  const callAt = (index: number) => calls[index] as CallRecord;
  const richestOf = (branch: readonly number[]) =>
    branch.map(callAt).reduce((best, call) => (compareReports(call, best, NO_TREE) > 0 ? call : best));
  const ordered = [...branches].sort((a, b) => compareReports(richestOf(a), richestOf(b), NO_TREE));
  const last = ordered.at(-1) as number[];
  const key = responseKey(outer);
  const named = ordered.find(
    (branch) => key !== null && branch.some((index) => responseKey(callAt(index)) === key),
  );
  const { usage } = outer;
  if (named !== undefined || usage === null) return { branch: named ?? last, isSum: false };
  const equal = ordered.find((branch) =>
    branch.some((index) => {
      const inner = callAt(index).usage;
      return inner !== null && isSameUsage(inner, usage);
    }),
  );
  return { branch: equal ?? last, isSum: equal === undefined };
}
