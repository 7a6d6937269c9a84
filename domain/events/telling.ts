/**
 * Tellings: two spans, or a span and an event of a wrapper, may tell of one call. When they do, which of them is the
 * call, and what the other adds. Every rule depends on what is told only, never on what came first, so that any
 * order and any split into requests ends in the same call (docs/decisions/0033).
 */
import { identityBiller } from './biller.js';
import { completeTelling } from './completeTelling.js';
import type { CallRecord, TokenUsage } from './event.js';
import { wholeInput, wholeOutput } from './joinUsages.js';
import { modelFamily } from './modelFamily.js';
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
  | 'promptHash'
>;

/** Under which the response id of a call is known, whoever tells it; null when it has none. */
export function responseKey(telling: Telling): string | null {
  return telling.responseId === null ? null : `${identityBiller(telling)} ${telling.responseId}`;
}

/**
 * Whether two tellings are of one call: (1) the same response id at the same biller; (2) two spans of one trace, one
 * inside the other, of one model family, of which at least one carries usage or both failed. Equal times and tokens prove nothing:
 * parallel equal calls stay apart.
 */
export function isSameCall(one: Telling, other: Telling, tree: SpanTree): boolean {
  const key = responseKey(one);
  if (key !== null && key === responseKey(other)) return true;
  if (!tree.isInside(one.trace, other.trace) && !tree.isInside(other.trace, one.trace)) return false;
  return couldBeOneCall(one, other);
}

/**
 * The part of rule 2 that is not kinship: model family, and nothing that speaks against it. An attempt that failed
 * and a call that was answered are two, as with repeats inside one outer call. Two response ids are two calls unless
 * the counts agree: a gateway may give an answer an id of its own.
 */
export function couldBeOneCall(one: Telling, other: Telling): boolean {
  if (isAttempt(one) !== isAttempt(other) || !isOfOneFamily(one, other)) return false;
  const idsDiffer =
    one.responseId !== null && other.responseId !== null && one.responseId !== other.responseId;
  if (!idsDiffer) return true;
  return one.usage !== null && other.usage !== null && isSameUsage(one.usage, other.usage);
}

function isAttempt({ usage, status }: Telling): boolean {
  return status === 'blocked' || (usage === null && status === 'error');
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
 * Which of two tellings is the call, as a comparison for sorting: positive when `one` is the richer. One that was let
 * through before one that was blocked, since it has cost something; then a response id, then more classes, then the inner span; apart from each other the one that starts later and ends earlier.
 */
export function compareTellings(one: Telling, other: Telling, tree: SpanTree): number {
  return (
    Number(one.status !== 'blocked') - Number(other.status !== 'blocked') ||
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
