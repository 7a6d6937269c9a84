import {
  listObservedCells,
  listObservedDay,
  listObservedModelDays,
} from '../../../../db/billing/billingCells.js';
import {
  type CallIdentity,
  lockIdentities,
  movePlaces,
  pointIdentities,
  pointResponsesOf,
} from '../../../../db/events/callIdentities.js';
import {
  findEventsById,
  findLiveIds,
  getEvent,
  listEvents,
  lockEventsById,
  lockLiveEvents,
  shortenChains,
  streamEventLines,
  walkChains,
} from '../../../../db/events/events.js';
import { insertEvents, recordRejections } from '../../../../db/events/ingest.js';
import {
  findFormerNotice,
  listDoubleReports,
  listRejections,
  readSources,
} from '../../../../db/events/ingestHealth.js';
import { storedReport, writeMergedCalls } from '../../../../db/events/mergeReports.js';
import {
  addMeteredUsage,
  lockSeries,
  putSeries,
  readMeteredSources,
} from '../../../../db/events/meteredUsage.js';
import {
  listGenerationsOf,
  lockRecords,
  notePassedOn,
  putRecords,
} from '../../../../db/events/observationRecords.js';
import { listObservedSince } from '../../../../db/events/observedCalls.js';
import {
  findPairedIds,
  insertPairable,
  listEarlierReports,
  listNewReports,
  listPairedScopes,
  lockPairable,
  recordPairs,
  recordScopes,
  takeScopes,
} from '../../../../db/events/pairedReports.js';
import { completePayloads } from '../../../../db/events/payloads.js';
import { changePrices, completeEvents, supersedeEvents } from '../../../../db/events/revisions.js';
import { callOfStored, placeOf, type StoredEvent, storableOf } from '../../../../db/events/storedEvents.js';
import { listTraceParts, readTraceSpans } from '../../../../db/events/touchedTraces.js';
import { SettledCalls } from '../../../../db/policies/policyAlerts.js';
import { readUnpricedModels } from '../../../../db/pricing/unpriced.js';
import { listRequestCosts } from '../../../../db/usage/requestCosts.js';
import { foldUsage } from '../../../../db/usage/rollups.js';
import { readBooks, readFoldedXid, readFoldState, readUsage } from '../../../../db/usage/usage.js';
import { repairNextCalls } from '../../../../usecases/events/callRepairs.js';
import { openEventExport } from '../../../../usecases/events/eventExport.js';
import { listSourceHealth } from '../../../../usecases/events/ingestHealth.js';
import { NOTHING_ASSUMED } from '../../../../usecases/events/knownCalls.js';
import { listMeteredSources } from '../../../../usecases/events/meterPoints.js';
import { pairNewReports } from '../../../../usecases/events/pairStoredReports.js';
import { resolveDuplicateReports } from '../../../../usecases/events/resolveDuplicateReports.js';
import { settleAlertsOfStored } from '../../../../usecases/events/settleAlertsOfStored.js';
import { listUnpricedModels } from '../../../../usecases/pricing/repriceCalls.js';
import { readChargeback } from '../../../../usecases/usage/chargeback.js';
import { sumSources, sumUsage, sumUsageAsOf, sumUsageBooks } from '../../../../usecases/usage/usage.js';
import { OWNED_PAIR_KEY, OWNED_POINT, OWNED_RECORDS, RECORDS_KEY, reportedSpan } from '../ownedCalls.js';
import type { Owned } from '../ownedThings.js';
import type { TenancyCase } from './tenancyCase.js';

const WINDOW = { fromMicros: 0n, toMicros: 4_000_000_000_000_000n };
const QUESTION = { dimension: 'team', filter: {}, limit: 10, offset: 0 } as const;
const PAGE = { limit: 1_000, offset: 0 };

const storable = (event: StoredEvent, { prices }: Owned) =>
  storableOf(event, callOfStored(event, null), prices);
const dayOf = (event: StoredEvent) => new Date(Number(event.endMicros / 1_000n)).toISOString().slice(0, 10);
const neighbourOf = (id: string) => `${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}`;

/** The owner's span with a response id, as it would come again. */
const reportOf = (of: Owned) => {
  const { traceId, spanId, responseId } = reportedSpan(of.marker);
  const call = { ...storable(of.live, of).call, responseId, trace: { traceId, spanId, parentSpanId: null } };
  return { id: of.other.id, call };
};
const pairableOf = ({ live, marker }: Owned) => ({
  eventId: neighbourOf(live.id),
  pairKey: OWNED_PAIR_KEY,
  startMicros: live.timestampMicros,
  endMicros: live.endMicros,
  serviceName: marker,
  scopeName: marker,
  takenScopes: [],
});
const mergedCall = ({ live, other }: Owned) => {
  const kept = storedReport(live, null);
  return { kept, call: kept.call, superseded: [storedReport(other, null)], added: [] };
};

/** Calls and their totals. */
export const CALL_CASES: Record<string, TenancyCase> = {
  listEvents: (db) => listEvents(db, {}, PAGE, true),
  getEvent: (db, { live }) => getEvent(db, live.id, true),
  lockEventsById: (db, { live }) => lockEventsById(db, [live.id]),
  findEventsById: (db, { live }) => findEventsById(db, [live.id]),
  lockLiveEvents: (db, { live }) => lockLiveEvents(db, [live.id]),
  walkChains: (db, { live }) => walkChains(db, [live.id]),
  findLiveIds: (db, { live }) => findLiveIds(db, [live.id]),
  // The other one is superseded by an event that is superseded by the first.
  shortenChains: async (db, of) => {
    await supersedeEvents(db, [{ ...placeOf(of.other), winnerId: neighbourOf(of.live.id), isNew: false }]);
    await shortenChains(
      db,
      new Map([
        [of.other.id, neighbourOf(of.live.id)],
        [neighbourOf(of.live.id), of.live.id],
        [of.live.id, null],
      ]),
    );
  },
  listTraceParts: (db, { marker }) => listTraceParts(db, [reportedSpan(marker).traceId]),
  readTraceSpans: (db, { marker }) => readTraceSpans(db, [reportedSpan(marker).traceId]),
  lockIdentities: (db, of) => lockIdentities(db, [reportOf(of)]),
  pointIdentities: (db, of) => {
    const { traceId, spanId, responseId } = reportedSpan(of.marker);
    const identities: CallIdentity[] = [
      { biller: 'openai', responseId },
      { traceId, spanId, parentSpanId: null },
    ];
    return pointIdentities(
      db,
      identities.map((identity) => ({ identity, liveId: of.live.id })),
    );
  },
  movePlaces: (db, of) => {
    const { traceId, spanId } = reportedSpan(of.marker);
    const identity = { traceId, spanId, parentSpanId: null };
    return movePlaces(db, [{ identity, eventId: of.live.id, liveId: of.live.id }]);
  },
  pointResponsesOf: async (db, of) => {
    const held = await lockIdentities(db, [reportOf(of)]);
    const superseded = held.map(({ holderId }) => ({ id: holderId, liveId: of.live.id }));
    return pointResponsesOf(db, [reportedSpan(of.marker).traceId], superseded);
  },
  recordScopes: (db, { marker }) => recordScopes(db, [{ serviceName: marker, scopeName: `${marker}-other` }]),
  listNewReports: (db) => listNewReports(db, [''], { from: 0, below: 1e15 }),
  listEarlierReports: (db) => listEarlierReports(db, [''], 1e15, WINDOW),
  insertPairable: (db, of) => insertPairable(db, [pairableOf(of)]),
  takeScopes: (db, { live, marker }) => takeScopes(db, [{ eventId: live.id, scopeName: marker }]),
  lockPairable: (db) => lockPairable(db, [{ pairKey: OWNED_PAIR_KEY, ...WINDOW }]),
  recordPairs: (db, { live, other, marker }) =>
    recordPairs(db, [{ eventId: live.id, winnerId: other.id, winnerScope: `${marker}-other`, costPico: 2n }]),
  findPairedIds: (db, { live }) => findPairedIds(db, [live.id]),
  listPairedScopes: (db) => listPairedScopes(db, 0n),
  pairNewReports: (db, of) => {
    const { live, other } = of;
    const loser = {
      ...storable(other, of).call,
      process: { hash: 1n, isIdentified: true },
      scopeName: 'scope-a',
      responseId: null,
      reportedClasses: 1,
    };
    const winner = { ...loser, scopeName: 'scope-b', reportedClasses: 2 };
    const events = [
      { ...storable(other, of), call: loser },
      { ...storable(live, of), call: winner },
    ];
    const sets = { stored: new Set([live.id, other.id]), settled: new Set<string>() };
    return pairNewReports(db, events, sets, of.prices, new SettledCalls());
  },
  repairNextCalls: (db, { prices }) => repairNextCalls(db, prices),
  streamEventLines: async (db) => {
    const partitions: unknown[] = [];
    const window = { ...WINDOW, snapshotMicros: WINDOW.toMicros };
    for await (const partition of streamEventLines(db, window, true))
      partitions.push(partition.toString('latin1'));
    return partitions;
  },
  openEventExport: async (db) => {
    const partitions: unknown[] = [];
    for await (const partition of (await openEventExport(db, WINDOW, true)).blocks)
      partitions.push(partition.toString('latin1'));
    return partitions;
  },
  listObservedCells: (db, { live }) => listObservedCells(db, { provider: 'openai', day: dayOf(live) }),
  listObservedDay: (db, { live }) => listObservedDay(db, { provider: 'openai', day: dayOf(live) }),
  listObservedModelDays: (db, { live }) =>
    listObservedModelDays(db, { provider: 'openai', fromDay: dayOf(live), toDay: dayOf(live) }),
  listObservedSince: (db) => listObservedSince(db, 'openai'),
  // The id of the owner's call, with the digest of another key: another call of the same id.
  insertEvents: (db, of) =>
    insertEvents(db, {
      events: [{ ...storable(of.live, of), id: neighbourOf(of.live.id), apiKeyHash: '0'.repeat(16) }],
      links: [],
      alerts: [],
      isNew: false,
    }),
  recordRejections: (db, { marker }) =>
    recordRejections(db, [
      { projectId: null, serviceName: marker, scopeName: 'sdk', reason: 'invalid_number', count: 5 },
    ]),
  listRejections: (db) => listRejections(db, WINDOW.fromMicros),
  findFormerNotice: (db, { marker }) => findFormerNotice(db, `double_instrumentation:${marker}`),
  readSources: (db) => readSources(db, WINDOW.fromMicros),
  readUsage: async (db) => readUsage(db, { ...QUESTION, ...WINDOW }, await readBooks(db)),
  listSourceHealth: (db) => listSourceHealth(db, WINDOW.fromMicros),
  listDoubleReports: (db) => listDoubleReports(db, WINDOW.fromMicros),
  readUnpricedModels: (db) => readUnpricedModels(db, WINDOW),
  listUnpricedModels: (db) => listUnpricedModels(db, WINDOW),
  sumUsage: (db) => sumUsage(db, { ...QUESTION, ...WINDOW }),
  sumUsageBooks: (db) => sumUsageBooks(db, { ...QUESTION, ...WINDOW, view: { kind: 'books' } }),
  sumUsageAsOf: (db) =>
    sumUsageAsOf(
      db,
      { asOf: undefined, ...WINDOW, names: ['from', 'to'], nowMicros: WINDOW.toMicros },
      { dimension: 'team', filter: {}, limit: 10 },
    ),
  sumSources: (db) => sumSources(db, WINDOW.fromMicros),
  readBooks: (db) => readBooks(db),
  listRequestCosts: (db) => listRequestCosts(db, WINDOW, 10),
  readChargeback: (db) =>
    readChargeback(db, {
      dimension: 'team_id',
      allocation: undefined,
      asOf: undefined,
      ...WINDOW,
      names: ['from', 'to'],
      nowMicros: WINDOW.toMicros,
    }),
  readFoldedXid: (db) => readFoldedXid(db),
  readFoldState: (db) => readFoldState(db),
  changePrices: (db, of) =>
    changePrices(db, [
      {
        ...placeOf(of.live),
        costPico: 1n,
        costSource: 'computed',
        price: { ...storable(of.live, of).price, computedPico: 1n },
      },
    ]),
  lockSeries: (db) => lockSeries(db, [OWNED_POINT]),
  putSeries: (db) => putSeries(db, [{ ...OWNED_POINT, amount: 99n }]),
  addMeteredUsage: (db, { marker }) =>
    addMeteredUsage(db, null, [{ ...OWNED_POINT, serviceName: marker, hourMicros: 1_700_000_000_000_000n }]),
  readMeteredSources: (db) => readMeteredSources(db, WINDOW.fromMicros),
  listMeteredSources: (db) => listMeteredSources(db, WINDOW.fromMicros),
  lockRecords: (db) => lockRecords(db, RECORDS_KEY, OWNED_RECORDS),
  putRecords: (db) =>
    putRecords(
      db,
      RECORDS_KEY,
      OWNED_RECORDS.map((record) => ({ ...record, fields: {} })),
    ),
  listGenerationsOf: (db) => listGenerationsOf(db, RECORDS_KEY, ['trace-1'], 10),
  notePassedOn: (db) => notePassedOn(db, RECORDS_KEY, [{ id: 'trace-1', mark: 'changed' }]),
  completePayloads: (db, of) =>
    completePayloads(db, [
      { ...storable(of.live, of), call: { ...storable(of.live, of).call, payload: { added: 1 } } },
    ]),
  completeEvents: (db, of) => {
    const before = storable(of.live, of);
    const event = { ...before, projectId: 'changed' };
    return completeEvents(db, [{ before, event, isNew: false, isRecounted: true }]);
  },
  supersedeEvents: (db, { live, other }) =>
    supersedeEvents(db, [{ ...placeOf(live), winnerId: other.id, isNew: false }]),
  writeMergedCalls: (db, of) => writeMergedCalls(db, [mergedCall(of)], of.prices, new SettledCalls()),
  settleAlertsOfStored: (db, of) => {
    const settled = new SettledCalls();
    settled.note({ event: storable(of.live, of), costBefore: 0n, said: [] }, of.other.id);
    return settleAlertsOfStored(db, settled);
  },
  resolveDuplicateReports: (db, of) =>
    resolveDuplicateReports(
      db,
      [{ ...storable(of.live, of), supersededBy: of.other.id }],
      { stored: new Set([of.live.id]), claimed: new Set(), assumed: NOTHING_ASSUMED },
      of.prices,
      { fresh: [], violationsOf: new Map(), alerts: new Map(), judgeCost: () => [] },
    ),
  foldUsage: {
    asSystem: 'totals are written by maintenance alone, beside every request',
    run: (db) => foldUsage(db.database, db.orgId),
  },
};
