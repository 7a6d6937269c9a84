/**
 * Finds the spans that report one call and the one that counts (docs/ingest.md, docs/decisions/0001). Linear, in
 * steps.
 */

import { hash } from 'node:crypto';
import { uuidFromMicros } from '../ids.js';
import { finish, Pace, type Steps } from '../steps.js';
import { groupCalls, NO_PARENT, SpanTree } from './callGroups.js';
import { compareReports, isReportedInParts, mergeReport, rankReports, responseKey } from './callReport.js';
import type { CallRecord, SpanLink } from './event.js';
import { isJsonObject } from './itemFault.js';
import { withinLimit } from './jsonValues.js';

const WORK_OF_CALL = 256;
/** Maximum number of calls that are sorted without ranks. */
const PLAIN_SORT_MAX = 8;
/** The node of a span that lies neither inside nor around another one. */
const NO_NODE = -2;

/** A call of the set and its resolution, at the same index as the given call. */
export interface ResolvedCall {
  /** The call, completed if it counts instead of others. */
  call: CallRecord;
  /** Index of the call that counts instead of this one; null: this one counts. */
  supersededBy: number | null;
}

/** Like `resolveCallsInSteps`, without pauses. */
export function resolveCalls(calls: readonly CallRecord[], links: readonly SpanLink[]): ResolvedCall[] {
  return finish(resolveCallsInSteps(calls, links));
}

/**
 * `links`: spans that are not calls. A call that is given twice counts both times. The result does not depend on
 * the order.
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

/** Indices of reports of one call, and the spans that sum up several calls. */
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
  // Spans in a circle can each contain the other; then none of them is a sum.
  if (members.every((index) => summing.has(callAt(index)))) summing.clear();
  const reports = members.map(callAt).filter((call) => !summing.has(call));
  const [winner, ...others] = (yield* richestFirst(reports, tree, pace)) as [CallRecord, ...CallRecord[]];
  let call = winner;
  for (const other of [...others, ...Array.from(summing, withoutCounts)]) {
    call = mergeReport(call, other, tree);
    if (pace.isDue(WORK_OF_CALL)) yield;
  }
  const identity = callIdentity(winner);
  if (isReportedInParts(winner))
    call = joinContents(
      call,
      reports.filter((report) => callIdentity(report) === identity),
    );
  const stands = members.find((index) => calls[index] === winner) as number;
  for (const index of members) {
    const isSame = callIdentity(callAt(index)) === identity;
    resolved[index] = { call: isSame ? call : callAt(index), supersededBy: isSame ? null : stands };
  }
}

function* richestFirst(
  reports: readonly CallRecord[],
  tree: SpanTree,
  pace: Pace,
): Steps<readonly CallRecord[]> {
  if (reports.length <= PLAIN_SORT_MAX)
    return [...reports].sort((one, other) => compareReports(other, one, tree));
  const nodes = Int32Array.from(reports, ({ trace }) => (trace && tree.nodeOf(trace)) ?? NO_NODE);
  const around = Int32Array.from(reports, ({ trace }) => (trace ? tree.nodeAround(trace) : NO_PARENT));
  yield;
  const isInside = (inner: number, outer: number): boolean => {
    const node = nodes[outer] as number;
    return node !== NO_NODE && nodes[inner] !== node && tree.isAtOrInside(around[inner] as number, node);
  };
  const compare = yield* rankReports(reports, isInside, pace);
  const order = reports.map((_, at) => at).sort((one, other) => compare(other, one));
  yield;
  return order.map((at) => reports[at] as CallRecord);
}

/** A call with the prompts and payloads of all its parts, which are one event. */
function joinContents(call: CallRecord, parts: readonly CallRecord[]): CallRecord {
  if (parts.length < 2) return call;
  const payloads = parts.flatMap(({ payload }) => (isJsonObject(payload) ? [payload] : []));
  return {
    ...call,
    payload: payloads.length === 0 ? call.payload : withinLimit(Object.assign({}, ...payloads)),
    prompts: () => [...new Set(parts.flatMap(({ prompts }) => prompts()))],
  };
}

/** A span that sums up several calls gives one of them its labels, but never its counts, id or prompt hash. */
function withoutCounts(call: CallRecord): CallRecord {
  return { ...call, usage: null, reportedCostPico: null, promptHash: null };
}

const WORK_OF_PROOF = 128;

/** The proofs by which calls of a set are one, and the calls by span. */
export interface CallProofs {
  /** Indices of calls by proof: the same event, or the same response id at one biller. */
  byProof: ReadonlyMap<string, readonly number[]>;
  /** The last call of each span. */
  bySpan: ReadonlyMap<string, number>;
  /** Whether two calls share a response id, a trace or an identity; if not, no call was sent twice. */
  mayRepeat: boolean;
}

/** The identity of the event: the same request of the same model at the same time, blocked or let through. */
export function callIdentity(call: CallRecord): string {
  return `${call.provider} ${call.requestId} ${call.startMicros} ${call.model} ${call.status === 'blocked'}`;
}

export function* listProofs(calls: readonly CallRecord[], pace: Pace): Steps<CallProofs> {
  const byProof = new Map<string, number[]>();
  const bySpan = new Map<string, number>();
  const traces = new Set<string>();
  let mayRepeat = false;
  const note = (proof: string, index: number) => {
    const same = byProof.get(proof);
    if (same === undefined) byProof.set(proof, [index]);
    else {
      same.push(index);
      mayRepeat = true;
    }
  };
  for (const [index, call] of calls.entries()) {
    if (pace.isDue(WORK_OF_PROOF)) yield;
    const { trace } = call;
    const key = responseKey(call);
    if (key === null && trace === null && !isReportedInParts(call)) continue;
    note(`event ${callIdentity(call)}`, index);
    if (key !== null) note(`response ${key}`, index);
    if (trace === null) continue;
    if (traces.has(trace.traceId)) mayRepeat = true;
    traces.add(trace.traceId);
    bySpan.set(trace.traceId + trace.spanId, index);
  }
  return { byProof, bySpan, mayRepeat };
}

/**
 * Two hashes: `api_key_hash`, and the event's id, which is derived from the event's identity, so that a repeat has
 * the same id.
 */

const HASH_CHARS = 16;

type Hashed = Pick<CallRecord, 'requestId' | 'sessionId' | 'model' | 'hashTimestamp' | 'status'>;

/**
 * The first 16 hex digits of sha256(key id ':' request id), or of sha256(key id ':' session ':' model ':' time) if
 * the call has no request id. The time is the received text: nanoseconds as sent, else ISO with microseconds. The
 * hashed text of a blocked call has a prefix: if the same request is let through later, it is another event, and
 * its cost is not taken for a repeat of the block (docs/decisions/0027).
 */
export function apiKeyHash(keyId: string, call: Hashed): string {
  const identity =
    call.requestId !== null
      ? `${keyId}:${call.requestId}`
      : `${keyId}:${call.sessionId}:${call.model}:${call.hashTimestamp}`;
  const text = call.status === 'blocked' ? `blocked\u001f${identity}` : identity;
  return hash('sha256', text, 'hex').slice(0, HASH_CHARS);
}

/**
 * The uuid of an event: its time in microseconds, then 62 bits of the sha256 of provider, model, api_key_hash and
 * time. The hash depends on the key and so on the organization. No field contains the separator, since strings are
 * stripped before.
 */
export function eventId(
  call: Pick<CallRecord, 'provider' | 'model' | 'startMicros'>,
  callHash: string,
): string {
  const tuple = `${call.provider}\u001f${call.model}\u001f${callHash}\u001f${call.startMicros}`;
  const digest = hash('sha256', tuple, 'hex');
  return uuidFromMicros(call.startMicros, BigInt(`0x${digest.slice(0, 16)}`));
}
