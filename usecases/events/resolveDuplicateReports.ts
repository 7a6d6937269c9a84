import {
  type HeldIdentity,
  identitiesOf,
  identityKey,
  isPlace,
  lockIdentities,
  movePlaces,
  pointIdentities,
  type RicherPlace,
} from '../../db/events/callIdentities.js';
import type { StorableEvent } from '../../db/events/eventColumns.js';
import { findEventsById, lockLiveEvents } from '../../db/events/events.js';
import type { StoreResult } from '../../db/events/ingest.js';
import {
  type GroupedCall,
  identitiesToPoint,
  type MergedCall,
  newReport,
  ReportGroups,
  storedReport,
  writeMergedCalls,
} from '../../db/events/mergeReports.js';
import { completePayloads } from '../../db/events/payloads.js';
import { callOfStored, type StoredEvent } from '../../db/events/storedEvents.js';
import { hasClaim } from '../../db/events/storeStatement.js';
import type { OrgDb } from '../../db/orgDb.js';
import {
  type AlertChanges,
  type JudgeCost,
  type NewAlert,
  SettledCalls,
  settleAlerts,
} from '../../db/policies/policyAlerts.js';
import { inTurns } from '../../db/turns.js';
import { SpanTree } from '../../domain/events/callGroups.js';
import {
  compareReports,
  isReportedInParts,
  isSameUsage,
  responseKey,
} from '../../domain/events/callReport.js';
import type { Violation } from '../../domain/policies/alert.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Steps } from '../../domain/steps.js';
import type { Judgement } from './judgeBatch.js';
import { type AssumedReports, KnownCallsChanged } from './knownCalls.js';
import { pairNewReports } from './pairStoredReports.js';

const NO_TREE = new SpanTree([]);

/** Judgements of a batch's events that affect their calls' alerts. */
export interface JudgedReports {
  /** Alerts that this transaction created. */
  fresh: readonly NewAlert[];
  /** Alerts of counting reports by their event's id, valid if the event is stored. */
  alerts: Judgement['alerts'];
  /** Policy violations in a superseded report, by its event's id. */
  violationsOf: ReadonlyMap<string, readonly Violation[]>;
  judgeCost: JudgeCost;
}

/** A batch as it was stored. */
export interface StoredBatch extends Pick<StoreResult, 'stored' | 'claimed'> {
  assumed: AssumedReports;
}

export interface ResolvedReports {
  alerts: AlertChanges;
  /** The calls of the batch that had other reports. */
  calls: readonly MergedCall[];
}

/**
 * Decides which event counts for each call of a batch whose identity another event already has: the same response id or
 * span arrived before, in another request, by another way of ingest or in another process. Afterwards each call has one
 * counting event, its identities refer to that event, and so do its alerts. New reports that share no identity are paired.
 * Error: KnownCallsChanged where an assumption about a stored event was wrong.
 */
export async function resolveDuplicateReports(
  orgDb: OrgDb,
  events: readonly StorableEvent[],
  result: StoredBatch,
  prices: PriceBook,
  { fresh, alerts, violationsOf, judgeCost }: JudgedReports,
): Promise<ResolvedReports> {
  const settled = new SettledCalls();
  const { assumed } = result;
  const { reports, newEvents } = reportsToSettle(events, result);
  const touched = new Set<string>();
  let calls: readonly GroupedCall[] = [];
  if (reports.length > 0) {
    const contested = reports.filter(({ isContested }) => isContested).map(({ event }) => event);
    const isClaimed = (event: StorableEvent) => !hasClaim(event) || result.claimed.has(event.id);
    const known = contested.filter((event) => assumed.richer.has(event.id) && isClaimed(event));
    const isKnown = new Set(known);
    const unknown = contested.filter((event) => !isKnown.has(event));
    const identities = await lockIdentities(orgDb, unknown, known);
    const holders = identities.map(({ holderId }) => holderId);
    const winners = reports.flatMap(({ storedWinnerId }) => storedWinnerId ?? []);
    const live = await lockLiveEvents(orgDb, [...holders, ...winners]);
    const alerted = new Set(fresh.map(({ event }) => event.id));
    const found = { reports, newEvents, identities, live, violationsOf, alerts, alerted, assumed };
    calls = await inTurns(groupByCall(found));
    verifyAssumed(assumed, reports, calls);
    if (!areAllHeld(known, identities)) throw new KnownCallsChanged();
    await writeMergedCalls(orgDb, calls, prices, settled);
    await pointIdentities(orgDb, calls.flatMap(identitiesToPoint));
    await movePlaces(orgDb, await findRicherPlaces(orgDb, contested, calls));
    const completing = reports.filter(({ event, isPart }) => isPart && live.has(event.id));
    await completePayloads(
      orgDb,
      completing.map(({ event }) => event),
    );
    for (const { kept, superseded } of calls) for (const { id } of [kept, ...superseded]) touched.add(id);
  }
  await pairNewReports(orgDb, events, { stored: result.stored, settled: touched }, prices, settled);
  return { alerts: await settleAlerts(orgDb, settled, fresh, judgeCost), calls };
}

/** Whether the response id of each report is stored. */
function areAllHeld(known: readonly StorableEvent[], identities: readonly HeldIdentity[]): boolean {
  if (known.length === 0) return true;
  const held = new Set(identities.map(({ identity }) => identityKey(identity)));
  return known.every(({ call }) =>
    identitiesOf(call).every((identity) => isPlace(identity) || held.has(identityKey(identity))),
  );
}

/** Throws KnownCallsChanged unless each assumed report was merged into a richer one that counts. */
function verifyAssumed(
  { winners }: AssumedReports,
  reports: readonly NewReport[],
  calls: readonly GroupedCall[],
): void {
  const open = new Set(reports.flatMap(({ event: { id } }) => (winners.has(id) ? [id] : [])));
  if (open.size === 0) return;
  for (const { kept, added } of calls)
    for (const { event } of added)
      if (compareReports(event.call, kept.call, NO_TREE) < 0) open.delete(event.id);
  if (open.size > 0) throw new KnownCallsChanged();
}

/** A new event that shares an identity with events outside its batch, or with another one of its batch. */
interface NewReport {
  event: StorableEvent;
  /** Another report had one of its identities first. */
  isContested: boolean;
  /** A further part of a stored event: it has that event's id and is not stored itself. */
  isPart: boolean;
  /** The stored event that it was resolved into; undefined: none. */
  storedWinnerId: string | undefined;
  /**
   * The new event that it was resolved into, where the same identity proves both to be the same call; undefined: none.
   */
  newWinnerId: string | undefined;
}

function reportsToSettle(
  events: readonly StorableEvent[],
  { stored, claimed, assumed }: StoredBatch,
): { reports: NewReport[]; newEvents: ReadonlyMap<string, StorableEvent> } {
  const isContested = (event: StorableEvent) =>
    assumed.richer.has(event.id) || (hasClaim(event) && !claimed.has(event.id));
  const isMerged = ({ id }: StorableEvent) => stored.has(assumed.mergedInto.get(id) ?? '');
  const isOfStored = ({ supersededBy }: StorableEvent) => supersededBy !== null && !stored.has(supersededBy);
  const isPart = ({ id, call, supersededBy }: StorableEvent) =>
    !stored.has(id) && supersededBy === null && isReportedInParts(call);
  const found = events.filter(
    (event) =>
      isPart(event) ||
      (stored.has(event.id) && (isContested(event) || (isOfStored(event) && !isMerged(event)))),
  );
  const newEvents = new Map<string, StorableEvent>();
  if (found.length === 0) return { reports: [], newEvents };
  // An event that is in the batch twice is stored in its first form.
  for (const event of events)
    if (stored.has(event.id) && !newEvents.has(event.id)) newEvents.set(event.id, event);
  const parts = new Map(found.filter(isPart).map((event) => [event.id, event]));
  const reports = found
    .filter((event) => (newEvents.get(event.id) ?? parts.get(event.id)) === event)
    .map((event): NewReport => {
      const { supersededBy } = event;
      const winner = supersededBy === null ? undefined : newEvents.get(supersededBy);
      return {
        event,
        isContested: isContested(event),
        isPart: isPart(event),
        storedWinnerId: isPart(event) ? event.id : isOfStored(event) ? (supersededBy as string) : undefined,
        newWinnerId: winner !== undefined && isProvenSame(event, winner) ? winner.id : undefined,
      };
    });
  return { reports, newEvents };
}

/**
 * Whether both events are certainly one call. False where one of them sums up several calls: an identity of the other
 * is then not an identity of the sum.
 */
function isProvenSame({ call: one }: StorableEvent, { call: other }: StorableEvent): boolean {
  const key = responseKey(one);
  if (key !== null && key === responseKey(other)) return true;
  return one.usage === null || other.usage === null || isSameUsage(one.usage, other.usage);
}

/** Trace places that have received a richer report than the one that they are stored with. */
async function findRicherPlaces(
  orgDb: OrgDb,
  events: readonly StorableEvent[],
  calls: readonly GroupedCall[],
): Promise<RicherPlace[]> {
  const places = calls.flatMap(({ kept, identities }) =>
    identities.flatMap(({ identity, eventId }) =>
      isPlace(identity) ? [{ identity, eventId, liveId: kept.id }] : [],
    ),
  );
  if (places.length === 0) return [];
  const known = await findEventsById(
    orgDb,
    places.map(({ eventId }) => eventId),
  );
  const knownById = new Map(known.map((event) => [event.id, event]));
  const richest = new Map<string, StorableEvent>();
  for (const event of events) {
    if (event.call.trace === null) continue;
    const key = identityKey(event.call.trace);
    const best = richest.get(key);
    if (best === undefined || compareReports(event.call, best.call, NO_TREE) > 0) richest.set(key, event);
  }
  return places.flatMap((place) => {
    const event = richest.get(identityKey(place.identity));
    const before = knownById.get(place.eventId);
    if (event === undefined || event.id === place.eventId) return [];
    if (before && compareReports(callOfStored(before, place.identity), event.call, NO_TREE) >= 0) return [];
    return [{ ...place, eventId: event.id }];
  });
}

interface Found {
  reports: readonly NewReport[];
  newEvents: ReadonlyMap<string, StorableEvent>;
  identities: readonly HeldIdentity[];
  /** The counting event of each call, by the id of the event that an identity or report names. */
  live: ReadonlyMap<string, StoredEvent>;
  violationsOf: JudgedReports['violationsOf'];
  alerts: JudgedReports['alerts'];
  /** New events with alerts. */
  alerted: ReadonlySet<string>;
  assumed: AssumedReports;
}

function* groupByCall(found: Found): Steps<GroupedCall[]> {
  const { reports, newEvents, identities, live, violationsOf, alerts, alerted, assumed } = found;
  const groups = new ReportGroups(identities, live);
  for (const { eventId, trace } of assumed.winners.values())
    if (live.get(eventId)?.id === eventId) groups.placeLive(eventId, trace);
  const saidIn = ({ id }: StorableEvent) => {
    const made = alerted.has(id) ? undefined : alerts.get(id);
    return violationsOf.get(id) ?? made?.map(({ violation }) => violation) ?? [];
  };
  for (const { event, isContested, isPart, storedWinnerId, newWinnerId } of reports) {
    if (event.supersededBy === null && !isPart) groups.addLive(event.id);
    if (isContested) groups.joinIdentities(event.id, identitiesOf(event.call));
    if (storedWinnerId !== undefined)
      groups.addReport({ event, said: saidIn(event), isAlerted: alerted.has(event.id) });
    const winnerId = newWinnerId ?? (storedWinnerId === undefined ? undefined : live.get(storedWinnerId)?.id);
    if (winnerId === undefined) continue;
    groups.addLive(winnerId);
    groups.joinEvents(event.id, winnerId);
  }
  const storedById = new Map([...live.values()].map((event) => [event.id, event]));
  return yield* groups.merge((id, link) => {
    const event = newEvents.get(id);
    if (event !== undefined) return newReport(event);
    const stored = storedById.get(id);
    return stored && storedReport(stored, link);
  });
}
