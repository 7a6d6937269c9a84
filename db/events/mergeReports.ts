import { SpanTree } from '../../domain/events/callGroups.js';
import { compareReports, mergeReport } from '../../domain/events/callReport.js';
import type { CallRecord, SpanLink } from '../../domain/events/event.js';
import type { Violation } from '../../domain/policies/alert.js';
import { type CallPrice, priceOf } from '../../domain/pricing/cost.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Steps } from '../../domain/steps.js';
import { UnionFind } from '../../domain/unionFind.js';
import type { OrgDb } from '../orgDb.js';
import type { SettledCalls } from '../policies/policyAlerts.js';
import { Turns } from '../turns.js';
import {
  type CallIdentity,
  type HeldIdentity,
  identitiesOf,
  identityKey,
  type PointedIdentity,
} from './callIdentities.js';
import { isCountedTheSame, isSameForm, type StorableEvent } from './eventColumns.js';
import { placeAt } from './eventPlaces.js';
import { type Completed, completeEvents, type Superseded, supersedeEvents } from './revisions.js';
import { callOfStored, knownCostOf, type StoredEvent, storableOf } from './storedEvents.js';

/** A report whose event counts, locked. */
export interface LiveReport {
  id: string;
  call: CallRecord;
  projectId: string | null;
  /** The event before this transaction; undefined: this transaction has stored it. */
  stored: StoredEvent | undefined;
  /** The event in the form that a completed call produces. */
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

/** @param link its place in its trace, if known. */
export function storedReport(stored: StoredEvent, link: SpanLink | null): LiveReport {
  return {
    id: stored.id,
    call: callOfStored(stored, link),
    projectId: stored.projectId,
    stored,
    withCall: (call, prices) => storableOf(stored, call, prices),
  };
}

/** A report whose event never counted: another one of its batch, stored before it, was chosen. */
export interface AddedReport {
  event: StorableEvent;
  /** Its policy violations that made no alert. */
  said: readonly Violation[];
  /** This transaction has stored alerts of it. */
  isAlerted: boolean;
}

/** One call: the report that counts from now on, completed by the others. */
export interface MergedCall {
  kept: LiveReport;
  call: CallRecord;
  superseded: readonly LiveReport[];
  added: readonly AddedReport[];
}

/** Chooses between reports of one call by their content alone, independent of their order. */
export function mergeReports(
  reports: readonly LiveReport[],
  added: readonly AddedReport[],
  tree: SpanTree,
): MergedCall {
  const [kept, ...superseded] = [...reports].sort(
    (one, other) => compareReports(other.call, one.call, tree) || (one.id < other.id ? -1 : 1),
  ) as [LiveReport, ...LiveReport[]];
  const others = [...superseded.map(({ call }) => call), ...added.map(({ event }) => event.call)];
  const call = others.reduce((completed, other) => mergeReport(completed, other, tree), kept.call);
  return { kept, call, superseded, added };
}

/** Stores the merged calls, and records them for their alerts. */
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
    const isRecounted = isChanged && !isCountedTheSame(before, after);
    const asStored = stored === undefined ? before : { ...before, price: storedPriceOf(stored) };
    if (isChanged)
      completed.push({ before: asStored, event: after, isNew: stored === undefined, isRecounted });
    // If the others change no total, the price stays too, even if prices have changed since.
    const event = isRecounted || stored === undefined ? after : { ...after, price: storedPriceOf(stored) };
    const costBefore = stored === undefined ? undefined : knownCostOf(stored);
    for (const loser of superseded) {
      const place = placeAt(loser.id, loser.call.startMicros);
      losers.push({ ...place, winnerId: kept.id, isNew: loser.stored === undefined });
      settled.note({ event, costBefore, said: [] }, loser.id);
    }
    // A report that changes nothing and has no alerts leaves the alerts of a stored call as they are.
    const isSame = !isChanged && stored !== undefined && superseded.length === 0;
    for (const { event: other, said, isAlerted } of added)
      if (!isSame || isAlerted || said.length > 0) settled.note({ event, costBefore, said }, other.id);
    if (turns.isOver()) await turns.next();
  }
  await supersedeEvents(orgDb, losers);
  await completeEvents(orgDb, completed);
}

/**
 * The project of a call whose reports name none: that of a workspace whose key reported it, independent of which report
 * counts.
 */
function leastProject(others: readonly { projectId: string | null }[]): string | null {
  return others.flatMap(({ projectId }) => projectId ?? []).sort()[0] ?? null;
}

function storedPriceOf({ computedCostPico: computedPico, priceGaps, contextBand }: StoredEvent): CallPrice {
  return { computedPico, priceGaps, contextBand };
}

/** A call, and the locked identities under which it was reported. */
export interface GroupedCall extends MergedCall {
  identities: readonly HeldIdentity[];
}

interface Group {
  live: LiveReport[];
  added: AddedReport[];
  identities: HeldIdentity[];
}

/** Groups reports by call: reports that share an identity, directly or through others, are of one call. */
export class ReportGroups {
  readonly #sets = new UnionFind<string>();
  readonly #identities: readonly HeldIdentity[];
  readonly #added: AddedReport[] = [];
  readonly #links = new Map<string, SpanLink>();
  readonly #liveIds = new Set<string>();

  /** @param live the event that counts for the call, by the event that an identity names. */
  constructor(identities: readonly HeldIdentity[], live: ReadonlyMap<string, { id: string }>) {
    this.#identities = identities;
    for (const { identity, holderId, link } of identities) {
      const holder = live.get(holderId);
      if (holder === undefined) continue;
      this.#liveIds.add(holder.id);
      this.#sets.join(identityKey(identity), holder.id);
      if (holder.id === holderId && link !== null) this.#links.set(holder.id, link);
    }
  }

  addLive(eventId: string): void {
    this.#liveIds.add(eventId);
  }

  addReport(report: AddedReport): void {
    this.#added.push(report);
  }

  /** Notes the place of a live event in its trace, where no identity has named it. */
  placeLive(eventId: string, link: SpanLink | null): void {
    if (link !== null && !this.#links.has(eventId)) this.#links.set(eventId, link);
  }

  joinIdentities(eventId: string, identities: readonly CallIdentity[]): void {
    for (const identity of identities) this.#sets.join(eventId, identityKey(identity));
  }

  joinEvents(eventId: string, otherId: string): void {
    this.#sets.join(eventId, otherId);
  }

  /** The calls, each with the report that counts for it from now on. */
  *merge(reportOf: (eventId: string, link: SpanLink | null) => LiveReport | undefined): Steps<GroupedCall[]> {
    const groups = new Map<string, Group>();
    const groupOf = (name: string): Group => {
      const root = this.#sets.find(name);
      const group = groups.get(root) ?? { live: [], added: [], identities: [] };
      groups.set(root, group);
      return group;
    };
    for (const id of this.#liveIds) {
      const report = reportOf(id, this.#links.get(id) ?? null);
      if (report !== undefined) groupOf(id).live.push(report);
    }
    for (const report of this.#added) groupOf(report.event.id).added.push(report);
    for (const held of this.#identities) groupOf(identityKey(held.identity)).identities.push(held);
    const calls: GroupedCall[] = [];
    for (const { live, added, identities } of groups.values()) {
      // Everything stored of the call was removed for its age.
      if (live.length === 0) continue;
      const tree = new SpanTree(live.flatMap(({ call }) => call.trace ?? []));
      calls.push({ ...mergeReports(live, added, tree), identities });
      yield;
    }
    return calls;
  }
}

/** Identities that do not point at the counting event: the locked ones, and response ids that were just stored. */
export function identitiesToPoint({ kept, superseded, identities }: GroupedCall): PointedIdentity[] {
  const held = new Set(identities.map(({ identity }) => identityKey(identity)));
  const own = superseded
    .filter(({ stored }) => stored === undefined)
    .flatMap(({ call }) => identitiesOf(call))
    .filter((identity) => 'responseId' in identity && !held.has(identityKey(identity)));
  const moved = identities.filter(({ holderId, isOld }) => holderId !== kept.id || isOld);
  return [...own, ...moved.map(({ identity }) => identity)].map((identity) => ({
    identity,
    liveId: kept.id,
  }));
}
