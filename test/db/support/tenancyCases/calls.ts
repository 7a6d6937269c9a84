import { listObservedCells, listObservedDay } from '../../../../db/queries/billingCells.js';
import { streamEventTexts } from '../../../../db/queries/eventExport.js';
import { getEvent, listEvents, lockEventsById } from '../../../../db/queries/events.js';
import { readFoldState } from '../../../../db/queries/foldState.js';
import { insertEvents, recordRejections } from '../../../../db/queries/ingest.js';
import { listDoubleTellings, listSourceHealth } from '../../../../db/queries/ingestHealth.js';
import { listObservedSince } from '../../../../db/queries/observedSince.js';
import { changePrices, completeEvent, supersedeEvent } from '../../../../db/queries/revisions.js';
import { foldUsage } from '../../../../db/queries/rollups.js';
import {
  applyPair,
  callOfStored,
  lockLive,
  placeOf,
  storableOf,
} from '../../../../db/queries/storedCalls.js';
import type { StoredEvent } from '../../../../db/queries/storedEvents.js';
import { settleTellings } from '../../../../db/queries/tellings.js';
import { listUnpricedModels } from '../../../../db/queries/unpriced.js';
import {
  readBooks,
  readFoldedXid,
  sumSources,
  sumUsage,
  sumUsageBooks,
} from '../../../../db/queries/usage.js';
import type { Owned } from '../ownedThings.js';
import type { TenancyCase } from './tenancyCase.js';

const WINDOW = { fromMicros: 0n, toMicros: 4_000_000_000_000_000n };
const QUESTION = { dimension: 'team', filter: {}, limit: 10, offset: 0 } as const;
const PAGE = { limit: 1_000, offset: 0 };

const storable = (event: StoredEvent, { prices }: Owned) =>
  storableOf(event, callOfStored(event, null), prices);
const dayOf = (event: StoredEvent) => new Date(Number(event.endMicros / 1_000n)).toISOString().slice(0, 10);
const neighbourOf = (id: string) => `${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}`;

/** Calls and their totals. */
export const CALL_CASES: Record<string, TenancyCase> = {
  listEvents: (db) => listEvents(db, {}, PAGE, true),
  getEvent: (db, { live }) => getEvent(db, live.id, true),
  lockEventsById: (db, { live }) => lockEventsById(db, [live.id]),
  lockLive: (db, { live }) => lockLive(db, live.id),
  streamEventTexts: async (db) => {
    const partitions: unknown[] = [];
    const window = { ...WINDOW, snapshotMicros: WINDOW.toMicros };
    for await (const partition of streamEventTexts(db, window, true)) partitions.push(partition);
    return partitions;
  },
  listObservedCells: (db, { live }) => listObservedCells(db, { provider: 'openai', day: dayOf(live) }),
  listObservedDay: (db, { live }) => listObservedDay(db, { provider: 'openai', day: dayOf(live) }),
  listObservedSince: (db) => listObservedSince(db, 'openai'),
  // The id of the owner's call, with the digest of another key: another call of the same id.
  insertEvents: (db, of) =>
    insertEvents(
      db,
      [{ ...storable(of.live, of), id: neighbourOf(of.live.id), apiKeyHash: '0'.repeat(16) }],
      [],
    ),
  recordRejections: (db, { marker }) =>
    recordRejections(db, [
      { projectId: null, serviceName: marker, scopeName: 'sdk', reason: 'invalid_number', count: 5 },
    ]),
  listSourceHealth: (db) => listSourceHealth(db, WINDOW.fromMicros),
  listDoubleTellings: (db) => listDoubleTellings(db, WINDOW.fromMicros),
  listUnpricedModels: (db) => listUnpricedModels(db, WINDOW),
  sumUsage: (db) => sumUsage(db, { ...QUESTION, ...WINDOW }),
  sumUsageBooks: (db) => sumUsageBooks(db, { ...QUESTION, ...WINDOW, view: { kind: 'books' } }),
  sumSources: (db) => sumSources(db, WINDOW.fromMicros),
  readBooks: (db) => readBooks(db),
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
  completeEvent: (db, of) =>
    completeEvent(db, placeOf(of.live), { ...storable(of.live, of), projectId: 'changed' }),
  supersedeEvent: (db, { live, other }) => supersedeEvent(db, placeOf(live), other.id),
  applyPair: (db, of) => applyPair(db, placeOf(of.live), placeOf(of.other), storable(of.live, of)),
  settleTellings: (db, of) =>
    settleTellings(
      db,
      [{ ...storable(of.live, of), supersededBy: of.other.id }],
      { stored: new Set([of.live.id]), claimed: new Set() },
      of.prices,
      { fresh: [], saidBy: new Map(), judgeCost: () => [] },
    ),
  foldUsage: {
    asSystem: 'totals are written by maintenance alone, beside every request',
    run: (db) => foldUsage(db.database, db.orgId),
  },
};
