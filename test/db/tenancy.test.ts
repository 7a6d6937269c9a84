import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OrgDb } from '../../db/orgDb.js';
import { listObservedCells } from '../../db/queries/billingCells.js';
import { streamEventTexts } from '../../db/queries/eventExport.js';
import { getEvent, listEvents, lockEventsById } from '../../db/queries/events.js';
import { insertEvents, recordRejections } from '../../db/queries/ingest.js';
import { listDoubleTellings, listSourceHealth } from '../../db/queries/ingestHealth.js';
import { insertKey } from '../../db/queries/keys.js';
import { loadPriceBook } from '../../db/queries/prices.js';
import { changePrices, completeEvent, supersedeEvent } from '../../db/queries/revisions.js';
import { foldUsage } from '../../db/queries/rollups.js';
import { applyPair, callOfStored, lockLive, placeOf, storableOf } from '../../db/queries/storedCalls.js';
import type { StoredEvent } from '../../db/queries/storedEvents.js';
import { settleTellings } from '../../db/queries/tellings.js';
import { listUnpricedModels } from '../../db/queries/unpriced.js';
import { sumSources, sumUsage, sumUsageBooks } from '../../db/queries/usage.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import { anEvent, aSpan, ingest } from '../api/support/requests.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { readTenantRows } from './support/tenantRows.js';

/** Files whose functions the tenancy tests in test/db/queries hold to the same rule. */
const FILES_ELSEWHERE = new Set([
  'billCoverage.ts',
  'billedDays.ts',
  'billingRows.ts',
  'billingSources.ts',
  'apiCopies.ts',
  'billingConnections.ts',
  'fetchedPages.ts',
  'syncChunks.ts',
  'syncRuns.ts',
  'gapBuckets.ts',
  'gapExplorer.ts',
  'gapRuns.ts',
  'observedSince.ts',
  'outbox.ts',
  'ownPrices.ts',
  'periodBills.ts',
  'periods.ts',
  'providerKeys.ts',
  'repriceBatch.ts',
  'repriceRuns.ts',
  'runStates.ts',
]);
/** Take a handle and read nothing of any organization. */
const NEUTRAL = ['foldWhenBehind', 'readBooks', 'readFoldedXid', 'readSnapshotTime'];

const MARKER = 'owned-by-a';
const WINDOW = { fromMicros: 0n, toMicros: 4_000_000_000_000_000n };

let api: TestApi;
let prices: PriceBook;
let a: TestOrganization;
/** What A has: a call, one that another stands for, and its day. */
let live: StoredEvent;
let other: StoredEvent;

beforeAll(async () => {
  api = await startTestApi();
  prices = await loadPriceBook(api.database.database);
  a = await api.addOrganization();
  const labels = {
    team_id: MARKER,
    feature: MARKER,
    session_id: MARKER,
    user_id: MARKER,
    project_id: MARKER,
  };
  await ingest(
    api,
    [
      anEvent({ ...labels, payload: { text: MARKER }, request_id: 'msg_1' }),
      anEvent({ ...labels, model: `${MARKER}-unpriced` }),
    ],
    a.ingestKey,
  );
  await api.post('/api/v1/ingest/trace', twiceInstrumented(), a.ingestKey);
  await api.post(
    '/api/v1/ingest/events',
    { events: [anEvent({ cost_usd: -1, _service: { name: MARKER } })] },
    a.ingestKey,
  );
  await foldUsage(api.database.database, a.orgId);
  await ingest(api, [anEvent(labels)], a.ingestKey);
  const { events } = await listEvents(a.orgDb, {}, { limit: 100, offset: 0 }, false);
  [live, other] = events.filter((event) => event.teamId === MARKER) as [StoredEvent, StoredEvent];
});
afterAll(() => api.close());

/** Six calls, each told by two scopes of one service, without an id that would prove it. */
function twiceInstrumented() {
  const start = BigInt(Date.now() - 3_600_000) * 1_000_000n;
  const spans = (offset: bigint) =>
    Array.from({ length: 6 }, (_, index) => {
      const at = start + BigInt(index) * 60_000_000_000n + offset;
      return aSpan({}, { startTimeUnixNano: String(at), endTimeUnixNano: String(at + 1_000n) });
    });
  const scopes = [0n, 1_000_000n].map((offset) => ({
    scope: { name: `scope-${offset}` },
    spans: spans(offset),
  }));
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: MARKER } }] };
  return { resourceSpans: [{ resource, scopeSpans: scopes }] };
}

const day = () => new Date(Number(live.endMicros / 1_000n)).toISOString().slice(0, 10);
const storable = (event: StoredEvent) => storableOf(event, callOfStored(event, null), prices);
const question = { dimension: 'team', filter: {}, limit: 10, offset: 0 } as const;

/** One call of each function, with A's ids where it takes ids: run as B first, then as A. */
const CASES: Record<string, (db: OrgDb) => Promise<unknown>> = {
  listObservedCells: (db) => listObservedCells(db, { provider: 'openai', day: day() }),
  streamEventTexts: async (db) => {
    const partitions: unknown[] = [];
    const window = { ...WINDOW, snapshotMicros: WINDOW.toMicros };
    for await (const partition of streamEventTexts(db, window, true)) partitions.push(partition);
    return partitions;
  },
  listEvents: (db) => listEvents(db, {}, { limit: 100, offset: 0 }, true),
  getEvent: (db) => getEvent(db, live.id, true),
  lockEventsById: (db) => lockEventsById(db, [live.id]),
  insertEvents: (db) =>
    insertEvents(
      db,
      [
        {
          ...storable(live),
          id: `${live.id.slice(0, -1)}${live.id.endsWith('0') ? '1' : '0'}`,
          apiKeyHash: '0'.repeat(16),
        },
      ],
      [],
    ),
  recordRejections: (db) =>
    recordRejections(db, [
      { projectId: null, serviceName: MARKER, scopeName: 'sdk', reason: 'invalid_number', count: 5 },
    ]),
  listSourceHealth: (db) => listSourceHealth(db, WINDOW.fromMicros),
  listDoubleTellings: (db) => listDoubleTellings(db, WINDOW.fromMicros),
  insertKey: (db) =>
    insertKey(db, {
      id: `key_${db.orgId.replaceAll('-', '').slice(0, 10)}`,
      name: MARKER,
      role: 'ingest',
      secretHash: Buffer.alloc(32),
      last4: 'abcd',
      createdBy: 'test',
    }),
  lockLive: (db) => lockLive(db, live.id),
  listUnpricedModels: (db) => listUnpricedModels(db, WINDOW),
  sumUsage: (db) => sumUsage(db, { ...question, ...WINDOW }),
  sumUsageBooks: (db) => sumUsageBooks(db, { ...question, ...WINDOW, view: { kind: 'books' } }),
  sumSources: (db) => sumSources(db, WINDOW.fromMicros),
  changePrices: (db) =>
    changePrices(db, [
      {
        ...placeOf(live),
        costPico: 1n,
        costSource: 'computed',
        price: { ...storable(live).price, computedPico: 1n },
      },
    ]),
  completeEvent: (db) => completeEvent(db, placeOf(live), { ...storable(live), projectId: 'changed' }),
  settleTellings: (db) =>
    settleTellings(
      db,
      [{ ...storable(live), supersededBy: other.id }],
      { stored: new Set([live.id]), claimed: new Set() },
      prices,
    ),
  applyPair: (db) => applyPair(db, placeOf(live), placeOf(other), storable(live)),
  supersedeEvent: (db) => supersedeEvent(db, placeOf(live), other.id),
};

/** Every function of db/queries that takes an organization's handle first, by the file that has it. */
function tenantFunctions(): { file: string; name: string }[] {
  const folder = path.resolve(import.meta.dirname, '../../db/queries');
  return readdirSync(folder).flatMap((file) =>
    [
      ...readFileSync(path.join(folder, file), 'utf8').matchAll(
        /export async function\*?\s+(\w+)\s*(?:<[^>]*>)?\(\s*orgDb: OrgDb\b/g,
      ),
    ].map(([, name = '']) => ({ file, name })),
  );
}

function textOf(value: unknown): string {
  return (
    JSON.stringify(value, (_, inner: unknown) =>
      typeof inner === 'bigint'
        ? `${inner}`
        : inner instanceof Map || inner instanceof Set
          ? [...inner]
          : inner,
    ) ?? ''
  );
}

describe('a query function of one organization', () => {
  it('has a case, here or in test/db/queries', () => {
    const found = tenantFunctions();
    const own = found.filter(({ file }) => !FILES_ELSEWHERE.has(file)).map(({ name }) => name);
    expect([...own].sort()).toEqual([...Object.keys(CASES), ...NEUTRAL].sort());
    expect(new Set(found.map(({ file }) => file).filter((file) => FILES_ELSEWHERE.has(file)))).toEqual(
      FILES_ELSEWHERE,
    );
  });

  it.each(Object.keys(CASES))('%s shows and changes nothing of another organization', async (name) => {
    const run = CASES[name] as (db: OrgDb) => Promise<unknown>;
    const before = await readTenantRows(api.database.superuser, a.orgId);
    const b = await api.addOrganization();
    const shown = await run(b.orgDb).catch((error: { code?: string }) => {
      expect(error.code).toBe('not_found');
      return undefined;
    });
    expect(await readTenantRows(api.database.superuser, a.orgId)).toEqual(before);
    expect(textOf(shown)).not.toContain(MARKER);
    if (name !== 'insertEvents') expect(textOf(shown)).not.toContain(live.id);
  });

  it.each(Object.keys(CASES))('%s shows or changes something of its own organization', async (name) => {
    const run = CASES[name] as (db: OrgDb) => Promise<unknown>;
    const before = await readTenantRows(api.database.superuser, a.orgId);
    const shown = textOf(await run(a.orgDb));
    const after = await readTenantRows(api.database.superuser, a.orgId);
    const isShown = shown.includes(MARKER) || shown.includes(live.id) || /"calls":[1-9]/.test(shown);
    expect(isShown || textOf(after) !== textOf(before)).toBe(true);
  });
});
