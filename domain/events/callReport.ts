/**
 * Two spans, or a span and an event of a wrapper, may report one call: which of them counts, and what the other adds.
 * Every rule depends on the content of the reports, never on what came first, so that any order and any split into
 * requests ends in the same call (docs/decisions/0002).
 */
import { compare } from '../compare.js';
import type { Pace, Steps } from '../steps.js';
import { identityBiller, modelFamily } from './biller.js';
import type { CallRecord, TokenUsage } from './event.js';
import { wholeInput, wholeOutput } from './mergeReport.js';
import type { SpanTree } from './spanTree.js';

/** What of a call decides about its reports, or is completed by them. Every CallRecord is one. */
export type CallReport = Pick<
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
  | 'reportedClasses'
  | 'promptHash'
>;

/** Under which the response id of a call is known, whoever tells it; null when it has none. */
export function responseKey(report: CallReport): string | null {
  return report.responseId === null ? null : `${identityBiller(report)} ${report.responseId}`;
}

/**
 * Whether two reports are of one call: (1) the same response id at the same biller; (2) two spans of one trace, one
 * inside the other, of one model family, of which at least one carries usage or both failed. Equal times and tokens prove nothing:
 * parallel equal calls stay apart.
 */
export function isSameCall(one: CallReport, other: CallReport, tree: SpanTree): boolean {
  const key = responseKey(one);
  if (key !== null && key === responseKey(other)) return true;
  if (!tree.isInside(one.trace, other.trace) && !tree.isInside(other.trace, one.trace)) return false;
  return couldBeOneCall(one, other);
}

/** The part of rule 2 that is not kinship. */
export function couldBeOneCall(one: CallReport, other: CallReport): boolean {
  return canBeOneCall(traitsOf(one), traitsOf(other));
}

export function isSameUsage(one: TokenUsage, other: TokenUsage): boolean {
  return wholeInput(one) === wholeInput(other) && wholeOutput(one) === wholeOutput(other);
}

/**
 * Which of two reports is the call, as a comparison for sorting: positive when `one` is the richer. One that was let
 * through before one that was blocked, since it has cost something; then a response id, then more classes, then the
 * inner span. Of two spans apart from each other the one that ended first counts: an inner span ends before the span
 * around it, and a cache that answers again ends after the call that the provider bills. With equal ends the later
 * start is the inner one.
 */
export function compareReports(one: CallReport, other: CallReport, tree: SpanTree): number {
  return (
    compareRichness(one, other) ||
    Number(tree.isInside(one.trace, other.trace)) - Number(tree.isInside(other.trace, one.trace)) ||
    compareApart(one, other)
  );
}

/** The part of `compareTellings` that comes before which of the two lies inside the other. */
export function compareRichness(one: CallReport, other: CallReport): number {
  return (
    Number(one.status !== 'blocked') - Number(other.status !== 'blocked') ||
    Number(one.responseId !== null) - Number(other.responseId !== null) ||
    one.reportedClasses - other.reportedClasses
  );
}

/** The part of `compareTellings` that decides between two that lie apart. */
export function compareApart(one: CallReport, other: CallReport): number {
  return (
    compare(other.endMicros, one.endMicros) ||
    compare(one.startMicros, other.startMicros) ||
    compare(identityOf(one), identityOf(other))
  );
}

/** Only what is stored with an event, so that a stored report compares as it did when it came. */
function identityOf({ requestId, scopeName, model, provider }: CallReport): string {
  return `${requestId ?? ''} ${scopeName} ${model} ${provider}`;
}

/** What decides whether two spans, one inside the other, can be one call. Read once a call, compared often. */
export interface CallTraits {
  isAttempt: boolean;
  family: string;
  /** Of the model that answered, where it is another family. */
  responseFamily: string | null;
  responseId: string | null;
  /** Equal for equal counts; null: none were sent. */
  counts: string | null;
}

export function traitsOf(report: CallReport): CallTraits {
  const { usage, model, responseModel, responseId } = report;
  const family = modelFamily(model);
  const responseFamily = responseModel === null ? null : modelFamily(responseModel);
  return {
    isAttempt: isAttempt(report),
    family,
    responseFamily: responseFamily === family ? null : responseFamily,
    responseId,
    counts: usage === null ? null : `${wholeInput(usage)} ${wholeOutput(usage)}`,
  };
}

/**
 * Whether nothing speaks against two spans being one call. An attempt that failed and a call that was answered are two,
 * as with repeats inside one outer call. Two response ids are two calls unless the counts agree: a gateway may give an
 * answer an id of its own.
 */
export function canBeOneCall(one: CallTraits, other: CallTraits): boolean {
  if (one.isAttempt !== other.isAttempt || !isOfOneFamily(one, other)) return false;
  if (one.responseId === null || other.responseId === null || one.responseId === other.responseId)
    return true;
  return one.counts !== null && one.counts === other.counts;
}

function isAttempt({ usage, status }: CallReport): boolean {
  return status === 'blocked' || (usage === null && status === 'error');
}

function isOfOneFamily(one: CallTraits, other: CallTraits): boolean {
  return (
    one.family === other.family ||
    (one.responseFamily !== null &&
      (one.responseFamily === other.family || one.responseFamily === other.responseFamily)) ||
    (other.responseFamily !== null && one.family === other.responseFamily)
  );
}

/** Items that are sorted at once, before they are merged. */
const RUN_ITEMS = 64;
const WORK_OF_COMPARISON = 64;

/** As `compareTellings`, of two reports of a list by their indices. */
export type CompareRanked = (one: number, other: number) => number;

/**
 * Makes a long list quick to compare. What compares the reports alone becomes a rank, in steps. Which of two lies
 * inside the other cannot: with it the comparison is no order, and a sort by it is the language's own.
 * @param isInside whether one of the list, by its index, lies inside another one.
 */
export function* rankReports(
  reports: readonly CallReport[],
  isInside: (inner: number, outer: number) => boolean,
  pace: Pace,
): Steps<CompareRanked> {
  const richness = yield* ranksBy(reports, compareRichness, pace);
  const apart = yield* ranksBy(reports, compareApart, pace);
  return (one, other) =>
    (richness[one] as number) - (richness[other] as number) ||
    Number(isInside(one, other)) - Number(isInside(other, one)) ||
    (apart[one] as number) - (apart[other] as number);
}

/** The place of each item in the order, from 0; equal items have the same. The comparison must be an order. */
function* ranksBy<T>(
  items: readonly T[],
  compare: (one: T, other: T) => number,
  pace: Pace,
): Steps<number[]> {
  const compareAt = (one: number, other: number) => compare(items[one] as T, items[other] as T);
  const sorted = yield* sortInSteps(items.length, compareAt, pace);
  const ranks: number[] = new Array(items.length).fill(0);
  let rank = 0;
  for (let at = 1; at < sorted.length; at += 1) {
    const index = sorted[at] as number;
    if (compareAt(sorted[at - 1] as number, index) !== 0) rank += 1;
    ranks[index] = rank;
    if (pace.isDue(WORK_OF_COMPARISON)) yield;
  }
  return ranks;
}

/** The numbers from 0 to `count` in order: runs are sorted, then merged two by two. */
function* sortInSteps(count: number, compare: CompareRanked, pace: Pace): Steps<number[]> {
  let runs: number[][] = [];
  for (let from = 0; from < count; from += RUN_ITEMS) {
    const length = Math.min(RUN_ITEMS, count - from);
    runs.push(Array.from({ length }, (_, index) => from + index).sort(compare));
    if (pace.isDue(length * Math.log2(length + 1) * WORK_OF_COMPARISON)) yield;
  }
  while (runs.length > 1) {
    const merged: number[][] = [];
    for (let at = 0; at < runs.length; at += 2)
      merged.push(yield* merge(runs[at] as number[], runs[at + 1] ?? [], compare, pace));
    runs = merged;
  }
  return runs[0] ?? [];
}

function* merge(
  one: readonly number[],
  other: readonly number[],
  compare: CompareRanked,
  pace: Pace,
): Steps<number[]> {
  const merged: number[] = [];
  let [i, j] = [0, 0];
  while (i < one.length && j < other.length) {
    if (compare(one[i] as number, other[j] as number) <= 0) merged.push(one[i++] as number);
    else merged.push(other[j++] as number);
    if (pace.isDue(WORK_OF_COMPARISON)) yield;
  }
  while (i < one.length) merged.push(one[i++] as number);
  while (j < other.length) merged.push(other[j++] as number);
  return merged;
}
