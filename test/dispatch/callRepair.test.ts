import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listCallRepairs } from '../../db/events/callRepairs.js';
import { supersedeEvents } from '../../db/events/revisions.js';
import { placeOf, type StoredEvent } from '../../db/events/storedEvents.js';
import type { CallRecord } from '../../domain/events/event.js';
import { repairCalls, repairNextCalls } from '../../usecases/events/callRepairs.js';
import { foldAll } from '../db/support/compareTotals.js';
import { FIRST } from '../db/support/drawSteps.js';
import { aPlace, aReport, ReportedCalls } from '../db/support/reportedCalls.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

/** Slices of a few events, so that a repair takes many transactions. */
const SLICE = { search: 7, merge: 5 };
/** Steps from a response id that earlier versions walked. */
const STEPS = 16;
const REPORTS = 40;

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase({ poolMax: 10 });
});
afterAll(() => test.close());

const responseOf = (calls: ReportedCalls, name: string) => `resp_${calls.orgDb.orgId.slice(0, 8)}_${name}`;

/** Stores each report as an event that counts, as if nothing had been reported before. */
async function storeApart(calls: ReportedCalls, reports: CallRecord[]): Promise<StoredEvent[]> {
  for (const report of reports) {
    await test.superuser.query(
      'update call_spans set response_id = null, biller = null where org_id = $1 and response_id = $2',
      [calls.orgDb.orgId, report.responseId],
    );
    await test.superuser.query(
      'delete from call_spans where org_id = $1 and trace_id = $2::uuid and span_id = $3',
      [
        calls.orgDb.orgId,
        report.trace?.traceId ?? null,
        report.responseId === null && report.trace ? BigInt(`0x${report.trace.spanId}`).toString() : null,
      ],
    );
    calls.restart();
    await calls.send([report]);
  }
  const { live } = await calls.events();
  const times = new Set(reports.map(({ startMicros }) => startMicros));
  return live
    .filter(({ timestampMicros }) => times.has(timestampMicros))
    .sort((one, other) => Number(one.timestampMicros - other.timestampMicros));
}

/**
 * Simulates how earlier versions stored reports that each started later than the one before: a chain of sixteen steps
 * from the first event, which the response id points at, and all later ones as separate calls.
 */
async function breakCall(calls: ReportedCalls, reports: CallRecord[]): Promise<StoredEvent[]> {
  const events = await storeApart(calls, reports);
  expect(events).toHaveLength(reports.length);
  await calls.orgDb.transaction(async (inside) => {
    for (const [place, event] of events.slice(0, STEPS).entries())
      await supersedeEvents(inside, [
        { ...placeOf(event), winnerId: (events[place + 1] as StoredEvent).id, isNew: false },
      ]);
  });
  await test.superuser.query(
    'update call_spans set event_id = $3, live_event_id = null where org_id = $1 and response_id = $2',
    [calls.orgDb.orgId, reports[0]?.responseId, events[0]?.id],
  );
  return events;
}

const spans = (responseId: string, from = 0) =>
  Array.from({ length: REPORTS }, (_, index) =>
    aReport(responseId, from + index, { trace: aPlace(from + index + 1, 1), teamId: 'search' }),
  );

async function openRepair(calls: ReportedCalls): Promise<void> {
  await test.superuser.query(`insert into call_repairs (org_id, stage) values ($1, 'search')`, [
    calls.orgDb.orgId,
  ]);
}

/** Repairs to the end; the number of transactions. */
async function repairAll(calls: ReportedCalls): Promise<number> {
  const prices = await calls.prices();
  for (let steps = 1; ; steps += 1)
    if ((await repairNextCalls(calls.orgDb, prices, SLICE)).isDone) return steps;
}

async function stateOf(calls: ReportedCalls) {
  const repairs = await listCallRepairs(test.database);
  return repairs.find(({ orgId }) => orgId === calls.orgDb.orgId);
}

const secondsOf = ({ timestampMicros }: StoredEvent) => Number((timestampMicros - FIRST) / 1_000_000n);

describe('the repair of calls that an earlier version counted more than once', () => {
  it('leaves one event of each call, the right totals, and a row of what it did in the audit log', async () => {
    const calls = await ReportedCalls.of(test);
    await breakCall(calls, spans(responseOf(calls, 'a')));
    await breakCall(calls, spans(responseOf(calls, 'b'), 500));
    const sound = aReport(responseOf(calls, 'c'), 900);
    await calls.send([sound]);
    await calls.send([{ ...sound, startMicros: sound.startMicros + 1n }]);
    await foldAll(test.superuser, calls.orgDb);
    expect((await calls.events()).live).toHaveLength(2 * (REPORTS - STEPS) + 1);
    await openRepair(calls);
    expect(await repairAll(calls)).toBeGreaterThan(10);
    const { live, superseded } = await calls.events();
    expect(live.map(secondsOf).sort((one, other) => one - other)).toEqual([STEPS, 500 + STEPS, 900]);
    const liveIds = new Set(live.map(({ id }) => id));
    expect(superseded.every(({ supersededBy }) => liveIds.has(supersededBy ?? ''))).toBe(true);
    expect(live.map(({ teamId }) => teamId).sort()).toEqual(['search', 'search', null].sort());
    expect(await calls.misdirected()).toEqual([]);
    await calls.compareTotals();
    const gone = 2 * (REPORTS - STEPS - 1);
    expect(await stateOf(calls)).toMatchObject({
      stage: 'done',
      calls: 2,
      events: gone,
      costPico: BigInt(gone) * 13_000_000_000n,
    });
    const { rows } = await test.superuser.query(
      `select details from audit_log where org_id = $1 and action = 'calls.repaired'`,
      [calls.orgDb.orgId],
    );
    expect(rows.map(({ details }) => JSON.parse(details))).toEqual([
      { calls: 2, events: gone, cost_usd: '0.598' },
    ]);
    // A later report finds the call.
    await calls.send([aReport(responseOf(calls, 'a'), 700, { trace: aPlace(701, 1) })]);
    expect((await calls.events()).live).toHaveLength(3);
  });

  it('finds the events of a call whose identity is gone for its age, and those of one span that was sent again', async () => {
    const calls = await ReportedCalls.of(test);
    const id = responseOf(calls, 'a');
    await breakCall(calls, spans(id));
    await test.superuser.query('delete from call_spans where org_id = $1', [calls.orgDb.orgId]);
    const place = aPlace(77, 7);
    const again = Array.from({ length: 20 }, (_, index) =>
      aReport('', 300 + index, {
        responseId: null,
        requestId: `${place.traceId}:${place.spanId}`,
        trace: place,
      }),
    );
    await breakCall(calls, again);
    await openRepair(calls);
    await repairAll(calls);
    expect((await calls.events()).live.map(secondsOf).sort((one, other) => one - other)).toEqual([
      STEPS,
      300 + STEPS,
    ]);
    await calls.compareTotals();
  });

  it('keeps calls apart that share an invented request id of a wrapper', async () => {
    const calls = await ReportedCalls.of(test);
    const wrapped = Array.from({ length: 20 }, (_, index) =>
      aReport(responseOf(calls, 'a'), index, { kind: 'sdk_event', requestId: 'checkout' }),
    );
    await breakCall(calls, wrapped);
    await calls.send([aReport('', 50, { kind: 'sdk_event', requestId: 'checkout', responseId: null })]);
    const before = (await calls.events()).live.length;
    await openRepair(calls);
    await repairAll(calls);
    expect((await calls.events()).live).toHaveLength(before);
  });

  it('continues where it was when it is interrupted, beside new reports of the same call', async () => {
    const calls = await ReportedCalls.of(test);
    const id = responseOf(calls, 'a');
    await breakCall(calls, spans(id));
    await openRepair(calls);
    const prices = await calls.prices();
    for (let step = 0; step < 9; step += 1) await repairNextCalls(calls.orgDb, prices, SLICE);
    expect(await stateOf(calls)).toMatchObject({ stage: 'merge', finishedMicros: null });
    const later = Array.from({ length: 10 }, (_, index) =>
      calls.send([aReport(id, 800 + index, { trace: aPlace(900 + index, 1) })], index),
    );
    await Promise.all([repairAll(calls), repairAll(calls), ...later]);
    expect((await calls.events()).live.map(secondsOf)).toEqual([STEPS]);
    await calls.compareTotals();
  });

  it('runs for each organization in the worker, which logs what was repaired', async () => {
    const [broken, sound] = [await ReportedCalls.of(test), await ReportedCalls.of(test)];
    await breakCall(broken, spans(responseOf(broken, 'a')));
    await sound.send(spans(responseOf(sound, 'a')));
    for (const calls of [broken, sound]) await openRepair(calls);
    const lines: [object, string][] = [];
    const logger = { warn: (line: object, text: string) => lines.push([line, text]) };
    while (
      await repairCalls({
        database: test.database,
        prices: { of: () => broken.prices() },
        logger: logger as never,
      })
    );
    expect(lines).toEqual([
      [
        {
          org_id: broken.orgDb.orgId,
          calls: 1,
          events: REPORTS - STEPS - 1,
          cost_usd: '0.299',
        },
        'calls that were counted more than once count once now',
      ],
    ]);
    expect(await stateOf(sound)).toMatchObject({ stage: 'done', calls: 0, events: 0 });
    expect(
      await repairCalls({
        database: test.database,
        prices: { of: () => broken.prices() },
        logger: logger as never,
      }),
    ).toBe(false);
  });
});
