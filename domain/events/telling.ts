/**
 * Tellings: two spans, or a span and an event of a wrapper, may tell of one call. When they do, which of them is the
 * call, and what the other adds. Every rule depends on what is told only, never on what came first, so that any
 * order and any split into requests ends in the same call (docs/decisions/0033).
 */
import { identityBiller } from './biller.js';
import { trustIn } from './clients.js';
import type { CallRecord, SpanLink, TokenUsage } from './event.js';
import { isDatedModel, modelFamily } from './modelFamily.js';
import type { SpanTree } from './spanTree.js';

/** What of a call decides about its tellings, or is completed by them. Every CallRecord is one. */
export type Telling = Pick<
  CallRecord,
  | 'provider'
  | 'billedBy'
  | 'billerFromHost'
  | 'billerSpan'
  | 'model'
  | 'responseModel'
  | 'startMicros'
  | 'endMicros'
  | 'requestId'
  | 'responseId'
  | 'sessionId'
  | 'teamId'
  | 'feature'
  | 'projectId'
  | 'userId'
  | 'environment'
  | 'serviceTier'
  | 'providerAccountId'
  | 'providerKeyId'
  | 'isBatch'
  | 'batchId'
  | 'stopReason'
  | 'status'
  | 'httpStatus'
  | 'usage'
  | 'origin'
  | 'reportedCostPico'
  | 'scopeName'
  | 'trace'
  | 'toldClasses'
>;

/** Under which the response id of a call is known, whoever tells it; null when it has none. */
export function responseKey(telling: Telling): string | null {
  return telling.responseId === null ? null : `${identityBiller(telling)} ${telling.responseId}`;
}

/**
 * Whether two tellings are of one call: (1) the same response id at the same biller; (2) two spans of one trace, one
 * inside the other, of one model family, of which at least one carries usage. Equal times and tokens prove nothing:
 * parallel equal calls stay apart.
 */
export function isSameCall(one: Telling, other: Telling, tree: SpanTree): boolean {
  const key = responseKey(one);
  if (key !== null && key === responseKey(other)) return true;
  if (!tree.isInside(one.trace, other.trace) && !tree.isInside(other.trace, one.trace)) return false;
  return couldBeOneCall(one, other);
}

/** The part of rule 2 that is not kinship: model family, usage, and response ids that do not speak against it. */
export function couldBeOneCall(one: Telling, other: Telling): boolean {
  if (!isOfOneFamily(one, other)) return false;
  const hasFailed = one.status === 'error' || other.status === 'error';
  const isBlocked = one.status === 'blocked' || other.status === 'blocked';
  if (one.usage === null || other.usage === null) {
    // An outer span without counts is another telling; an attempt that failed is a call of its own.
    return (one.usage !== null || other.usage !== null) && !hasFailed && !isBlocked;
  }
  // A gateway may give an answer an id of its own: then the counts must agree.
  const idsDiffer =
    one.responseId !== null && other.responseId !== null && one.responseId !== other.responseId;
  return !idsDiffer || isSameUsage(one.usage, other.usage);
}

export function isSameUsage(one: TokenUsage, other: TokenUsage): boolean {
  return wholeInput(one) === wholeInput(other) && wholeOutput(one) === wholeOutput(other);
}

function isOfOneFamily(one: Telling, other: Telling): boolean {
  const families = [modelFamily(one.model)];
  if (one.responseModel !== null) families.push(modelFamily(one.responseModel));
  return (
    families.includes(modelFamily(other.model)) ||
    (other.responseModel !== null && families.includes(modelFamily(other.responseModel)))
  );
}

/**
 * Which of two tellings is the call, as a comparison for sorting: positive when `one` is the richer. A response id
 * first, then more classes, then the inner span; apart from each other the one that starts later and ends earlier.
 */
export function compareTellings(one: Telling, other: Telling, tree: SpanTree): number {
  return (
    Number(one.responseId !== null) - Number(other.responseId !== null) ||
    one.toldClasses - other.toldClasses ||
    Number(tree.isInside(one.trace, other.trace)) - Number(tree.isInside(other.trace, one.trace)) ||
    compare(one.startMicros, other.startMicros) ||
    compare(other.endMicros, one.endMicros) ||
    compare(placeOf(one), placeOf(other))
  );
}

function placeOf(telling: Telling): string {
  return `${telling.trace?.spanId ?? ''} ${telling.requestId ?? ''} ${telling.scopeName} ${telling.model}`;
}

function compare<T extends bigint | string>(one: T, other: T): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/**
 * Decides between the live telling of a call and another one: the richer is the call, completed by the other. The
 * caller knows that they tell of one call. Neither argument is changed.
 */
export function mergeTellings<T extends Telling>(
  live: T,
  other: T,
  tree: SpanTree,
): { winner: 'live' | 'other'; call: T } {
  return compareTellings(other, live, tree) > 0
    ? { winner: 'other', call: completeTelling(other, live, tree) }
    : { winner: 'live', call: completeTelling(live, other, tree) };
}

/** The winner with what the loser adds. What both tell and tell differently is decided by the values themselves. */
export function completeTelling<T extends Telling>(winner: T, loser: Telling, tree: SpanTree): T {
  const call = copyOf(winner);
  call.responseModel = bestModel(winner, loser);
  call.sessionId = sessionOf(winner, loser);
  call.teamId = either(winner.teamId, loser.teamId);
  call.feature = either(winner.feature, loser.feature);
  call.projectId = either(winner.projectId, loser.projectId);
  call.userId = either(winner.userId, loser.userId);
  call.environment = either(winner.environment, loser.environment);
  call.serviceTier = eitherBut('auto', winner.serviceTier, loser.serviceTier);
  call.providerAccountId = either(winner.providerAccountId, loser.providerAccountId);
  call.providerKeyId = either(winner.providerKeyId, loser.providerKeyId);
  call.isBatch = winner.isBatch || loser.isBatch;
  call.batchId = either(winner.batchId, loser.batchId);
  call.stopReason = eitherBut('unknown', winner.stopReason, loser.stopReason) ?? 'unknown';
  call.httpStatus =
    winner.httpStatus === null || loser.httpStatus === null
      ? (winner.httpStatus ?? loser.httpStatus)
      : Math.min(winner.httpStatus, loser.httpStatus);
  call.reportedCostPico = largerCost(winner.reportedCostPico, loser.reportedCostPico);
  Object.assign(call, joinBillers(winner, loser, tree), joinUsages(winner, loser));
  return call;
}

/** A copy that keeps a lazy field lazy. */
export function copyOf<T extends object>(record: T): T {
  return Object.defineProperties({}, Object.getOwnPropertyDescriptors(record)) as T;
}

function either(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}

/** As `either`, where one word says less than any other. */
function eitherBut(least: string, one: string | null, other: string | null): string | null {
  if (one === least && other !== null) return other;
  if (other === least && one !== null) return one;
  return either(one, other);
}

/** A reported cost of zero is what clients write when they do not know one. */
function largerCost(one: bigint | null, other: bigint | null): bigint | null {
  if (other === null || (other === 0n && one === null)) return one;
  return one === null || other > one ? other : one;
}

/** A session that was named counts before a trace id that stands in for one. */
function sessionOf(winner: Telling, loser: Telling): string {
  const one = namedSession(winner);
  const other = namedSession(loser);
  return either(one, other) ?? winner.sessionId;
}

function namedSession(telling: Telling): string | null {
  return telling.sessionId === '' || telling.sessionId === telling.trace?.traceId ? null : telling.sessionId;
}

/** The most exact name of the model that answered: a dated release before an alias. */
function bestModel(one: Telling, other: Telling): string | null {
  let best: string | null = null;
  for (const name of [one.responseModel, other.responseModel, datedModel(one), datedModel(other)]) {
    if (name !== null && (best === null || compareModels(name, best) > 0)) best = name;
  }
  return best;
}

function datedModel({ model }: Telling): string | null {
  return isDatedModel(model) ? model : null;
}

function compareModels(one: string, other: string): number {
  return (
    Number(isDatedModel(one)) - Number(isDatedModel(other)) ||
    one.length - other.length ||
    compare(other, one)
  );
}

interface NamedBiller extends Pick<Telling, 'billedBy' | 'billerFromHost'> {
  span: SpanLink | null;
  provider: Telling['provider'];
}

/** The inner span names the biller; where it only repeats the outer one's word, the outer one's host says more. */
function joinBillers(winner: Telling, loser: Telling, tree: SpanTree) {
  const one = namedBiller(winner);
  const other = namedBiller(loser);
  const named = tree.isInside(other.span, one.span)
    ? innerBiller(other, one)
    : tree.isInside(one.span, other.span)
      ? innerBiller(one, other)
      : surerBiller(one, other);
  const isOwn = named.span === null || named.span.spanId === winner.trace?.spanId;
  return {
    billedBy: named.billedBy,
    billerFromHost: named.billerFromHost,
    billerSpan: isOwn ? null : named.span,
  };
}

function namedBiller(telling: Telling): NamedBiller {
  const { billedBy, billerFromHost, provider } = telling;
  return { billedBy, billerFromHost, provider, span: telling.billerSpan ?? telling.trace };
}

function innerBiller(inner: NamedBiller, outer: NamedBiller): NamedBiller {
  const outerKnowsHost = outer.billerFromHost && outer.billedBy !== 'unknown';
  return !inner.billerFromHost && outerKnowsHost && inner.billedBy === outer.provider ? outer : inner;
}

function surerBiller(one: NamedBiller, other: NamedBiller): NamedBiller {
  const sureness = (biller: NamedBiller) =>
    biller.billerFromHost ? (biller.billedBy === 'unknown' ? 1 : 2) : 0;
  return (sureness(one) - sureness(other) || compare(other.billedBy, one.billedBy)) >= 0 ? one : other;
}

type Counted = Pick<Telling, 'usage' | 'origin'>;

/**
 * One usage from two: each class as the telling says that knows it; a telling that lacks a cached part counted it as
 * plain input, so the whole input stays and the part is taken out of it. Output as the nearer source counts it.
 */
function joinUsages(one: Counted, other: Counted): Counted {
  if (one.usage === null || other.usage === null) {
    return one.usage === null
      ? { usage: other.usage, origin: other.usage === null ? one.origin : other.origin }
      : pickCounted(one);
  }
  const base = compareSources(one, other) >= 0 ? one : other;
  const cacheRead = Math.max(one.usage.cacheRead, other.usage.cacheRead);
  const cacheCreation = Math.max(one.usage.cacheCreation, other.usage.cacheCreation);
  const inputAudio = Math.max(one.usage.inputAudio, other.usage.inputAudio);
  const parts = cacheRead + cacheCreation + inputAudio;
  const whole = Math.max(wholeInput(one.usage), wholeInput(other.usage), parts);
  const split = joinSplits(one.usage, other.usage, cacheCreation);
  const usage: TokenUsage = {
    input: whole - parts,
    cacheRead,
    cacheCreation,
    ...split,
    output: (base.usage as TokenUsage).output,
    inputAudio,
    outputAudio: (base.usage as TokenUsage).outputAudio,
    reasoning: Math.max(one.usage.reasoning, other.usage.reasoning),
    cached: Math.max(one.usage.cached, other.usage.cached),
  };
  const usageMissing = one.origin.usageMissing.filter(
    (name) =>
      other.origin.usageMissing.includes(name) &&
      !(name === 'cache_write_1h' && split.cacheCreation1h !== null),
  );
  return { usage, origin: { ...base.origin, usageMissing } };
}

function pickCounted({ usage, origin }: Counted): Counted {
  return { usage, origin };
}

/** Lifetimes of cache writes, from the telling that knows them of the whole write. */
function joinSplits(one: TokenUsage, other: TokenUsage, cacheCreation: number) {
  const longs = [one, other]
    .filter((usage) => usage.cacheCreation1h !== null && usage.cacheCreation === cacheCreation)
    .map((usage) => usage.cacheCreation1h as number);
  if (longs.length === 0) return { cacheCreation5m: null, cacheCreation1h: null };
  const long = Math.max(...longs);
  return { cacheCreation5m: cacheCreation - long, cacheCreation1h: long };
}

/** The source whose output counts: more trusted, then the larger count, then any fixed order. */
function compareSources(one: Counted, other: Counted): number {
  return (
    trustIn(one.origin.usageSource) - trustIn(other.origin.usageSource) ||
    wholeOutput(one.usage as TokenUsage) - wholeOutput(other.usage as TokenUsage) ||
    compare(one.origin.usageSource, other.origin.usageSource) ||
    compare(one.origin.usageRaw ?? '', other.origin.usageRaw ?? '')
  );
}

function wholeInput(usage: TokenUsage): number {
  return usage.input + usage.inputAudio + usage.cacheRead + usage.cacheCreation;
}

function wholeOutput(usage: TokenUsage): number {
  return usage.output + usage.outputAudio;
}
