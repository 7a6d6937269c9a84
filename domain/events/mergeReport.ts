/** What another report of a call adds to the one that stands for it. */
import { compare } from '../compare.js';
import { isDatedModel } from './biller.js';
import type { CallReport } from './callReport.js';
import { trustIn } from './clients.js';
import type { BillerSpan, CallRecord, TokenUsage } from './event.js';
import { joinPromptHashes } from './prompts.js';
import type { SpanTree } from './spanTree.js';

/** The winner with what the loser adds. What both tell and tell differently is decided by the values themselves. */
export function mergeReport<T extends CallReport>(winner: T, loser: CallReport, tree: SpanTree): T {
  const call = { ...winner };
  // What was blocked consumed nothing and had no answer: its counts are guesses. Its labels are as good as any.
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
  return call;
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
function sessionOf(winner: CallReport, loser: CallReport): string {
  const one = namedSession(winner);
  const other = namedSession(loser);
  return either(one, other) ?? winner.sessionId;
}

function namedSession(report: CallReport): string | null {
  return report.sessionId === '' || report.sessionId === report.trace?.traceId ? null : report.sessionId;
}

/** The most exact name of the model that answered: a dated release before an alias. */
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

/**
 * Who bills: a host of a provider is where the call went, whoever saw it; else the inner report knows better than
 * the outer one, and of two apart the one that lies later in time.
 */
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

/** One usage from what two reports of a call counted. */

type Counted = Pick<CallRecord, 'usage' | 'origin'>;

/**
 * One usage from two: each class as the report says that knows it; a report that lacks a cached part counted it as
 * plain input, so the whole input stays and the part is taken out of it. Output as the nearer source counts it. Where
 * they cannot be counts of the same tokens, those of `one` hold.
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
  // The output is that of the base, known or not.
  const isOpen = (name: string): boolean =>
    name === 'output' || [one, other].every(({ origin }) => origin.usageMissing.includes(name));
  const usageMissing = base.origin.usageMissing.filter(
    (name) => isOpen(name) && !(name === 'cache_write_1h' && split.cacheCreation1h !== null),
  );
  return { usage, origin: { ...base.origin, usageMissing } };
}

/** Tokens by which two counts of one output may differ: a client adds one in streams. */
const OUTPUT_SLACK = 1;

/**
 * Whether two usages can be counts of the same tokens: a client that lacks cached parts has another input, one that
 * left a stream early another output. Both differ only when one of the two sums up several calls.
 */
function countsTheSame(one: TokenUsage, other: TokenUsage): boolean {
  return (
    wholeInput(one) === wholeInput(other) || Math.abs(wholeOutput(one) - wholeOutput(other)) <= OUTPUT_SLACK
  );
}

function pickCounted({ usage, origin }: Counted): Counted {
  return { usage, origin };
}

/** Lifetimes of cache writes, from the report that knows them of the whole write. */
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

/** All input tokens of a usage, cached ones and audio included. */
export function wholeInput(usage: TokenUsage): number {
  return usage.input + usage.inputAudio + usage.cacheRead + usage.cacheCreation;
}

/** All output tokens of a usage, reasoning and audio included. */
export function wholeOutput(usage: TokenUsage): number {
  return usage.output + usage.outputAudio;
}
