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
import { hasClaim, type StoreResult } from '../../db/events/ingest.js';
import {
  type GroupedCall,
  identitiesToPoint,
  newReport,
  ReportGroups,
  storedReport,
  writeMergedCalls,
} from '../../db/events/mergeReports.js';
import { callOfStored, type StoredEvent } from '../../db/events/storedEvents.js';
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
import { compareReports, isSameUsage, responseKey } from '../../domain/events/callReport.js';
import type { Violation } from '../../domain/policies/alert.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Steps } from '../../domain/steps.js';

/** What was judged of the events of a batch, as far as their calls' alerts depend on it. */
export interface JudgedReports {
  /** Alerts that this transaction has made. */
  fresh: readonly NewAlert[];
  /** What a superseded report says that breaks a policy, by its event's id. */
  violationsOf: ReadonlyMap<string, readonly Violation[]>;
  judgeCost: JudgeCost;
}

/**
 * Decides, for the events of a batch whose identity another event has, which of them counts: the same response id or the
 * same span came before, in another request, another way in or another process. Afterwards each call has one event that
 * counts, and its identities point at that event. Its alerts follow.
 */
export async function resolveDuplicateReports(
  orgDb: OrgDb,
  events: readonly StorableEvent[],
  result: Pick<StoreResult, 'stored' | 'claimed'>,
  prices: PriceBook,
  { fresh, violationsOf, judgeCost }: JudgedReports,
): Promise<AlertChanges> {
  const settled = new SettledCalls();
  const { reports, newEvents } = reportsToSettle(events, result);
  if (reports.length > 0) {
    const contested = reports.filter(({ isContested }) => isContested).map(({ event }) => event);
    const identities = await lockIdentities(orgDb, contested);
    const holders = identities.map(({ holderId }) => holderId);
    const winners = reports.flatMap(({ storedWinnerId }) => storedWinnerId ?? []);
    const live = await lockLiveEvents(orgDb, [...holders, ...winners]);
    const calls = await inTurns(groupByCall({ reports, newEvents, identities, live, violationsOf }));
    await writeMergedCalls(orgDb, calls, prices, settled);
    await pointIdentities(orgDb, calls.flatMap(identitiesToPoint));
    await movePlaces(orgDb, await findRicherPlaces(orgDb, contested, calls));
  }
  return settleAlerts(orgDb, settled, fresh, judgeCost);
}

/** A new event that has to do with events outside its batch, or with another one of its batch by its identities. */
interface NewReport {
  event: StorableEvent;
  /** Another report had one of its identities first. */
  isContested: boolean;
  /** The event that it was resolved into, where that one was stored before. */
  storedWinnerId: string | undefined;
  /** The new event that it was resolved into, where what proves the one to be of a call proves the other. */
  newWinnerId: string | undefined;
}

function reportsToSettle(
  events: readonly StorableEvent[],
  { stored, claimed }: Pick<StoreResult, 'stored' | 'claimed'>,
): { reports: NewReport[]; newEvents: ReadonlyMap<string, StorableEvent> } {
  const isContested = (event: StorableEvent) => hasClaim(event) && !claimed.has(event.id);
  const isOfStored = ({ supersededBy }: StorableEvent) => supersededBy !== null && !stored.has(supersededBy);
  const found = events.filter((event) => stored.has(event.id) && (isContested(event) || isOfStored(event)));
  const newEvents = new Map<string, StorableEvent>();
  if (found.length === 0) return { reports: [], newEvents };
  // An event that is in the batch twice is stored in its first form.
  for (const event of events)
    if (stored.has(event.id) && !newEvents.has(event.id)) newEvents.set(event.id, event);
  const reports = found
    .filter((event) => newEvents.get(event.id) === event)
    .map((event): NewReport => {
      const { supersededBy } = event;
      const winner = supersededBy === null ? undefined : newEvents.get(supersededBy);
      return {
        event,
        isContested: isContested(event),
        storedWinnerId: isOfStored(event) ? (supersededBy as string) : undefined,
        newWinnerId: winner !== undefined && isProvenSame(event, winner) ? winner.id : undefined,
      };
    });
  return { reports, newEvents };
}

/** Not where one of the two sums up several calls: what has its identity is not of the call that it was resolved into. */
function isProvenSame({ call: one }: StorableEvent, { call: other }: StorableEvent): boolean {
  const key = responseKey(one);
  if (key !== null && key === responseKey(other)) return true;
  return one.usage === null || other.usage === null || isSameUsage(one.usage, other.usage);
}

/** Places from which a richer report has come than the one by which they are known. */
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
  const tree = new SpanTree([]);
  const richest = new Map<string, StorableEvent>();
  for (const event of events) {
    if (event.call.trace === null) continue;
    const key = identityKey(event.call.trace);
    const best = richest.get(key);
    if (best === undefined || compareReports(event.call, best.call, tree) > 0) richest.set(key, event);
  }
  return places.flatMap((place) => {
    const event = richest.get(identityKey(place.identity));
    const before = knownById.get(place.eventId);
    if (event === undefined || event.id === place.eventId) return [];
    if (before && compareReports(callOfStored(before, place.identity), event.call, tree) >= 0) return [];
    return [{ ...place, eventId: event.id }];
  });
}

interface Found {
  reports: readonly NewReport[];
  newEvents: ReadonlyMap<string, StorableEvent>;
  identities: readonly HeldIdentity[];
  /** By the event that an identity or a report names: the one that counts for its call. */
  live: ReadonlyMap<string, StoredEvent>;
  violationsOf: JudgedReports['violationsOf'];
}

function* groupByCall({ reports, newEvents, identities, live, violationsOf }: Found): Steps<GroupedCall[]> {
  const groups = new ReportGroups(identities, live);
  for (const { event, isContested, storedWinnerId, newWinnerId } of reports) {
    if (event.supersededBy === null) groups.addLive(event.id);
    if (isContested) groups.joinIdentities(event.id, identitiesOf(event.call));
    if (storedWinnerId !== undefined) groups.addReport({ event, said: violationsOf.get(event.id) ?? [] });
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
