import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { CallRecord } from '../../../domain/events/event.js';
import { UNREPEATED_MIN } from '../../../usecases/events/ingestWriter.js';
import type { PriceBookHolder } from '../../../usecases/pricing/priceBookHolder.js';
import { aCall } from '../../support/aCall.js';
import { createTestDatabase, PATIENT, type TestDatabase } from '../../support/database.js';
import { openTestPrices } from '../../support/prices.js';
import { aSender } from '../../support/sender.js';

const RUNS = 25;

let test: TestDatabase;
let prices: PriceBookHolder;
beforeAll(async () => {
  test = await createTestDatabase({ poolMax: 10, ...PATIENT });
  prices = await openTestPrices(test.database);
});
afterAll(() => test.close());

/** A sender with readers of what is stored. */
async function aWatchedSender() {
  const { orgId, send } = await aSender(test, prices);
  const rowsOf = async (table: string, order: string) => {
    const { rows } = await test.superuser.query(
      `select to_jsonb(t) - '{org_id,ingested_at,ingest_xid,revised_xid,created_at}'::text[] as row
       from ${table} t where org_id = $1 order by ${order}`,
      [orgId],
    );
    return rows.map(({ row }) => row as Record<string, unknown>);
  };
  const stored = async () => ({
    events: await rowsOf('events', 'timestamp, id'),
    identities: await rowsOf('call_spans', 'event_id, response_id, span_id'),
    payloads: await rowsOf('event_payloads', 'timestamp, event_id'),
  });
  const live = async () => {
    const { events } = await stored();
    return { live: events.filter((row) => row.superseded_by === null).length, stored: events.length };
  };
  return { send, stored, live };
}

let micros = 1_700_000_000_000_000n;
/** A call that no other test sends. */
function aNewCall(overrides: Partial<CallRecord> = {}): CallRecord {
  micros += 1_000n;
  const responseId = randomUUID();
  return aCall({ requestId: responseId, responseId, startMicros: micros, ...overrides });
}

/** A sender whose calls are assumed to be new. */
async function aTrustedSender() {
  const sender = await aWatchedSender();
  for (let batch = 0; batch < UNREPEATED_MIN; batch += 1) await sender.send([aNewCall()]);
  return sender;
}

const label = fc.constantFrom(null, 'a', 'b, "c"', '{}', 'null', '\\', "d'e");
const callFields = fc.record({
  teamId: label,
  feature: label,
  userId: label,
  environment: fc.constantFrom(null, 'production'),
  serviceTier: fc.constantFrom(null, 'priority'),
  isBatch: fc.boolean(),
  status: fc.constantFrom('ok' as const, 'error' as const),
  httpStatus: fc.constantFrom(null, 200, 429),
  model: fc.constantFrom('gpt-4o', 'gpt-4o-mini', 'unknown "model"'),
  reportedCostPico: fc.constantFrom(null, 0n, 1_500_000n),
  payload: fc.constantFrom(null, { prompt: 'one\ntwo' }),
  service: fc.constantFrom(null, { host: 'h' }),
});

describe('calls that are assumed to be new', () => {
  it('are stored as the same rows as others', async () => {
    const [trusted, other] = [await aTrustedSender(), await aWatchedSender()];
    await fc.assert(
      fc.asyncProperty(fc.array(callFields, { minLength: 1, maxLength: 5 }), async (fields) => {
        const calls = fields.map((some) => aNewCall(some));
        expect(await trusted.send(calls)).toEqual(await other.send(calls));
      }),
      { numRuns: RUNS },
    );
    const [one, two] = [await trusted.stored(), await other.stored()];
    expect(one.events.slice(UNREPEATED_MIN)).toEqual(two.events);
    expect(one.payloads).toEqual(two.payloads);
    const known = new Set(two.events.map(({ id }) => id));
    expect(one.identities.filter(({ event_id: id }) => known.has(id))).toEqual(two.identities);
  });

  it('are stored once when one of them was stored before, and the others of its batch too', async () => {
    const { send, live } = await aTrustedSender();
    const known = aNewCall();
    await send([known]);
    const outcome = await send([aNewCall(), known, aNewCall()]);
    expect(outcome).toEqual({ accepted: 3, duplicates: 1, leftOut: 0 });
    expect(await live()).toEqual({ live: UNREPEATED_MIN + 3, stored: UNREPEATED_MIN + 3 });
  });

  it('count once when another instrumentation reported one of them before', async () => {
    const { send, live } = await aTrustedSender();
    const known = aNewCall();
    await send([known]);
    const again = aNewCall({ responseId: known.responseId, scopeName: 'another' });
    expect(await send([again, aNewCall()])).toEqual({ accepted: 2, duplicates: 0, leftOut: 0 });
    expect(await live()).toEqual({ live: UNREPEATED_MIN + 2, stored: UNREPEATED_MIN + 3 });
  });

  it('count once when two requests with the same call are stored at once', async () => {
    const [one, two] = [await aTrustedSender(), await aTrustedSender()];
    const known = aNewCall();
    const outcomes = await Promise.all([one.send([known]), one.send([known]), two.send([known])]);
    expect(outcomes.map(({ duplicates }) => duplicates).sort()).toEqual([0, 0, 1]);
    expect(await one.live()).toEqual({ live: UNREPEATED_MIN + 1, stored: UNREPEATED_MIN + 1 });
  });

  it('are looked for first after a repeat, so that only one of many repeats is stored at the second attempt', async () => {
    const { send } = await aTrustedSender();
    const known = aNewCall();
    await send([known]);
    const own = vi.spyOn(test.database, 'transact');
    const shared = vi.spyOn(test.database, 'transactForEach');
    for (let turn = 0; turn < 5; turn += 1)
      expect(await send([known])).toEqual({ accepted: 1, duplicates: 1, leftOut: 0 });
    // An organization without repeats shares its transactions.
    expect([shared, own].map(({ mock }) => mock.calls.length)).toEqual([1, 5]);
    vi.restoreAllMocks();
  });
});
