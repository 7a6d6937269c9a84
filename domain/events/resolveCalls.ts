/**
 * One call, several spans: inside one set of calls, which tell of the same call, which of them stands for it, and
 * what the others add to it (docs/ingest.md, docs/decisions/0005).
 */

import { completeTelling } from './completeTelling.js';
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
 * rejected or known from before. A call that is given twice stands for itself both times, since it is one event and
 * storing it again changes nothing. The result does not depend on the order.
 */
export function resolveCalls(calls: readonly CallRecord[], links: readonly SpanLink[]): ResolvedCall[] {
  const resolved = calls.map((call): ResolvedCall => ({ call, supersededBy: null }));
  const set = new CallSet(calls);
  if (!set.mayRepeat) return resolved;
  const tree = new SpanTree(linksOf(calls, links));
  for (const members of set.groups(tree)) {
    if (members.length === 1) continue;
    const tellings = members.map((index) => calls[index] as CallRecord);
    const sums = new Set(
      members.filter((index) => set.sums.has(index)).map((index) => calls[index] as CallRecord),
    );
    const [winner, ...others] = tellings
      .filter((call) => !sums.has(call))
      .sort((one, other) => compareTellings(other, one, tree)) as [CallRecord, ...CallRecord[]];
    let call = winner;
    for (const other of others) call = completeTelling(call, other, tree);
    for (const sum of sums) call = completeTelling(call, withoutCounts(sum), tree);
    const stands = calls.indexOf(winner);
    for (const index of members) {
      const isSame = identityOf(calls[index] as CallRecord) === identityOf(winner);
      resolved[index] = {
        call: isSame ? call : (calls[index] as CallRecord),
        supersededBy: isSame ? null : stands,
      };
    }
  }
  return resolved;
}

/** As unique as the event: the same request of the same model at the same time, blocked or let through. */
function identityOf(call: CallRecord): string {
  return `${call.provider} ${call.requestId} ${call.startMicros} ${call.model} ${call.status === 'blocked'}`;
}

function* linksOf(calls: readonly CallRecord[], links: readonly SpanLink[]): Generator<SpanLink> {
  yield* links;
  for (const { trace } of calls) if (trace !== null) yield trace;
}

/** A span that sums up several calls adds its labels to one of them, never its counts, its id or what it was asked. */
function withoutCounts(call: CallRecord): CallRecord {
  return { ...call, usage: null, reportedCostPico: null, promptHash: null };
}

class CallSet {
  /** Whether any two calls share a response id, a trace or all that makes them unique: else nothing is told twice. */
  mayRepeat = false;
  /** Outer spans that several calls lie in and that equal none of them. */
  readonly sums = new Set<number>();
  readonly #calls: readonly CallRecord[];
  readonly #bySpan = new Map<string, number>();
  /** Calls by what proves them one: a response id at its biller, or the same event. */
  readonly #byProof = new Map<string, number[]>();
  readonly #roots: number[];

  constructor(calls: readonly CallRecord[]) {
    this.#calls = calls;
    this.#roots = calls.map((_, index) => index);
    const traces = new Set<string>();
    calls.forEach((call, index) => {
      const key = responseKey(call);
      if (key === null && call.trace === null) return;
      this.#note(`event ${identityOf(call)}`, index);
      if (key !== null) this.#note(`response ${key}`, index);
      if (call.trace !== null) {
        if (traces.has(call.trace.traceId)) this.mayRepeat = true;
        traces.add(call.trace.traceId);
        this.#bySpan.set(spanKey(call.trace), index);
      }
    });
  }

  #note(proof: string, index: number): void {
    const same = this.#byProof.get(proof);
    if (same === undefined) this.#byProof.set(proof, [index]);
    else {
      same.push(index);
      this.mayRepeat = true;
    }
  }

  /** Indices of the calls by call. */
  groups(tree: SpanTree): number[][] {
    for (const [first, ...others] of this.#byProof.values()) {
      for (const other of others) this.#unite(first as number, other);
    }
    for (const [outer, inners] of this.#innersByOuter(tree)) {
      for (const inner of this.#choose(outer, this.#branches(inners, tree))) this.#unite(outer, inner);
    }
    const groups = new Map<number, number[]>();
    this.#calls.forEach((_, index) => {
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

  /** Calls inside an outer span that lie inside each other, or are one already: tellings of one call. */
  #branches(inners: readonly number[], tree: SpanTree): number[][] {
    const branches: number[][] = [];
    const isKin = (one: number, other: number) => {
      const [a, b] = [this.#calls[one]?.trace ?? null, this.#calls[other]?.trace ?? null];
      return this.#rootOf(one) === this.#rootOf(other) || tree.isInside(a, b) || tree.isInside(b, a);
    };
    for (const inner of inners) {
      const kin = branches.filter((branch) => branch.some((other) => isKin(inner, other)));
      for (const branch of kin) branches.splice(branches.indexOf(branch), 1);
      branches.push([inner, ...kin.flat()]);
    }
    return branches;
  }

  /**
   * The branch that an outer span tells of, of several inside it: that with its response id, else with its counts.
   * When it is none of them, the outer span sums them up, and its labels go to the last.
   */
  #choose(outer: number, branches: readonly (readonly number[])[]): readonly number[] {
    const [only] = branches;
    if (only !== undefined && branches.length === 1) return only;
    const call = (index: number) => this.#calls[index] as CallRecord;
    const lastOf = (branch: readonly number[]) =>
      branch.reduce((best, index) => (compareTellings(call(index), call(best), NO_TREE) > 0 ? index : best));
    const ordered = [...branches].sort((a, b) => compareTellings(call(lastOf(a)), call(lastOf(b)), NO_TREE));
    const last = ordered[ordered.length - 1] as readonly number[];
    const key = responseKey(call(outer));
    const named = ordered.find(
      (branch) => key !== null && branch.some((index) => responseKey(call(index)) === key),
    );
    const { usage } = call(outer);
    if (named !== undefined || usage === null) return named ?? last;
    const equal = ordered.find((branch) =>
      branch.some((index) => {
        const inner = call(index).usage;
        return inner !== null && isSameUsage(inner, usage);
      }),
    );
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
