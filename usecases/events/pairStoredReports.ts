import type { Database } from '../../db/client.js';
import type { StorableEvent } from '../../db/events/eventColumns.js';
import { findEventsById, lockLiveEvents } from '../../db/events/events.js';
import {
  type LiveReport,
  type MergedCall,
  newReport,
  storedReport,
  writeMergedCalls,
} from '../../db/events/mergeReports.js';
import {
  type DoubleService,
  type FoundReport,
  type HeldPairable,
  insertPairable,
  listDoubleServices,
  listEarlierReports,
  listNewReports,
  lockPairable,
  type NewPairable,
  type PairedReport,
  type PairGroup,
  recordPairs,
  type TakenScope,
  type TransactionRange,
  takeScopes,
} from '../../db/events/pairedReports.js';
import { callOfStored, type StoredEvent } from '../../db/events/storedEvents.js';
import { OrgDb } from '../../db/orgDb.js';
import { repeatOnConflict } from '../../db/pgErrors.js';
import { SettledCalls } from '../../db/policies/policyAlerts.js';
import { inTurns } from '../../db/turns.js';
import { SpanTree } from '../../domain/events/callGroups.js';
import { mergeReport } from '../../domain/events/callReport.js';
import {
  type PairableReport,
  pairKeyOf,
  pairReports,
  type ReportPair,
} from '../../domain/events/pairs/pairReports.js';
import { costOf } from '../../domain/pricing/cost.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Prices } from '../pricing/priceBookHolder.js';
import { settleAlertsOfStored } from './settleAlertsOfStored.js';

/** Pairs two reports of one call that share no id: those of a batch at once, others in the sweep (docs/ingest.md). */

const NO_TREE = new SpanTree([]);

/** A report with the reports of its scopes' calls. */
interface Pairing {
  report: PairableReport;
  live: LiveReport;
}

function* groupPairs(groups: Iterable<readonly Pairing[]>): Generator<undefined, ReportPair[], undefined> {
  const pairs: ReportPair[] = [];
  for (const group of groups) {
    pairs.push(...(yield* pairReports(group.map(({ report }) => report))));
    yield;
  }
  return pairs;
}

/** The call of each winner, completed by its losers. */
function mergePairs(pairs: readonly ReportPair[], liveById: ReadonlyMap<string, LiveReport>): MergedCall[] {
  const calls = new Map<string, MergedCall & { superseded: LiveReport[] }>();
  for (const { loserId, winnerId } of pairs) {
    const [kept, loser] = [liveById.get(winnerId) as LiveReport, liveById.get(loserId) as LiveReport];
    const call = calls.get(winnerId) ?? { kept, call: kept.call, superseded: [], added: [] };
    call.superseded.push(loser);
    calls.set(winnerId, { ...call, call: mergeReport(call.call, loser.call, NO_TREE) });
  }
  return [...calls.values()];
}

/**
 * Pairs new events of a batch with each other. `settled` events, whose call another event reported before, wait for the
 * sweep. The alerts of the pairs are noted in `alerts`.
 */
export async function pairNewReports(
  orgDb: OrgDb,
  events: readonly StorableEvent[],
  { stored, settled }: { stored: ReadonlySet<string>; settled: ReadonlySet<string> },
  prices: PriceBook,
  alerts: SettledCalls,
): Promise<void> {
  const groups = groupNew(events, stored, settled);
  if (groups.length === 0) return;
  const pairs = await inTurns(groupPairs(groups));
  if (pairs.length === 0) return;
  const byId = new Map(groups.flat().map((pairing) => [pairing.report.id, pairing]));
  const liveById = new Map([...byId].map(([id, { live }]) => [id, live]));
  await writeMergedCalls(orgDb, mergePairs(pairs, liveById), prices, alerts);
  const used = new Set(pairs.flatMap(({ loserId, winnerId }) => [loserId, winnerId]));
  await insertPairable(
    orgDb,
    events.flatMap((event) => (used.delete(event.id) ? [pairableOf(event, byId)] : [])),
  );
  await recordPairs(
    orgDb,
    pairs.map((pair) => pairedReport(pair, liveById, prices)),
  );
}

/** The events of two scopes with one pair key. */
function groupNew(
  events: readonly StorableEvent[],
  stored: ReadonlySet<string>,
  settled: ReadonlySet<string>,
): Pairing[][] {
  if (!hasTwoScopes(events)) return [];
  const taken = new Map<string, string[]>();
  for (const { supersededBy, call } of events) {
    if (supersededBy === null) continue;
    const scopes = taken.get(supersededBy);
    if (scopes) scopes.push(call.scopeName);
    else taken.set(supersededBy, [call.scopeName]);
  }
  const groups = new Map<bigint, Map<string, Pairing>>();
  for (const event of events) {
    const key = event.supersededBy === null && stored.has(event.id) ? pairKeyOf(event.call) : null;
    if (key === null || settled.has(event.id)) continue;
    const group = groups.get(key) ?? new Map<string, Pairing>();
    groups.set(key, group);
    // An event that is in the batch twice is stored in its first form.
    if (group.has(event.id)) continue;
    const takenScopes = taken.get(event.id) ?? [];
    const report = { id: event.id, call: event.call, pairedWith: null, takenScopes };
    group.set(event.id, { report, live: newReport(event) });
  }
  return [...groups.values()].filter(({ size }) => size > 1).map((group) => [...group.values()]);
}

function hasTwoScopes(events: readonly StorableEvent[]): boolean {
  let first: string | undefined;
  for (const { call } of events) {
    if (call.process === null) continue;
    first ??= call.scopeName;
    if (call.scopeName !== first) return true;
  }
  return false;
}

function pairableOf({ id, call }: StorableEvent, byId: ReadonlyMap<string, Pairing>): NewPairable {
  const { startMicros, endMicros, serviceName, scopeName } = call;
  return {
    eventId: id,
    pairKey: pairKeyOf(call) as bigint,
    startMicros,
    endMicros,
    serviceName,
    scopeName,
    takenScopes: byId.get(id)?.report.takenScopes ?? [],
  };
}

function pairedReport(
  { loserId, winnerId }: ReportPair,
  liveById: ReadonlyMap<string, LiveReport>,
  prices: PriceBook,
): PairedReport {
  const [loser, winner] = [liveById.get(loserId) as LiveReport, liveById.get(winnerId) as LiveReport];
  const costPico = loser.stored?.costPico ?? costOf(loser.withCall(loser.call, prices)).pico;
  return { eventId: loserId, winnerId, winnerScope: winner.call.scopeName, costPico };
}

/**
 * Pairs reports that arrived in different requests, of services with two instrumentations, among the reports that a range
 * of transactions stored and the earlier ones around them. A repeat changes nothing. Returns the number of reports that
 * count no more.
 */
export async function pairStoredReports(
  database: Database,
  prices: Pick<Prices, 'of'>,
  range: TransactionRange,
): Promise<number> {
  const byOrganization = new Map<string, DoubleService[]>();
  for (const service of await listDoubleServices(database, range))
    byOrganization.set(service.orgId, [...(byOrganization.get(service.orgId) ?? []), service]);
  let superseded = 0;
  for (const [orgId, services] of byOrganization) {
    const book = await prices.of(orgId);
    superseded += await repeatOnConflict(() =>
      new OrgDb(database, orgId).transaction((inside) => pairReportsOf(inside, services, range, book)),
    );
  }
  return superseded;
}

async function pairReportsOf(
  orgDb: OrgDb,
  services: readonly DoubleService[],
  range: TransactionRange,
  prices: PriceBook,
): Promise<number> {
  const fresh = await listNewReports(
    orgDb,
    services.map(({ serviceName }) => serviceName),
    range,
  );
  if (fresh.length === 0) return 0;
  const { pairable, taken } = sortReports(
    [...fresh, ...(await listEarlier(orgDb, services, range, fresh))],
    services,
  );
  await insertPairable(orgDb, pairable);
  await takeScopes(orgDb, taken);
  const held = await lockPairable(orgDb, groupsOf(pairable));
  if (held.length === 0) return 0;
  const live = await lockLiveEvents(
    orgDb,
    held.map(({ pairedWith, eventId }) => pairedWith ?? eventId),
  );
  const losers = await findEventsById(
    orgDb,
    held.flatMap(({ pairedWith, eventId }) => (pairedWith === null ? [] : [eventId])),
  );
  const groups = pairingsOf(held, live, new Map(losers.map((event) => [event.id, event])));
  const pairs = await inTurns(groupPairs(groups.values()));
  if (pairs.length === 0) return 0;
  const liveById = new Map(
    [...groups.values()].flatMap((group) => group.map(({ report, live: one }) => [report.id, one])),
  );
  const settled = new SettledCalls();
  await writeMergedCalls(orgDb, mergePairs(pairs, liveById), prices, settled);
  await recordPairs(
    orgDb,
    pairs.map((pair) => pairedReport(pair, liveById, prices)),
  );
  await settleAlertsOfStored(orgDb, settled);
  return pairs.length;
}

/** Earlier reports of services whose second instrumentation has just reported for the first time. */
async function listEarlier(
  orgDb: OrgDb,
  services: readonly DoubleService[],
  { from }: TransactionRange,
  fresh: readonly FoundReport[],
): Promise<FoundReport[]> {
  const names = services.filter(({ isNew }) => isNew).map(({ serviceName }) => serviceName);
  const around = fresh.filter(({ serviceName }) => names.includes(serviceName));
  const [first] = around;
  if (first === undefined) return [];
  const toMicros = around.reduce(
    (last, { endMicros }) => (endMicros > last ? endMicros : last),
    first.endMicros,
  );
  return listEarlierReports(orgDb, names, from, { fromMicros: first.startMicros, toMicros });
}

/**
 * Reports that can still be one of a pair, and scopes whose report of a call is known by an id. A report of whose call
 * every scope of the service has one cannot be.
 */
function sortReports(
  reports: readonly FoundReport[],
  services: readonly DoubleService[],
): { pairable: NewPairable[]; taken: TakenScope[] } {
  const scopesOf = new Map(services.map(({ serviceName, scopes }) => [serviceName, scopes]));
  const taken: TakenScope[] = [];
  const takenOf = new Map<string, Set<string>>();
  for (const { supersededBy, isPaired, scopeName } of reports) {
    if (supersededBy === null || isPaired) continue;
    taken.push({ eventId: supersededBy, scopeName });
    takenOf.set(supersededBy, (takenOf.get(supersededBy) ?? new Set()).add(scopeName));
  }
  const pairable = reports.flatMap((report): NewPairable[] => {
    if (report.supersededBy !== null) return [];
    const takenScopes = takenOf.get(report.eventId) ?? new Set();
    const scopes = scopesOf.get(report.serviceName) ?? [];
    const isComplete = scopes.every((scope) => scope === report.scopeName || takenScopes.has(scope));
    return isComplete ? [] : [{ ...report, takenScopes: [...takenScopes] }];
  });
  return { pairable, taken };
}

/** The times of the reports with each pair key. */
function groupsOf(reports: readonly NewPairable[]): PairGroup[] {
  const groups = new Map<bigint, PairGroup>();
  for (const { pairKey, startMicros, endMicros } of reports) {
    const group = groups.get(pairKey);
    if (group === undefined) {
      groups.set(pairKey, { pairKey, fromMicros: startMicros, toMicros: endMicros });
      continue;
    }
    if (startMicros < group.fromMicros) group.fromMicros = startMicros;
    if (endMicros > group.toMicros) group.toMicros = endMicros;
  }
  return [...groups.values()];
}

/** Reports by pair key; those that an id has superseded since are left out. */
function pairingsOf(
  held: readonly HeldPairable[],
  liveOf: ReadonlyMap<string, StoredEvent>,
  losersById: ReadonlyMap<string, StoredEvent>,
): Map<bigint, Pairing[]> {
  const groups = new Map<bigint, Pairing[]>();
  for (const { eventId, pairedWith, pairKey, takenScopes } of held) {
    const counting = liveOf.get(pairedWith ?? eventId);
    const event = pairedWith === null ? counting : losersById.get(eventId);
    // The event that counts for it, or itself, was removed for its age; or an id has superseded it.
    if (counting === undefined || event === undefined) continue;
    if (pairedWith === null && counting.id !== eventId) continue;
    const report = {
      id: eventId,
      call: callOfStored(event, null),
      pairedWith: pairedWith === null ? null : counting.id,
      takenScopes,
    };
    const group = groups.get(pairKey) ?? [];
    group.push({ report, live: storedReport(event, null) });
    groups.set(pairKey, group);
  }
  return groups;
}
