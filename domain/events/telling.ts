/**
 * Tellings: two spans, or a span and an event of a wrapper, may tell of one call. When they do, which of them is the
 * call, and what the other adds. Every rule depends on what is told only, never on what came first, so that any
 * order and any split into requests ends in the same call (docs/decisions/0002).
 */
import { compare } from '../compare.js';
import { identityBiller } from './biller.js';
import { canBeOneCall, traitsOf } from './callTraits.js';
import type { CallRecord, TokenUsage } from './event.js';
import { wholeInput, wholeOutput } from './joinUsages.js';
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

/** The part of rule 2 that is not kinship. */
export function couldBeOneCall(one: Telling, other: Telling): boolean {
  return canBeOneCall(traitsOf(one), traitsOf(other));
}

export function isSameUsage(one: TokenUsage, other: TokenUsage): boolean {
  return wholeInput(one) === wholeInput(other) && wholeOutput(one) === wholeOutput(other);
}

/**
 * Which of two tellings is the call, as a comparison for sorting: positive when `one` is the richer. One that was let
 * through before one that was blocked, since it has cost something; then a response id, then more classes, then the
 * inner span. Of two spans apart from each other the one that ended first counts: an inner span ends before the span
 * around it, and a cache that answers again ends after the call that the provider bills. With equal ends the later
 * start is the inner one.
 */
export function compareTellings(one: Telling, other: Telling, tree: SpanTree): number {
  return (
    compareRichness(one, other) ||
    Number(tree.isInside(one.trace, other.trace)) - Number(tree.isInside(other.trace, one.trace)) ||
    compareApart(one, other)
  );
}

/** The part of `compareTellings` that comes before which of the two lies inside the other. */
export function compareRichness(one: Telling, other: Telling): number {
  return (
    Number(one.status !== 'blocked') - Number(other.status !== 'blocked') ||
    Number(one.responseId !== null) - Number(other.responseId !== null) ||
    one.toldClasses - other.toldClasses
  );
}

/** The part of `compareTellings` that decides between two that lie apart. */
export function compareApart(one: Telling, other: Telling): number {
  return (
    compare(other.endMicros, one.endMicros) ||
    compare(one.startMicros, other.startMicros) ||
    compare(identityOf(one), identityOf(other))
  );
}

/** Only what is stored with an event, so that a stored report compares as it did when it came. */
function identityOf({ requestId, scopeName, model, provider }: Telling): string {
  return `${requestId ?? ''} ${scopeName} ${model} ${provider}`;
}
