import { completeTelling } from '../../domain/events/completeTelling.js';
import type { CallRecord, SpanLink } from '../../domain/events/event.js';
import type { SpanTree } from '../../domain/events/spanTree.js';
import { compareTellings } from '../../domain/events/telling.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Violation } from '../../domain/policies/alerts/alert.js';
import type { CallPrice } from '../../domain/pricing/cost.js';
import { priceOf } from '../../domain/pricing/eventPrice.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { OrgDb } from '../orgDb.js';
import { Turns } from '../turns.js';
import { isSameForm, type StorableEvent } from './eventColumns.js';
import { type Completed, completeEvents, type Superseded, supersedeEvents } from './revisions.js';
import type { SettledCalls } from './settledAlerts.js';
import { callOfStored, knownCostOf, storableOf } from './storedCalls.js';
import type { StoredEvent } from './storedEvents.js';

/** A report whose event counts, locked. */
export interface LiveReport {
  id: string;
  call: CallRecord;
  projectId: string | null;
  /** The event as it was before this transaction; undefined: this very transaction has stored it. */
  stored: StoredEvent | undefined;
  /** The event in the form that a completed call gives it. */
  withCall(call: CallRecord, prices: PriceBook): StorableEvent;
}

export function newReport(event: StorableEvent): LiveReport {
  return {
    id: event.id,
    call: event.call,
    projectId: event.projectId,
    stored: undefined,
    withCall: (call, prices) => ({
      ...event,
      call,
      price: priceOf(call, prices),
      projectId: call.projectId ?? event.projectId,
    }),
  };
}

/** @param link its place in its trace, where that is known. */
export function storedReport(stored: StoredEvent, link: SpanLink | null): LiveReport {
  return {
    id: stored.id,
    call: callOfStored(stored, link),
    projectId: stored.projectId,
    stored,
    withCall: (call, prices) => storableOf(stored, call, prices),
  };
}

/** A report whose event never counted: another one of its batch was chosen, which was stored before. */
export interface AddedReport {
  event: StorableEvent;
  /** What it says that breaks a policy. */
  said: readonly Violation[];
}

/** One call: the report that counts from now on, in the form that the others complete it to. */
export interface MergedCall {
  kept: LiveReport;
  call: CallRecord;
  superseded: readonly LiveReport[];
  added: readonly AddedReport[];
}

/**
 * Chooses between reports of one call, of which there is at least one. The result depends on what they report alone, not
 * on their order.
 */
export function mergeReports(
  reports: readonly LiveReport[],
  added: readonly AddedReport[],
  tree: SpanTree,
): MergedCall {
  const [kept, ...superseded] = [...reports].sort(
    (one, other) => compareTellings(other.call, one.call, tree) || (one.id < other.id ? -1 : 1),
  ) as [LiveReport, ...LiveReport[]];
  const others = [...superseded.map(({ call }) => call), ...added.map(({ event }) => event.call)];
  const call = others.reduce((completed, other) => completeTelling(completed, other, tree), kept.call);
  return { kept, call, superseded, added };
}

/** Writes what became of calls, and notes it for their alerts. */
export async function writeMergedCalls(
  orgDb: OrgDb,
  merged: readonly MergedCall[],
  prices: PriceBook,
  settled: SettledCalls,
): Promise<void> {
  const losers: Superseded[] = [];
  const completed: Completed[] = [];
  const turns = new Turns();
  for (const { kept, call, superseded, added } of merged) {
    if (superseded.length + added.length === 0) continue;
    const { stored } = kept;
    const before = kept.withCall(kept.call, prices);
    const after = kept.withCall(call, prices);
    after.projectId ??= leastProject([...superseded, ...added.map(({ event }) => event)]);
    const isChanged = !isSameForm(before, after);
    if (isChanged) completed.push({ event: after, isNew: stored === undefined });
    // Where the others add nothing its price stays too, whatever has become of the prices since.
    const event = isChanged || stored === undefined ? after : { ...before, price: storedPriceOf(stored) };
    const costBefore = stored === undefined ? undefined : knownCostOf(stored);
    for (const loser of superseded) {
      const timestamp = isoFromMicros(loser.call.startMicros);
      losers.push({ id: loser.id, timestamp, winnerId: kept.id, isNew: loser.stored === undefined });
      settled.note({ event, costBefore, said: [] }, loser.id);
    }
    for (const { event: other, said } of added) settled.note({ event, costBefore, said }, other.id);
    if (turns.isOver()) await turns.next();
  }
  await supersedeEvents(orgDb, losers);
  await completeEvents(orgDb, completed);
}

/** A call that nobody named a project of has that of a workspace whose key reported it, whichever report counts. */
function leastProject(others: readonly { projectId: string | null }[]): string | null {
  return others.flatMap(({ projectId }) => projectId ?? []).sort()[0] ?? null;
}

function storedPriceOf({ computedCostPico: computedPico, priceGaps, contextBand }: StoredEvent): CallPrice {
  return { computedPico, priceGaps, contextBand };
}
