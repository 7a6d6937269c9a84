import fc from 'fast-check';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listObservedCells } from '../../../db/billing/billingCells.js';
import { findFirstMonth } from '../../../db/billing/periods.js';
import { getEvent } from '../../../db/events/events.js';
import type { OrgDb } from '../../../db/orgDb.js';
import { ensurePartitions } from '../../../db/partitions.js';
import type { UsageDimension } from '../../../db/usage/usage.js';
import { monthOf } from '../../../domain/billing/periods.js';
import type { CallRecord } from '../../../domain/events/event.js';
import { retentionLimit } from '../../../domain/installation/retention.js';
import { dayOf, MICROS_PER_DAY, microsFromDate, startOfDay } from '../../../domain/period.js';
import { closePeriod } from '../../../usecases/billing/periods.js';
import { inOneSnapshot, readBooks, recountBooks } from '../../../usecases/installation/backup/bookTotals.js';
import { sumUsage } from '../../../usecases/usage/usage.js';
import { foldAll } from '../../db/support/compareTotals.js';
import { otherPrices, repriceAll } from '../../db/support/repriceAll.js';
import { CALL_TABLES, type RetentionPlace, startRetentionPlace, timesOf } from '../../db/support/retained.js';
import { testSeed } from '../../fakes/seededRandom.js';
import { aCall, aUsage } from '../../support/aCall.js';
import { holdBack } from '../../support/horizon.js';
import { propertyRuns } from '../../support/propertyRuns.js';

const SEED = testSeed();
const RUNS = propertyRuns(3);
const NOW = microsFromDate(new Date());
const DIMENSIONS: UsageDimension[] = ['day', 'model', 'team', 'session', 'key', 'project'];

let place: RetentionPlace;
beforeEach(async () => {
  place = await startRetentionPlace();
});
afterEach(() => place.close());

const ago = (days: number, inside = 0n) => startOfDay(NOW) - BigInt(days) * MICROS_PER_DAY + inside;

/** A call some days ago with a payload. */
function aSpokenCall(days: number, overrides: Partial<CallRecord> = {}): CallRecord {
  const startMicros = ago(days, 3_600_000_000n);
  return aCall({ startMicros, payload: { text: `said ${days} days ago` }, sessionId: 's', ...overrides });
}

/** All totals, over all time. */
async function totalsOf(orgDb: OrgDb): Promise<unknown[]> {
  const said: unknown[] = [];
  const all = { fromMicros: undefined, toMicros: undefined, limit: 10_000, offset: 0 };
  for (const dimension of DIMENSIONS) {
    said.push(await sumUsage(orgDb, { ...all, dimension, filter: {} }));
    if (dimension !== 'session' && dimension !== 'key' && dimension !== 'project')
      said.push(await sumUsage(orgDb, { ...all, dimension, filter: { provider: 'openai' } }));
  }
  return said;
}

/** The sums by the totals, and by the remaining events with the recorded removed ones. */
async function booksOf({ orgId }: OrgDb) {
  const client = new pg.Client({ connectionString: place.test.url });
  await client.connect();
  const counted = await inOneSnapshot(client, async () => {
    const { organizations } = await readBooks(client, { billed: false });
    const { calls = 0, cost_usd = '0' } =
      organizations.find((books) => books.organization_id === orgId) ?? {};
    return { totals: { calls, cost_usd }, rows: (await recountBooks(client)).get(orgId) };
  });
  await client.end();
  return counted;
}

const partitions = async (table: string): Promise<string[]> =>
  (
    await place.test.superuser.query<{ name: string }>(
      'select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = $1::regclass order by 1',
      [table],
    )
  ).rows.map(({ name }) => name);

describe(`retention (TEST_SEED=${SEED})`, () => {
  it('removes everything that is older than its limit and nothing that is younger, from every table with rows of calls, and changes no total', {
    timeout: 300_000 + RUNS * 20_000,
  }, async () => {
    const age = fc.integer({ min: 0, max: 700 });
    const told = fc.record({ age, second: fc.boolean(), payload: fc.boolean(), blocked: fc.boolean() });
    const drawn = fc.record({
      calls: fc.array(told, { minLength: 1, maxLength: 25 }),
      folded: fc.boolean(),
      eventDays: fc.integer({ min: 30, max: 650 }),
      payloadDays: fc.integer({ min: 1, max: 400 }),
      /** Days that the clock of the retention is ahead: partitions of the last year are then before the limit. */
      ahead: fc.integer({ min: 0, max: 300 }),
    });
    const run = await fc.check(
      fc.asyncProperty(drawn, async ({ calls, folded, eventDays, payloadDays, ahead }) => {
        const { orgDb, send } = await place.addOrganization();
        const now = NOW + BigInt(ahead) * MICROS_PER_DAY;
        await send(...calls.map((call, index) => callOf1(call, index)));
        if (folded) await foldAll(place.test.superuser, orgDb);
        const seconds = calls.flatMap((call, index) => (call.second ? [told2(call, index)] : []));
        if (seconds.length > 0) await send(...seconds);
        const [before, totals, cells] = [
          await timesOf(place.test, orgDb),
          await totalsOf(orgDb),
          await cellsOf(orgDb, calls),
        ];
        await place.remove('payloads', now, payloadDays);
        await place.remove('events', now, eventDays);
        const after = await timesOf(place.test, orgDb);
        const limit = retentionLimit(now, eventDays);
        const payloadLimit = retentionLimit(now, payloadDays);
        for (const table of CALL_TABLES) {
          const own = table === 'event_payloads' ? payloadLimit : limit;
          expect(after[table], table).toEqual(before[table].filter((at) => at >= own));
        }
        expect(await totalsOf(orgDb)).toEqual(totals);
        expect(await cellsOf(orgDb, calls)).toEqual(cells);
        const books = await booksOf(orgDb);
        expect(books.rows ?? { calls: 0, cost_usd: '0' }).toEqual(books.totals);
        expect(await place.remove('payloads', now, payloadDays)).toEqual({ rows: 0, partitions: [] });
        expect(await place.remove('events', now, eventDays)).toEqual({ rows: 0, partitions: [] });
      }),
      // The remains of a failed run would fail every smaller one too.
      { seed: SEED, numRuns: RUNS, endOnFailure: true },
    );
    if (run.failed) throw new Error(fc.defaultReportMessage(run), { cause: run.errorInstance });
  });

  interface Told {
    age: number;
    payload: boolean;
    blocked: boolean;
  }
  function callOf1({ age, payload, blocked }: Told, index: number): CallRecord {
    return aSpokenCall(age, {
      requestId: `resp_${index}`,
      responseId: `resp_${index}`,
      reportedClasses: 1,
      teamId: index % 2 === 0 ? 'search' : null,
      projectId: index % 3 === 0 ? 'shop' : null,
      ...(blocked ? { status: 'blocked', usage: null } : {}),
      ...(payload ? {} : { payload: null }),
    });
  }
  /** A richer report of the same call, which replaces it. */
  function told2(call: Told, index: number): CallRecord {
    const first = callOf1(call, index);
    return {
      ...first,
      startMicros: first.startMicros + 1n,
      requestId: `resp_${index}`,
      reportedClasses: 3,
      usage: call.blocked ? null : aUsage({ input: 200, output: 70, cacheRead: 10 }),
      scopeName: 'richer',
    };
  }
  /** The cells that are compared with a bill, for the days of the first calls. */
  const cellsOf = (orgDb: OrgDb, calls: readonly Told[]) =>
    Promise.all(
      calls
        .slice(0, 4)
        .map(({ age }) => listObservedCells(orgDb, { provider: 'openai', day: dayOf(ago(age)) })),
    );
});

describe('whole months', () => {
  it('that lie before the limit are dropped, each time keeps a partition, and a call of such a time can still be stored', async () => {
    const { orgDb, send } = await place.addOrganization();
    const later = NOW + 420n * MICROS_PER_DAY;
    const before = await partitions('events');
    await send(...[5, 40, 130, 300].map((days) => aSpokenCall(days)));
    const totals = await totalsOf(orgDb);
    const events = await place.remove('events', later, 400);
    const payloads = await place.remove('payloads', later, 400);
    expect(events.partitions.length).toBeGreaterThan(8);
    expect(
      payloads.partitions
        .map((name) => name.replace('event_payloads', 'events'))
        .filter((name) => events.partitions.includes(name)),
    ).toEqual(events.partitions);
    const after = await partitions('events');
    expect(before.filter((name) => !after.includes(name))).toEqual([...events.partitions].sort());
    expect(await totalsOf(orgDb)).toEqual(totals);
    // A server without the limit accepts a call that another one has just removed.
    await send(aSpokenCall(300, { requestId: 'again' }), aSpokenCall(2_000));
    expect((await timesOf(place.test, orgDb)).events).toHaveLength(2);
    await place.asOwner(ensurePartitions);
    expect(await partitions('events')).toEqual(after);
    const { rows } = await place.test.superuser.query<{ relname: string }>(
      `select relname from pg_class where relispartition and relkind = 'r' and not (relrowsecurity and relforcerowsecurity)`,
    );
    expect(rows).toEqual([]);
  });
});

describe('a call that is in no total yet', () => {
  it('stays, with its whole month, while a transaction of any database of the server keeps it from being folded, and is removed by the next run', async () => {
    const { orgDb, send } = await place.addOrganization();
    const later = NOW + 300n * MICROS_PER_DAY;
    const letGo = await holdBack(place.test.url);
    const totals = await (async () => {
      await send(aSpokenCall(20));
      const totals = await totalsOf(orgDb);
      await place.removeAtOnce('events', later, 30);
      expect((await timesOf(place.test, orgDb)).events).toHaveLength(1);
      expect(await totalsOf(orgDb)).toEqual(totals);
      return totals;
    })().finally(letGo);
    const { partitions: dropped } = await place.remove('events', later, 30);
    expect(dropped).toContain(`events_${monthOf(ago(20)).replace('-', '_')}`);
    expect((await timesOf(place.test, orgDb)).events).toHaveLength(0);
    expect(await totalsOf(orgDb)).toEqual(totals);
  });
});

describe('a process that is killed between taking a month out and adding it up', () => {
  it('leaves a table that the next run adds up and drops', async () => {
    const { orgDb, send } = await place.addOrganization();
    await place.asOwner(ensurePartitions);
    await send(aSpokenCall(1), aSpokenCall(1, { requestId: 'second' }));
    await foldAll(place.test.superuser, orgDb);
    const totals = await totalsOf(orgDb);
    const month = `events_${monthOf(ago(1)).replace('-', '_')}`;
    await place.asOwner((client) => client.query(`alter table events detach partition ${month}`));
    const { rows, partitions: dropped } = await place.remove('events', NOW, 400);
    expect({ rows, dropped }).toEqual({ rows: expect.any(Number), dropped: [month] });
    expect(rows).toBeGreaterThanOrEqual(2);
    const books = await booksOf(orgDb);
    expect(books.rows).toEqual(books.totals);
    expect(books.totals.calls).toBe(2);
    await place.asOwner(ensurePartitions);
    expect(await totalsOf(orgDb)).toEqual(totals);
  });
});

describe('answers about calls that were removed', () => {
  it('their totals by whole hours and days, their cells and the months since the first of them; not the calls themselves', async () => {
    const { orgDb, send } = await place.addOrganization();
    await send(aSpokenCall(500), aSpokenCall(10));
    const window = { fromMicros: ago(500), toMicros: ago(499), limit: 10, offset: 0 } as const;
    const day = async () =>
      (await sumUsage(orgDb, { ...window, dimension: 'team', filter: {} })).totals.calls;
    const [first, old] = [await findFirstMonth(orgDb), (await eventIds(orgDb))[0] as string];
    await place.remove('events', NOW, 400);
    const told = await place.test.superuser.query<{ details: string }>(
      `select details from audit_log where org_id = $1 and action = 'retention.ran'`,
      [orgDb.orgId],
    );
    expect(told.rows.map(({ details }) => JSON.parse(details))).toEqual([
      { before: dayOf(ago(400)), calls_removed: 1 },
    ]);
    expect(await day()).toBe(1);
    expect(await findFirstMonth(orgDb)).toBe(first);
    await expect(getEvent(orgDb, old, true)).rejects.toMatchObject({ code: 'not_found' });
    // A session and a kind are looked up among the calls themselves.
    const inSession = await sumUsage(orgDb, { ...window, dimension: 'team', filter: { sessionId: 's' } });
    expect(inSession.totals.calls).toBe(0);
    // A month of removed calls can be closed, and stays unchanged.
    await closePeriod(place.test.database, orgDb.orgId, {
      month: monthOf(ago(500)),
      closedBy: null,
      nowMicros: NOW,
    });
    const { rows } = await place.test.superuser.query<{ calls: string }>(
      `select calls from period_totals where org_id = $1 and part = 'own'`,
      [orgDb.orgId],
    );
    expect(rows.map(({ calls }) => Number(calls))).toEqual([1]);
  });

  it('both prices of a call that was priced again are removed with it, and the sums of the run stay', async () => {
    const { orgDb, send } = await place.addOrganization();
    await send(aSpokenCall(500), aSpokenCall(499));
    await repriceAll(orgDb, otherPrices(place.prices.current(), 3n), {
      fromMicros: ago(500),
      toMicros: ago(498),
    });
    const totals = await totalsOf(orgDb);
    expect((await timesOf(place.test, orgDb)).event_price_changes).toHaveLength(2);
    await place.remove('events', NOW, 499);
    const times = await timesOf(place.test, orgDb);
    expect([times.events.length, times.event_price_changes.length, times.event_adjustments.length]).toEqual([
      1, 1, 3,
    ]);
    expect(await totalsOf(orgDb)).toEqual(totals);
    const { rows } = await place.test.superuser.query(
      'select changed from reprice_totals where org_id = $1',
      [orgDb.orgId],
    );
    expect(rows).toEqual([{ changed: '2' }]);
  });

  const eventIds = async (orgDb: OrgDb) =>
    (
      await place.test.superuser.query<{ id: string }>(
        'select id from events where org_id = $1 order by timestamp',
        [orgDb.orgId],
      )
    ).rows.map(({ id }) => id);
});

describe('ingest and reads', () => {
  it('continue while months are dropped: nothing fails and nothing is lost', {
    timeout: 300_000,
  }, async () => {
    const { orgDb, send } = await place.addOrganization();
    await place.asOwner(ensurePartitions);
    let stopped = false;
    let sent = 0;
    const writing = Array.from({ length: 3 }, async (_, lane) => {
      while (!stopped) {
        const calls = Array.from({ length: 20 }, (_, index) =>
          aSpokenCall(index % 3, { requestId: `${lane}-${sent}-${index}` }),
        );
        await send(...calls);
        sent += calls.length;
      }
    });
    const reading = (async () => {
      while (!stopped) await totalsOf(orgDb);
    })();
    await place.remove('payloads', NOW + 500n * MICROS_PER_DAY, 480);
    await place.remove('events', NOW + 500n * MICROS_PER_DAY, 450);
    stopped = true;
    await Promise.all([...writing, reading]);
    const { totals } = await sumUsage(orgDb, {
      dimension: 'day',
      filter: {},
      fromMicros: undefined,
      toMicros: undefined,
      limit: 10,
      offset: 0,
    });
    expect(sent).toBeGreaterThan(0);
    expect(totals.calls).toBe(sent);
  });
});
