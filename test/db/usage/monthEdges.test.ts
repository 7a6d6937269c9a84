import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFrozenTotals } from '../../../db/billing/periods.js';
import { insertOrganization } from '../../../db/installation/organizations.js';
import { OrgDb } from '../../../db/orgDb.js';
import type { UsageQuery } from '../../../db/usage/usage.js';
import { endOfMonth, type Month, startOfMonth, type UsageView } from '../../../domain/billing/periods.js';
import { isoFromMicros, microsOfDay } from '../../../domain/period.js';
import { closePeriod } from '../../../usecases/billing/periods.js';
import { IngestWriter } from '../../../usecases/events/ingestWriter.js';
import type { PriceBookHolder } from '../../../usecases/pricing/priceBookHolder.js';
import { sumUsage } from '../../../usecases/usage/usage.js';
import { aBatch, aCall } from '../../support/aCall.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { openTestPrices } from '../../support/prices.js';
import { foldAll } from '../support/compareTotals.js';

/** The last and the first microsecond of months that are closed one after the other. */
const EDGES = {
  lastOfJanuary: microsOfDay('2026-02-01') - 1n,
  firstOfFebruary: microsOfDay('2026-02-01'),
  lastOfFebruary: microsOfDay('2026-03-01') - 1n,
  firstOfMarch: microsOfDay('2026-03-01'),
};
const HALF_HOUR = 1_800_000_000n;
/** Models are kept by hour, sessions by day. */
const DIMENSIONS = ['model', 'session', 'day'] as const;

let test: TestDatabase;
let prices: PriceBookHolder;

beforeAll(async () => {
  test = await createTestDatabase();
  prices = await openTestPrices(test.database);
});
afterAll(() => test.close());

/** Calls of this model on each edge of the month, known since the given day. */
async function send(orgDb: OrgDb, model: string, day: string): Promise<void> {
  const writer = new IngestWriter(test.database, prices, 1, {
    queueRows: () => undefined,
    batchRows: () => undefined,
  });
  const { rows } = await test.superuser.query<{ xid: string }>('select pg_current_xact_id()::text as xid');
  await writer.submit({
    orgId: orgDb.orgId,
    keyId: `key_${'0'.repeat(10)}`,
    defaultProjectId: null,
    batch: aBatch(
      Object.values(EDGES).map((startMicros) =>
        aCall({ model, startMicros, hashTimestamp: isoFromMicros(startMicros), sessionId: model }),
      ),
    ),
  });
  await test.superuser.query('update events set ingested_at = $3 where org_id = $1 and ingest_xid >= $2', [
    orgDb.orgId,
    rows[0]?.xid,
    `${day}T12:00:00Z`,
  ]);
}

const close = (orgDb: OrgDb, month: Month) =>
  closePeriod(test.database, orgDb.orgId, {
    month,
    closedBy: null,
    nowMicros: endOfMonth(month) + HALF_HOUR,
  });

/**
 * January is closed before the second model's calls came, February before the third's and the fourth's. The last ones
 * began to be written before the closing that did not see them: they are booked from the first open day on.
 */
async function closeTwoMonths(): Promise<OrgDb> {
  const orgId = randomUUID();
  await insertOrganization(test.database, { id: orgId, name: 'edges' });
  const orgDb = new OrgDb(test.database, orgId);
  await send(orgDb, 'gpt-4o', '2026-01-31');
  await close(orgDb, '2026-01');
  await send(orgDb, 'gpt-4o-mini', '2026-02-10');
  await close(orgDb, '2026-02');
  await send(orgDb, 'gpt-4.1', '2026-03-10');
  await send(orgDb, 'gpt-4.1-mini', '2026-02-20');
  return orgDb;
}

type Asked = Pick<UsageQuery, 'fromMicros' | 'toMicros'> & Partial<UsageQuery>;

async function callsBy(orgDb: OrgDb, asked: Asked): Promise<Record<string, number>> {
  const query = { dimension: 'day', filter: {}, limit: 100, offset: 0, ...asked } as const;
  const { groups, totals } = await sumUsage(orgDb, query);
  expect(groups.reduce((sum, group) => sum + group.calls, 0)).toBe(totals.calls);
  return Object.fromEntries(groups.map((group) => [group.key, group.calls]));
}

const BOOKS: UsageView = { kind: 'books' };
const always = { fromMicros: undefined, toMicros: undefined };
const month = (name: Month) => ({ fromMicros: startOfMonth(name), toMicros: endOfMonth(name) });

describe.each(['unfolded', 'folded'])('calls at the very edges of closed months, %s', (state) => {
  let orgDb: OrgDb;

  beforeAll(async () => {
    orgDb = await closeTwoMonths();
    if (state === 'folded') await foldAll(test.superuser, orgDb);
  });

  it('are in the month in which they begin, late ones on the day on which they came', async () => {
    expect(await callsBy(orgDb, { ...always, view: BOOKS })).toEqual({
      '2026-01-31': 1,
      '2026-02-01': 2,
      '2026-02-10': 1,
      '2026-02-28': 2,
      '2026-03-01': 7,
      '2026-03-10': 3,
    });
  });

  it('are frozen with their month and with no other', async () => {
    const count = (totals: Map<string, { calls: number }>) =>
      [...totals.values()].reduce((sum, { calls }) => sum + calls, 0);
    const january = await findFrozenTotals(orgDb, '2026-01');
    const february = await findFrozenTotals(orgDb, '2026-02');
    expect([count(january.own), count(january.booked)]).toEqual([1, 0]);
    expect([count(february.own), count(february.booked)]).toEqual([4, 1]);
  });

  it.each(DIMENSIONS)('sum to the same by %s, month by month and view by view', async (dimension) => {
    const total = async (name: Month, view: UsageView, only?: 'adjustments') =>
      Object.values(
        await callsBy(orgDb, { ...month(name), dimension, view, ...(only ? { only } : {}) }),
      ).reduce((sum, calls) => sum + calls, 0);
    for (const [name, books, now, late] of [
      ['2026-01', 1, 4, 3],
      ['2026-02', 5, 8, 4],
      ['2026-03', 10, 4, 0],
    ] as const) {
      expect(await total(name, BOOKS), `books of ${name}`).toBe(books);
      expect(await total(name, { kind: 'now' }), `${name} as known now`).toBe(now);
      expect(await total(name, { kind: 'now' }, 'adjustments'), `late in ${name}`).toBe(late);
    }
    const known = (name: Month, beforeDay: string) => total(name, { kind: 'known', beforeDay });
    expect(await known('2026-01', '2026-02-10')).toBe(1);
    expect(await known('2026-01', '2026-02-11')).toBe(2);
    expect(await known('2026-02', '2026-03-01')).toBe(4);
    expect(await known('2026-02', '2026-03-10')).toBe(6);
    expect(await known('2026-02', '2026-03-11')).toBe(8);
  });

  it.each(DIMENSIONS)(
    'are distinguished by %s in windows that end or begin on the edge',
    async (dimension) => {
      const total = async (fromMicros: bigint, toMicros: bigint, view: UsageView) =>
        Object.values(await callsBy(orgDb, { fromMicros, toMicros, dimension, view })).reduce(
          (sum, calls) => sum + calls,
          0,
        );
      const { firstOfFebruary: february, firstOfMarch: march } = EDGES;
      for (const [from, to, books, now] of [
        [february - HALF_HOUR, february, 1, 4],
        [february - 1n, february + 1n, 3, 8],
        [february, february + 1n, 2, 4],
        [february + 1n, march, 3, 4],
        [march - HALF_HOUR, march, 2, 4],
        // Rows that are booked on the first of March count at its beginning: four calls that begin then and three late
        // ones.
        [march - 1n, march + HALF_HOUR, 9, 8],
        [march, march + 1n, 7, 4],
        [march + 1n, march + HALF_HOUR, 0, 0],
      ] as const) {
        const name = `${isoFromMicros(from)} to ${isoFromMicros(to)}`;
        expect(await total(from, to, BOOKS), `books, ${name}`).toBe(books);
        expect(await total(from, to, { kind: 'now' }), `now, ${name}`).toBe(now);
      }
    },
  );
});
