import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OrgDb } from '../../../db/orgDb.js';
import * as closing from '../../../db/queries/closePeriod.js';
import { listEvents } from '../../../db/queries/events.js';
import * as periodBills from '../../../db/queries/periodBills.js';
import * as periods from '../../../db/queries/periods.js';
import { loadPriceBook } from '../../../db/queries/prices.js';
import * as repriceBatch from '../../../db/queries/repriceBatch.js';
import * as repriceRuns from '../../../db/queries/repriceRuns.js';
import * as runStates from '../../../db/queries/runStates.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { anEvent, ingest } from '../../api/support/requests.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { importBill } from '../../support/bills.js';
import { startTestEngine, type TestEngine } from '../../support/engine.js';
import { otherPrices, repriceAll } from '../support/repriceAll.js';
import { readTenantRows } from '../support/tenantRows.js';

/** Works in a transaction of its own kind, beside the fold; closePeriod stands for it. */
const NOT_TENANT = ['freezeBills', 'errorColumns', 'runTable'];
const MARKER = 'owned-by-a';
const MONTH = '2026-03';
const WINDOW = { fromMicros: 0n, toMicros: 4_000_000_000_000_000n };

let api: TestApi;
let engine: TestEngine;
let owner: TestOrganization;
let prices: PriceBook;
let eventId: string;
/** A run that is at work, and one that has priced. */
let runId: string;
let doneId: string;

const bill = (amount: string) =>
  `date,model,token_class,quantity,amount_usd\n2026-03-10,${MARKER},input,1000,${amount}\n`;

beforeAll(async () => {
  api = await startTestApi();
  engine = await startTestEngine(api.database.database);
  await engine.startWorker();
  prices = await loadPriceBook(api.database.database);
  owner = await api.addOrganization();
  const { orgDb, ingestKey, adminKey } = owner;
  await ingest(
    api,
    [anEvent({ timestamp: '2026-03-05T00:00:00Z', provider: 'openai', project_id: MARKER })],
    ingestKey,
  );
  eventId = (await listEvents(orgDb, {}, { limit: 1, offset: 0 }, false)).events[0]?.id ?? '';
  await importBill(api, bill('1'), { provider: 'openai', account: MARKER }, adminKey);
  const request = { month: MONTH, closedBy: MARKER, nowMicros: WINDOW.toMicros };
  await closing.closePeriod(api.database.database, owner.orgId, request);
  await importBill(api, bill('2'), { provider: 'openai', account: MARKER }, adminKey);
  doneId = await repriceAll(orgDb, otherPrices(prices, 2n), WINDOW_OF_MARCH);
  runId = (await aRun(orgDb)).id;
  await repriceRuns.startRepriceRun(orgDb, runId, prices.version);
});
afterAll(async () => {
  await engine?.close();
  await api?.close();
});

const WINDOW_OF_MARCH = { fromMicros: 1_772_323_200_000_000n, toMicros: 1_775_001_600_000_000n };

async function aRun(db: OrgDb): Promise<repriceRuns.NewRepriceRun> {
  const run = {
    id: randomUUID(),
    windowStartMicros: WINDOW_OF_MARCH.fromMicros,
    windowEndMicros: WINDOW_OF_MARCH.toMicros,
    provider: null,
    model: MARKER,
    requestedBy: MARKER,
  };
  await repriceRuns.insertRepriceRun(db, run);
  return run;
}

/** What each function tells an organization of the owner's rows, or does to them. */
const CASES: Record<string, (db: OrgDb) => Promise<unknown>> = {
  closePeriod: (db) =>
    closing.closePeriod(db.database, db.orgId, {
      month: '2026-04',
      closedBy: 'key_b',
      nowMicros: WINDOW.toMicros,
    }),
  listPeriodClosings: (db) => periods.listPeriodClosings(db),
  findPeriodClosing: (db) => periods.findPeriodClosing(db, MONTH),
  findFrozenTotals: (db) => periods.findFrozenTotals(db, MONTH),
  listFrozenSums: (db) => periods.listFrozenSums(db),
  findFirstMonth: (db) => periods.findFirstMonth(db),
  listFrozenBills: (db) => periodBills.listFrozenBills(db, MONTH),
  listBilledAdjustments: (db) => periodBills.listBilledAdjustments(db),
  insertRepriceRun: (db) => aRun(db).then(() => undefined),
  findOpenRepriceRun: (db) => repriceRuns.findOpenRepriceRun(db),
  findRepriceRun: (db) => repriceRuns.findRepriceRun(db, runId),
  lockRepriceRun: (db) => repriceRuns.lockRepriceRun(db, runId),
  listRepriceRuns: (db) => repriceRuns.listRepriceRuns(db, { status: undefined, limit: 10, offset: 0 }),
  listRepriceFindings: (db) => repriceRuns.listRepriceFindings(db, [doneId], 10),
  startRepriceRun: (db) => repriceRuns.startRepriceRun(db, runId, 'another'),
  repriceBatch: (db) => repriceBatch.repriceBatch(db, runId, prices),
  moveRepriceCursor: (db) => repriceRuns.moveRepriceCursor(db, runId, { micros: 1n, id: eventId }),
  noteRunWaitingForEngine: (db) => runStates.noteRunWaitingForEngine(db, 'reprice', runId),
  listFormerPrices: (db) => repriceRuns.listFormerPrices(db, eventId),
  requestRunCancel: (db) => runStates.requestRunCancel(db, 'reprice', runId),
  requeueRun: (db) => runStates.requeueRun(db, 'reprice', runId),
  endRun: (db) => runStates.endRun(db, 'reprice', runId, { status: 'failed' }),
};

const textOf = (value: unknown) =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'bigint' ? `${part}` : part instanceof Map ? [...part] : part,
  ) ?? '';

describe('a query about closed months and re-pricings', () => {
  it('has a case', () => {
    const functions = [closing, periods, periodBills, repriceRuns, repriceBatch, runStates].flatMap(
      (module) =>
        Object.entries(module).flatMap(([name, value]) => (typeof value === 'function' ? [name] : [])),
    );
    expect(functions.filter((name) => !NOT_TENANT.includes(name)).sort()).toEqual(Object.keys(CASES).sort());
  });

  it.each(Object.keys(CASES))('%s shows and changes nothing of another organization', async (name) => {
    const before = await readTenantRows(api.database.superuser, owner.orgId);
    const stranger = await api.addOrganization();
    const shown = textOf(await CASES[name]?.(stranger.orgDb));
    expect(shown).not.toContain(MARKER);
    for (const id of [eventId, runId, doneId]) expect(shown).not.toContain(id);
    expect(shown).not.toMatch(/"calls":[1-9]|2026-03/);
    expect(await readTenantRows(api.database.superuser, owner.orgId)).toEqual(before);
  });

  it.each(
    // A run that is at work does not wait; the other organization's case shows that it is not touched.
    Object.keys(CASES).filter((name) => !['noteRunWaitingForEngine', 'insertRepriceRun'].includes(name)),
  )('%s shows or changes something of its own organization', async (name) => {
    const before = textOf(await readTenantRows(api.database.superuser, owner.orgId));
    const shown = textOf(await CASES[name]?.(owner.orgDb));
    const after = textOf(await readTenantRows(api.database.superuser, owner.orgId));
    const isShown = [MARKER, runId, doneId, '2026-03'].some((text) => shown.includes(text));
    expect(isShown || /"calls":[1-9]/.test(shown) || after !== before).toBe(true);
  });
});
