import { compare } from '../compare.js';
import type { Pace, Steps } from '../steps.js';
import { identityBiller, isDatedModel, modelFamily } from './biller.js';
import type { SpanTree } from './callGroups.js';
import { trustIn } from './clients.js';
import type { BillerSpan, CallRecord, TokenUsage } from './event.js';
import { joinPromptHashes } from './prompts.js';

/**
 * The choice of the report that counts depends on content alone, so reports in any order result in the same call
 * (docs/decisions/0002).
 */

/** The fields of a call that decide between its reports or are completed by them. Every CallRecord is one. */
export type CallReport = Pick<
  CallRecord,
  | 'kind'
  | 'provider'
  | 'billedBy'
  | 'billerFromHost'
  | 'billerSpan'
  | 'model'
  | 'responseModel'
  | 'startMicros'
  | 'endMicros'
  | 'durationMs'
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

/** The fields that decide between two reports. */
export type RankedReport = Pick<
  CallReport,
  | 'status'
  | 'responseId'
  | 'reportedClasses'
  | 'startMicros'
  | 'endMicros'
  | 'requestId'
  | 'scopeName'
  | 'model'
  | 'provider'
  | 'trace'
>;

/** The namespaced response id, equal in all reports of the call; null: the report has none. */
export function responseKey(report: CallReport): string | null {
  return report.responseId === null ? null : `${identityBiller(report)} ${report.responseId}`;
}

/**
 * Two reports are one call if they have the same response id at one biller, or if their spans are nested, of one
 * model family, and both have usage or both failed.
 */
export function isSameCall(one: CallReport, other: CallReport, tree: SpanTree): boolean {
  const key = responseKey(one);
  if (key !== null && key === responseKey(other)) return true;
  if (!tree.isInside(one.trace, other.trace) && !tree.isInside(other.trace, one.trace)) return false;
  return couldBeOneCall(one, other);
}

/** The conditions of a nested pair except the nesting itself. */
export function couldBeOneCall(one: CallReport, other: CallReport): boolean {
  return canBeOneCall(traitsOf(one), traitsOf(other));
}

export function isSameUsage(one: TokenUsage, other: TokenUsage): boolean {
  return wholeInput(one) === wholeInput(other) && wholeOutput(one) === wholeOutput(other);
}

/**
 * Order of reports, the one that counts last: let through, with a response id, more classes, the inner span.
 * Reports that are not nested: the earlier end, then the later start.
 */
export function compareReports(one: RankedReport, other: RankedReport, tree: SpanTree): number {
  return (
    compareRichness(one, other) ||
    Number(tree.isInside(one.trace, other.trace)) - Number(tree.isInside(other.trace, one.trace)) ||
    compareApart(one, other)
  );
}

/** The criteria of `compareReports` before nesting. */
export function compareRichness(one: RankedReport, other: RankedReport): number {
  return (
    Number(one.status !== 'blocked') - Number(other.status !== 'blocked') ||
    Number(one.responseId !== null) - Number(other.responseId !== null) ||
    one.reportedClasses - other.reportedClasses
  );
}

/** The criteria of `compareReports` for reports that are not nested. */
export function compareApart(one: RankedReport, other: RankedReport): number {
  return (
    compare(other.endMicros, one.endMicros) ||
    compare(one.startMicros, other.startMicros) ||
    compare(identityOf(one), identityOf(other))
  );
}

/** Uses only stored columns, so that a stored report compares as it did when it arrived. */
function identityOf({ requestId, scopeName, model, provider }: RankedReport): string {
  return `${requestId ?? ''} ${scopeName} ${model} ${provider}`;
}

/** The traits that decide whether two nested spans can be one call. Computed once for each call, compared often. */
export interface CallTraits {
  isAttempt: boolean;
  family: string;
  /** The family of the model that answered; null: it equals `family` or is unknown. */
  responseFamily: string | null;
  responseId: string | null;
  /** Equal for equal counts; null: the report has no usage. */
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
 * A failed attempt and an answered call are two calls. So are two response ids, unless the counts are equal (a
 * gateway's own id).
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

/** Number of items in a sorted run before runs are merged. */
const RUN_ITEMS = 64;
const WORK_OF_COMPARISON = 64;

/** Like `compareReports`, for two reports of a list by their indices. */
export type CompareRanked = (one: number, other: number) => number;

/** Makes comparisons of reports cheap by ranks. `isInside` cannot be ranked, since nesting is no total order. */
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

/** The rank of each item from 0; equal items share one. The comparison must be a total order. */
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

/** The numbers from 0 to `count` in order, by merge sort in steps. */
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

/** Merges the reports of one call into the one that counts. */

/** The winner, completed by the loser. If both have a value and the values differ, the values themselves decide. */
export function mergeReport<T extends CallReport>(winner: T, loser: CallReport, tree: SpanTree): T {
  const call = { ...winner };
  // A blocked call consumed nothing and had no answer: its counts are estimates. Its labels count like any others.
  const wasMade = loser.status !== 'blocked' || winner.status === 'blocked';
  call.sessionId = sessionOf(winner, loser);
  call.teamId = either(winner.teamId, loser.teamId);
  call.feature = either(winner.feature, loser.feature);
  call.projectId = either(winner.projectId, loser.projectId);
  call.userId = either(winner.userId, loser.userId);
  call.environment = either(winner.environment, loser.environment);
  call.promptHash = joinPromptHashes(winner.promptHash, loser.promptHash);
  if (!wasMade) return call;
  call.responseModel = bestModel(winner, loser);
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
  if (isReportedInParts(winner) && isReportedInParts(loser) && winner.requestId === loser.requestId)
    Object.assign(call, joinEnds(winner, loser));
  return call;
}

/**
 * Whether a client may report the call in parts that have one request id: an observation, of which the first part may
 * come before the answer.
 */
export function isReportedInParts({ kind, requestId }: Pick<CallReport, 'kind' | 'requestId'>): boolean {
  return kind === 'observability_generation' && requestId !== null;
}

/** The outcome of a call that is reported in parts: the latest end, and a failure that any part names. */
function joinEnds(
  one: CallReport,
  other: CallReport,
): Pick<CallReport, 'endMicros' | 'durationMs' | 'status'> {
  return {
    endMicros: one.endMicros > other.endMicros ? one.endMicros : other.endMicros,
    durationMs: Math.max(one.durationMs, other.durationMs),
    status: other.status === 'error' ? 'error' : one.status,
  };
}

function either(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}

/** Like `either`, but any other value replaces the value `least`. */
function eitherBut(least: string, one: string | null, other: string | null): string | null {
  if (one === least && other !== null) return other;
  if (other === least && one !== null) return one;
  return either(one, other);
}

/** Clients report a cost of zero if they do not know the cost. */
function largerCost(one: bigint | null, other: bigint | null): bigint | null {
  if (other === null || (other === 0n && one === null)) return one;
  return one === null || other > one ? other : one;
}

/** A named session counts before a trace id that replaces a missing one. */
function sessionOf(winner: CallReport, loser: CallReport): string {
  const one = namedSession(winner);
  const other = namedSession(loser);
  return either(one, other) ?? winner.sessionId;
}

function namedSession(report: CallReport): string | null {
  const { sessionId, trace } = report;
  // Clients write the ids of traces with and without dashes.
  return sessionId === '' || sessionId.replaceAll('-', '').toLowerCase() === trace?.traceId
    ? null
    : sessionId;
}

/** The most exact name of the answering model: a dated release counts before an alias. */
function bestModel(one: CallReport, other: CallReport): string | null {
  let best: string | null = null;
  for (const name of [one.responseModel, other.responseModel, datedModel(one), datedModel(other)]) {
    if (name !== null && (best === null || compareModels(name, best) > 0)) best = name;
  }
  return best;
}

function datedModel({ model }: CallReport): string | null {
  return isDatedModel(model) ? model : null;
}

function compareModels(one: string, other: string): number {
  return (
    Number(isDatedModel(one)) - Number(isDatedModel(other)) ||
    one.length - other.length ||
    compare(other, one)
  );
}

interface NamedBiller extends BillerSpan, Pick<CallReport, 'billedBy' | 'billerFromHost'> {}

/** A biller by host counts first, then that of the inner report; without nesting, that of the later one. */
function joinBillers(winner: CallReport, loser: CallReport, tree: SpanTree) {
  const own = namedBiller(winner);
  const other = namedBiller(loser);
  if (compareBillers(own, other, tree) >= 0) return {};
  const { billedBy, billerFromHost, trace, startMicros, endMicros } = other;
  return { billedBy, billerFromHost, billerSpan: { trace, startMicros, endMicros } };
}

function namedBiller(report: CallReport): NamedBiller {
  const { trace, startMicros, endMicros } = report.billerSpan ?? report;
  return {
    billedBy: report.billedBy,
    billerFromHost: report.billerFromHost,
    trace,
    startMicros,
    endMicros,
  };
}

function compareBillers(one: NamedBiller, other: NamedBiller, tree: SpanTree): number {
  return (
    Number(isProviderHost(one)) - Number(isProviderHost(other)) ||
    Number(tree.isInside(one.trace, other.trace)) - Number(tree.isInside(other.trace, one.trace)) ||
    compare(one.startMicros, other.startMicros) ||
    compare(other.endMicros, one.endMicros) ||
    Number(one.billerFromHost) - Number(other.billerFromHost) ||
    compare(one.billedBy, other.billedBy) ||
    compare(one.trace?.spanId ?? '', other.trace?.spanId ?? '')
  );
}

function isProviderHost({ billerFromHost, billedBy }: NamedBiller): boolean {
  return billerFromHost && billedBy !== 'unknown';
}

type Counted = Pick<CallRecord, 'usage' | 'origin'>;

/**
 * Takes each class from the report that knows it, and subtracts unknown cached parts from the input. Otherwise
 * `one` counts.
 */
export function joinUsages(one: Counted, other: Counted): Counted {
  if (one.usage === null || other.usage === null) {
    return one.usage === null
      ? { usage: other.usage, origin: other.usage === null ? one.origin : other.origin }
      : pickCounted(one);
  }
  if (!countsTheSame(one.usage, other.usage)) return pickCounted(one);
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
  // The output is that of the base report, known or unknown.
  const isOpen = (name: string): boolean =>
    name === 'output' || [one, other].every(({ origin }) => origin.usageMissing.includes(name));
  const usageMissing = base.origin.usageMissing.filter(
    (name) => isOpen(name) && !(name === 'cache_write_1h' && split.cacheCreation1h !== null),
  );
  return { usage, origin: { ...base.origin, usageMissing } };
}

/** Tokens by which two counts of one output may differ: a client counts one too many in streams. */
const OUTPUT_SLACK = 1;

/** Inputs may differ by cached parts, or outputs by an early end. Only a sum of several calls differs in both. */
function countsTheSame(one: TokenUsage, other: TokenUsage): boolean {
  return (
    wholeInput(one) === wholeInput(other) || Math.abs(wholeOutput(one) - wholeOutput(other)) <= OUTPUT_SLACK
  );
}

function pickCounted({ usage, origin }: Counted): Counted {
  return { usage, origin };
}

/** The split of cache writes by lifetime, from the report that splits the whole write. */
function joinSplits(one: TokenUsage, other: TokenUsage, cacheCreation: number) {
  const longs = [one, other]
    .filter((usage) => usage.cacheCreation1h !== null && usage.cacheCreation === cacheCreation)
    .map((usage) => usage.cacheCreation1h as number);
  if (longs.length === 0) return { cacheCreation5m: null, cacheCreation1h: null };
  const long = Math.max(...longs);
  return { cacheCreation5m: cacheCreation - long, cacheCreation1h: long };
}

/** Order of the sources of an output count: the more trusted one, then the larger count, then any fixed order. */
function compareSources(one: Counted, other: Counted): number {
  return (
    trustIn(one.origin.usageSource) - trustIn(other.origin.usageSource) ||
    wholeOutput(one.usage as TokenUsage) - wholeOutput(other.usage as TokenUsage) ||
    compare(one.origin.usageSource, other.origin.usageSource) ||
    compare(one.origin.usageRaw ?? '', other.origin.usageRaw ?? '')
  );
}

/** All input tokens of a usage, including cached ones and audio. */
export function wholeInput(usage: TokenUsage): number {
  return usage.input + usage.inputAudio + usage.cacheRead + usage.cacheCreation;
}

/** All output tokens of a usage, including reasoning and audio. */
export function wholeOutput(usage: TokenUsage): number {
  return usage.output + usage.outputAudio;
}
