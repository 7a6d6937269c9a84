/** What another telling of a call adds to the one that stands for it. */
import { compare } from '../compare.js';
import type { BillerSpan } from './event.js';
import { joinUsages } from './joinUsages.js';
import { isDatedModel } from './modelFamily.js';
import { joinPromptHashes } from './promptHash.js';
import type { SpanTree } from './spanTree.js';
import type { Telling } from './telling.js';

/** The winner with what the loser adds. What both tell and tell differently is decided by the values themselves. */
export function completeTelling<T extends Telling>(winner: T, loser: Telling, tree: SpanTree): T {
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

interface NamedBiller extends BillerSpan, Pick<Telling, 'billedBy' | 'billerFromHost'> {}

/**
 * Who bills: a host of a provider is where the call went, whoever saw it; else the inner telling knows better than
 * the outer one, and of two apart the one that lies later in time.
 */
function joinBillers(winner: Telling, loser: Telling, tree: SpanTree) {
  const own = namedBiller(winner);
  const other = namedBiller(loser);
  if (compareBillers(own, other, tree) >= 0) return {};
  const { billedBy, billerFromHost, trace, startMicros, endMicros } = other;
  return { billedBy, billerFromHost, billerSpan: { trace, startMicros, endMicros } };
}

function namedBiller(telling: Telling): NamedBiller {
  const { trace, startMicros, endMicros } = telling.billerSpan ?? telling;
  return {
    billedBy: telling.billedBy,
    billerFromHost: telling.billerFromHost,
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
