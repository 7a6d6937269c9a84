/**
 * One call, several spans: inside one set of calls, which tell of the same call, which of them stands for it, and
 * what the others add to it (docs/ingest.md, decisions.md 121).
 */

import { completeTelling, copyOf } from './completeTelling.js';
import type { CallRecord, SpanLink } from './event.js';
import { SpanTree, spanKey } from './spanTree.js';
import { compareTellings, couldBeOneCall, isSameUsage, responseKey } from './telling.js';

/** A call of the set with what became of it, in the place of the call that was given. */
export interface ResolvedCall {
  /** The call, completed where it stands for others. */
  call: CallRecord;
  /** Index of the call that stands for this one; null: it stands for itself. */
  supersededBy: number | null;
}

/**
 * Resolves the tellings of a set, in the order given. `links` are the spans that are no calls of the set: ignored,
 * rejected or known from before. A call that is given twice stands for itself both times: storing it is idempotent.
 * The result does not depend on the order.
 */
export function resolveCalls(calls: readonly CallRecord[], links: readonly SpanLink[]): ResolvedCall[] {
  const resolved = calls.map((call): ResolvedCall => ({ call, supersededBy: null }));
  const set = new CallSet(calls);
  if (!set.mayRepeat) return resolved;
  const tree = new SpanTree(linksOf(calls, links));
  for (const [first, ...others] of set.groups(tree)) {
    if (first === undefined || others.length === 0) continue;
    const at = (index: number) => calls[index] as CallRecord;
    const members = [first, ...others];
    const counting = members.filter((index) => !set.sums.has(index));
    const winner = counting.reduce((best, index) =>
      compareTellings(at(index), at(best), tree) > 0 ? index : best,
    );
    let call = at(winner);
    for (const index of members) {
      if (index !== winner)
        call = completeTelling(call, set.sums.has(index) ? withoutCounts(at(index)) : at(index), tree);
    }
    for (const index of members) {
      (resolved[index] as ResolvedCall).supersededBy = index === winner ? null : winner;
    }
    (resolved[winner] as ResolvedCall).call = call;
  }
  set.repeats.forEach((original, index) => {
    const { call, supersededBy } = resolved[original] as ResolvedCall;
    resolved[index] = { call, supersededBy };
  });
  return resolved;
}

function* linksOf(calls: readonly CallRecord[], links: readonly SpanLink[]): Generator<SpanLink> {
  yield* links;
  for (const { trace } of calls) if (trace !== null) yield trace;
}

/** A span that sums up several calls adds its labels to one of them, never its counts or its id. */
function withoutCounts(call: CallRecord): CallRecord {
  const copy = copyOf(call);
  copy.usage = null;
  copy.reportedCostPico = null;
  return copy;
}

class CallSet {
  /** Whether any two calls share a response id or a trace: else nothing can be told twice. */
  mayRepeat = false;
  /** Index of a call → index of the same call earlier in the set. */
  readonly repeats = new Map<number, number>();
  /** Outer spans that several calls lie in and that equal none of them. */
  readonly sums = new Set<number>();
  readonly #calls: readonly CallRecord[];
  readonly #bySpan = new Map<string, number>();
  readonly #byResponse = new Map<string, number[]>();
  readonly #roots: number[];

  constructor(calls: readonly CallRecord[]) {
    this.#calls = calls;
    this.#roots = calls.map((_, index) => index);
    const traces = new Set<string>();
    const known = new Map<string, number>();
    calls.forEach((call, index) => {
      const key = responseKey(call);
      if (key === null && call.trace === null) return;
      // As unique as the event: the same request of the same model at the same time.
      const identity = `${call.provider} ${call.requestId} ${call.startMicros} ${call.model}`;
      const earlier = known.get(identity);
      if (earlier !== undefined) {
        this.repeats.set(index, earlier);
        this.mayRepeat = true;
        return;
      }
      known.set(identity, index);
      if (key !== null) {
        const same = this.#byResponse.get(key);
        if (same) same.push(index);
        else this.#byResponse.set(key, [index]);
        if (same) this.mayRepeat = true;
      }
      if (call.trace !== null) {
        if (traces.has(call.trace.traceId)) this.mayRepeat = true;
        traces.add(call.trace.traceId);
        this.#bySpan.set(spanKey(call.trace), index);
      }
    });
  }

  /** Indices of the calls by call. */
  groups(tree: SpanTree): number[][] {
    for (const [first, ...others] of this.#byResponse.values()) {
      for (const other of others) this.#unite(first as number, other);
    }
    for (const [outer, inners] of this.#innersByOuter(tree)) this.#unite(outer, this.#choose(outer, inners));
    const groups = new Map<number, number[]>();
    this.#calls.forEach((_, index) => {
      if (this.repeats.has(index)) return;
      const root = this.#rootOf(index);
      const group = groups.get(root);
      if (group) group.push(index);
      else groups.set(root, [index]);
    });
    return [...groups.values()];
  }

  /** For each call that lies around others of its kind: those of which it is the nearest one around. */
  #innersByOuter(tree: SpanTree): Map<number, number[]> {
    const inners = new Map<number, number[]>();
    for (const inner of this.#bySpan.values()) {
      const call = this.#calls[inner] as CallRecord;
      for (const key of tree.around(call.trace as SpanLink)) {
        const outer = this.#bySpan.get(key);
        if (outer === undefined || outer === inner) continue;
        if (!couldBeOneCall(call, this.#calls[outer] as CallRecord)) continue;
        inners.set(outer, [...(inners.get(outer) ?? []), inner]);
        break;
      }
    }
    return inners;
  }

  /**
   * The one of several calls inside an outer span that the outer span tells of: that with its response id, else with
   * its counts. When it is none of them, the outer span sums them up, and its labels go to the last.
   */
  #choose(outer: number, inners: readonly number[]): number {
    const call = (index: number) => this.#calls[index] as CallRecord;
    const ordered = [...inners].sort((a, b) => compareTellings(call(a), call(b), NO_TREE));
    const last = ordered[ordered.length - 1] as number;
    if (ordered.length === 1) return last;
    const key = responseKey(call(outer));
    const named = key === null ? undefined : ordered.find((index) => responseKey(call(index)) === key);
    if (named !== undefined) return named;
    const { usage } = call(outer);
    if (usage === null) return last;
    const equal = ordered.find((index) => {
      const inner = call(index).usage;
      return inner !== null && isSameUsage(inner, usage);
    });
    if (equal === undefined) this.sums.add(outer);
    return equal ?? last;
  }

  #rootOf(index: number): number {
    let root = index;
    while (this.#roots[root] !== root) root = this.#roots[root] as number;
    this.#roots[index] = root;
    return root;
  }

  #unite(one: number, other: number): void {
    const [low, high] = [this.#rootOf(one), this.#rootOf(other)].sort((a, b) => a - b) as [number, number];
    this.#roots[high] = low;
  }
}

const NO_TREE = new SpanTree([]);
