import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findEventsById, lockEventsById } from '../../../db/events/events.js';
import { changePrices, completeEvents, supersedeEvents } from '../../../db/events/revisions.js';
import { callOfStored, placeOf, type StoredEvent, storableOf } from '../../../db/events/storedEvents.js';
import type { OrgDb } from '../../../db/orgDb.js';
import type { CallRecord } from '../../../domain/events/event.js';
import type { PriceBookHolder } from '../../../usecases/pricing/priceBookHolder.js';
import { aCall } from '../../support/aCall.js';
import { createTestDatabase, PATIENT, type TestDatabase } from '../../support/database.js';
import { openTestPrices } from '../../support/prices.js';
import { aSender } from '../../support/sender.js';
import { withoutAutovacuum } from '../support/withoutAutovacuum.js';

const HOUR = 3_600_000_000n;
const CALLS = 3_000;
const CHANGED = 20;

let test: TestDatabase;
let prices: PriceBookHolder;
beforeAll(async () => {
  test = await createTestDatabase({ poolMax: 10, ...PATIENT });
  prices = await openTestPrices(test.database);
  await withoutAutovacuum(test);
});
afterAll(() => test.close());

async function listIds({ orgId }: OrgDb): Promise<string[]> {
  const { rows } = await test.superuser.query<{ id: string }>(
    'select id from events where org_id = $1 order by timestamp, id',
    [orgId],
  );
  return idsOf(rows);
}

const idsOf = (events: readonly { id: string }[]) => events.map(({ id }) => id);

let hour = 492_000n;
/** The start of an hour that no call of another test is after, microseconds. */
const aLaterHour = () => {
  hour += 1n;
  return hour * HOUR;
};

const callAt = (startMicros: bigint, overrides: Partial<CallRecord> = {}) =>
  aCall({ requestId: randomUUID(), responseId: randomUUID(), startMicros, ...overrides });

const seriesAt = (startMicros: bigint) =>
  Array.from({ length: CALLS }, (_, at) => callAt(startMicros + BigInt(at) * 1_000n));

/** Events that Postgres has read in this transaction. */
async function countRead(orgDb: OrgDb): Promise<number> {
  const [row] = await orgDb.rows<{ events: string }>(
    `select sum(seq_tup_read + idx_tup_fetch)::text as events from pg_stat_xact_user_tables where relname like 'events\\_2%'`,
  );
  return Number(row?.events);
}

const withUser = (event: StoredEvent, userId: string | null) => {
  const call = callOfStored(event, null);
  return {
    before: storableOf(event, call, prices.current()),
    event: storableOf(event, { ...call, userId }, prices.current()),
    isNew: false,
    isRecounted: true,
  };
};

/** What changes events, and how often each of its statements together may read an event. */
const CHANGES: Record<string, { reads: number; make: (db: OrgDb, of: StoredEvent[]) => Promise<unknown> }> = {
  'locking them': {
    reads: 2,
    make: (db, of) => lockEventsById(db, idsOf(of)),
  },
  'reading them': {
    reads: 1,
    make: (db, of) => findEventsById(db, idsOf(of)),
  },
  'completing them': {
    reads: 6,
    make: (db, of) =>
      completeEvents(
        db,
        of.map((event) => withUser(event, 'changed')),
      ),
  },
  'superseding them': {
    reads: 4,
    make: (db, [kept, ...of]) =>
      supersedeEvents(
        db,
        of.map((event) => ({ ...placeOf(event), winnerId: (kept as StoredEvent).id, isNew: false })),
      ),
  },
  'changing their prices': {
    reads: 6,
    make: (db, of) =>
      changePrices(
        db,
        of.map((event) => {
          const { price } = storableOf(event, callOfStored(event, null), prices.current());
          return { ...placeOf(event), costPico: 1n, costSource: 'computed', price };
        }),
      ),
  },
};

describe('events that are newer than the statistics', () => {
  it.each(Object.entries(CHANGES))('are read alone by %s', async (_, { reads, make }) => {
    const sender = await aSender(test, prices);
    await sender.send(seriesAt(aLaterHour()));
    await test.superuser.query('analyze events');
    await sender.send(seriesAt(aLaterHour()));
    const newer = (await listIds(sender.orgDb)).slice(CALLS);
    const some = newer.filter((_id, at) => at % (CALLS / CHANGED) === 0 || at === CALLS - 1);
    const found = await findEventsById(sender.orgDb, some);
    expect(idsOf(found)).toEqual(some);
    const read = await sender.orgDb.transaction(async (inside) => {
      const before = await countRead(inside);
      await make(inside, found);
      return (await countRead(inside)) - before;
    });
    expect(read).toBeGreaterThan(0);
    expect(read).toBeLessThanOrEqual(reads * some.length);
  });
});

describe('values of many events', () => {
  it('reach their own events, whatever order they come in and however many have one time', async () => {
    const sender = await aSender(test, prices);
    const started = aLaterHour();
    const calls = Array.from({ length: 60 }, (_, at) => callAt(started + BigInt(at % 7) * 1_000_000n));
    await sender.send(calls);
    const found = await findEventsById(sender.orgDb, await listIds(sender.orgDb));
    expect(found).toHaveLength(calls.length);
    const userOf = (id: string) => (id.endsWith('0') ? null : `user "${id.slice(-6)}", {all}`);
    const shuffled = [...found].sort((one, other) => (one.id.slice(-8) < other.id.slice(-8) ? -1 : 1));
    await sender.orgDb.transaction(async (inside) => {
      const locked = await lockEventsById(inside, idsOf(shuffled));
      const byId = new Map(locked.map((event) => [event.id, event]));
      await completeEvents(
        inside,
        shuffled.map(({ id }) => withUser(byId.get(id) as StoredEvent, userOf(id))),
      );
    });
    const changed = await findEventsById(sender.orgDb, idsOf(found));
    expect(changed.map((event) => callOfStored(event, null).userId)).toEqual(
      changed.map(({ id }) => userOf(id)),
    );
  });
});
