import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StoredEvent } from '../../../db/events/storedEvents.js';
import type { CallRecord } from '../../../domain/events/event.js';
import { testSeed } from '../../fakes/seededRandom.js';
import { aUsage } from '../../support/aCall.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { FIRST } from '../support/drawSteps.js';
import { aPlace, aReport, ReportedCalls } from '../support/reportedCalls.js';

const SEED = testSeed();
const RUNS = Number(process.env.TEST_RUNS ?? 15);

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase({ poolMax: 10 });
});
afterAll(() => test.close());

const idOf = (calls: ReportedCalls, name: string) => `resp_${calls.orgDb.orgId.slice(0, 8)}_${name}`;
const secondsOf = (event: StoredEvent | undefined) =>
  event && Number((event.timestampMicros - FIRST) / 1_000_000n);

const REPORTS = 40;
const ORDERS: Record<string, (place: number) => number> = {
  rising: (place) => place,
  falling: (place) => REPORTS - 1 - place,
  mixed: (place) => (place * 17) % REPORTS,
};

describe('forty reports of one call', () => {
  for (const [order, second] of Object.entries(ORDERS)) {
    for (const from of ['spans', 'wrappers', 'one span'] as const) {
      it(`from ${from}, with ${order} times, are one event that counts and ${REPORTS - 1} that name it`, async () => {
        const calls = await ReportedCalls.of(test);
        const id = idOf(calls, 'a');
        for (let place = 0; place < REPORTS; place += 1) {
          const trace = from === 'spans' ? aPlace(place + 1, 1) : null;
          const report = aReport(id, second(place), {
            trace,
            ...(from === 'one span'
              ? { responseId: null, requestId: `${'a'.repeat(32)}:${'b'.repeat(16)}`, trace: ONE_SPAN }
              : {}),
          });
          await calls.send([report], place);
        }
        const { live, superseded } = await calls.events();
        expect(live.map(secondsOf)).toEqual([0]);
        expect(live[0]?.costPico).toBe(13_000_000_000n);
        expect(superseded).toHaveLength(REPORTS - 1);
        expect(new Set(superseded.map(({ supersededBy }) => supersededBy))).toEqual(new Set([live[0]?.id]));
        await calls.compareTotals();
      });
    }
  }

  it('that come at once, through several processes, are one event that counts', async () => {
    const calls = await ReportedCalls.of(test);
    const ids = Array.from({ length: 5 }, (_, index) => idOf(calls, String(index)));
    const requests = Array.from({ length: REPORTS }, (_, place) =>
      ids.map((id, index) => aReport(id, place, { trace: aPlace(place + 1, index + 1) })),
    );
    await Promise.all(
      requests.map((reports, place) => calls.send(place % 2 === 0 ? reports : reports.reverse(), place)),
    );
    const { live, superseded } = await calls.events();
    expect([live.length, superseded.length]).toEqual([ids.length, ids.length * (REPORTS - 1)]);
    expect(await calls.misdirected()).toEqual([]);
    await calls.compareTotals();
  });
});

const ONE_SPAN = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentSpanId: null };

describe('two identities of one call', () => {
  it('make one call of two that were reported apart, as soon as a report has both', async () => {
    const calls = await ReportedCalls.of(test);
    const id = idOf(calls, 'a');
    const place = aPlace(7, 7);
    await calls.send([aReport(id, 1, { kind: 'sdk_event' })]);
    // The same span, sent before its answer and without its id.
    await calls.send([
      aReport(id, 2, {
        responseId: null,
        requestId: `${place.traceId}:${place.spanId}`,
        trace: place,
        usage: null,
        reportedClasses: 0,
      }),
    ]);
    expect((await calls.events()).live).toHaveLength(2);
    await calls.send([aReport(id, 3, { trace: place })]);
    const { live, superseded } = await calls.events();
    expect([live.length, superseded.length]).toEqual([1, 2]);
    await calls.compareTotals();
  });

  it('are both known when a gateway assigns an answer its own id', async () => {
    const calls = await ReportedCalls.of(test);
    const [own, gateway] = [idOf(calls, 'own'), idOf(calls, 'gateway')];
    const outer = aReport(gateway, 0, {
      trace: aPlace(1, 1),
      reportedClasses: 1,
      endMicros: FIRST + 9_000_000n,
    });
    const inner = aReport(own, 1, { trace: aPlace(1, 2, 1) });
    await calls.send([outer, inner]);
    expect((await calls.events()).live).toHaveLength(1);
    for (const [second, id] of [gateway, own, gateway].entries())
      await calls.send([aReport(id, 20 + second, { trace: aPlace(10 + second, 1) })]);
    const { live, superseded } = await calls.events();
    expect([live.map(secondsOf), superseded.length]).toEqual([[1], 4]);
    await calls.compareTotals();
  });

  it('lead on from an event that the sweep has superseded', async () => {
    const calls = await ReportedCalls.of(test);
    const [one, other] = [idOf(calls, 'one'), idOf(calls, 'other')];
    await calls.send([
      aReport(one, 0, { trace: aPlace(1, 1), reportedClasses: 1, endMicros: FIRST + 9_000_000n }),
    ]);
    await calls.send([aReport(other, 1, { trace: aPlace(1, 2, 1) })]);
    await calls.sweepAll();
    expect((await calls.events()).live.map(secondsOf)).toEqual([1]);
    expect(await calls.misdirected()).toEqual([]);
    for (const [second, id] of [one, other].entries())
      await calls.send([aReport(id, 20 + second, { trace: aPlace(10 + second, 1) })]);
    expect((await calls.events()).live.map(secondsOf)).toEqual([1]);
    await calls.compareTotals();
  });
});

describe('a chain of superseded events', () => {
  /** Reports of one call of which each supersedes the one before; the events, the first one first. */
  async function makeChain(length: number): Promise<{ calls: ReportedCalls; chain: string[]; id: string }> {
    const calls = await ReportedCalls.of(test);
    const id = idOf(calls, 'a');
    for (let place = 0; place < length; place += 1)
      await calls.send([aReport(id, length - place, { trace: aPlace(place + 1, 1) })]);
    const { rows } = await test.superuser.query<{ id: string }>(
      'select id from events where org_id = $1 order by timestamp desc',
      [calls.orgDb.orgId],
    );
    return { calls, chain: rows.map((row) => row.id), id };
  }

  const supersededBy = async (calls: ReportedCalls): Promise<Map<string, string | null>> => {
    const { rows } = await test.superuser.query<{ id: string; superseded_by: string | null }>(
      'select id, superseded_by from events where org_id = $1',
      [calls.orgDb.orgId],
    );
    return new Map(rows.map((row) => [row.id, row.superseded_by]));
  };

  it('of any length is walked to its end from any event, and is short afterwards', async () => {
    const { calls, chain } = await makeChain(50);
    expect((await supersededBy(calls)).get(chain[0] as string)).toBe(chain[1]);
    // The second span again, as another event: only its place leads to the call, from the second event on.
    const place = aPlace(2, 1);
    await calls.send([
      aReport('', 200, { trace: place, responseId: null, requestId: `${place.traceId}:${place.spanId}` }),
    ]);
    const { live, superseded } = await calls.events();
    expect([live.length, superseded.length]).toEqual([1, 50]);
    const last = chain.at(-1) as string;
    const after = await supersededBy(calls);
    const walked = chain.slice(1, -1);
    expect(walked.map((id) => after.get(id))).toEqual(walked.map(() => last));
    await calls.compareTotals();
  });

  it('that is a circle is an error, and the report is not stored as a separate call', async () => {
    const { calls, chain, id } = await makeChain(3);
    await test.superuser.query('update events set superseded_by = $2 where org_id = $1 and id = $3', [
      calls.orgDb.orgId,
      chain[0],
      chain[2],
    ]);
    await expect(calls.send([aReport(id, 90, { trace: aPlace(90, 1) })])).rejects.toThrow(/in a circle/);
    expect((await supersededBy(calls)).size).toBe(3);
  });

  it('that ends at an event which is gone for its age leaves the next report to count, and those after it', async () => {
    const { calls, chain, id } = await makeChain(3);
    await test.superuser.query('delete from events where org_id = $1 and id = any($2)', [
      calls.orgDb.orgId,
      chain.slice(1),
    ]);
    for (const second of [80, 81, 82]) await calls.send([aReport(id, second, { trace: aPlace(second, 1) })]);
    expect((await calls.events()).live.map(secondsOf)).toEqual([80]);
  });
});

describe('an identity', () => {
  it('stays known as long as its call is reported, although identities are kept for 35 days', async () => {
    const calls = await ReportedCalls.of(test);
    const id = idOf(calls, 'a');
    await calls.send([aReport(id, 1)]);
    await test.superuser.query(
      `update call_spans set created_at = now() - interval '34 days' where org_id = $1`,
      [calls.orgDb.orgId],
    );
    calls.restart();
    await calls.send([aReport(id, 2)]);
    const { rows } = await test.superuser.query(
      `select created_at > now() - interval '1 hour' as is_new from call_spans where org_id = $1 and response_id = $2`,
      [calls.orgDb.orgId, id],
    );
    expect(rows).toEqual([{ is_new: true }]);
  });

  it('that a span had which was no call is that of the call which the span becomes', async () => {
    const calls = await ReportedCalls.of(test);
    const inner = aPlace(3, 2, 1);
    await test.superuser.query(
      `insert into call_spans (org_id, trace_id, span_id, parent_span_id, ingest_xid) values ($1, $2, 2, 1, 1)`,
      [calls.orgDb.orgId, inner.traceId],
    );
    await calls.send([aReport(idOf(calls, 'a'), 1, { trace: inner })]);
    const outer = aPlace(3, 1);
    await calls.send([
      aReport('', 0, {
        trace: outer,
        responseId: null,
        requestId: `${outer.traceId}:${outer.spanId}`,
        endMicros: FIRST + 9_000_000n,
      }),
    ]);
    await calls.sweepAll();
    expect((await calls.events()).live.map(secondsOf)).toEqual([1]);
  });
});

/** How a report of a call differs from the others. */
interface View {
  from: 'span' | 'wrapper' | 'span around' | 'same span again';
  usage: 'all' | 'whole input' | 'none';
  /** The report with a place that it belongs to, if it needs one. */
  of: number;
  team: string | null;
}

const views = fc.array(
  fc.record<View>({
    from: fc.constantFrom('span', 'span', 'span', 'wrapper', 'span around', 'same span again'),
    usage: fc.constantFrom('all', 'all', 'whole input', 'none'),
    of: fc.nat(),
    team: fc.constantFrom(null, 't1', 't2'),
  }),
  { minLength: 1, maxLength: 24 },
);

const USAGES = {
  all: {
    usage: aUsage({ input: 700, cacheRead: 300, cached: 300, output: 50 }),
    reportedClasses: 3,
    missing: [],
  },
  'whole input': { usage: aUsage({ input: 1_000, output: 50 }), reportedClasses: 2, missing: ['cache_read'] },
  none: { usage: null, reportedClasses: 0, missing: ['input', 'output'] },
};

/** The reports of one call, each linked to the others by its response id, by its span or by the span inside it. */
function reportsOf(drawn: View[], call: number, name: string): CallRecord[] {
  const placed: { span: number; second: number }[] = [];
  return drawn.map(({ from, usage, of, team }, index): CallRecord => {
    const { usage: counted, reportedClasses, missing } = USAGES[usage];
    const second = call * 1_000 + index * 10;
    const told = {
      usage: counted,
      reportedClasses,
      teamId: team,
      origin: {
        usageSource: 'otel',
        inputSemantics: 'inclusive' as const,
        usageMissing: missing,
        usageRaw: null,
        usageFlags: [],
      },
      scopeName: `scope ${index}`,
    };
    const known = placed.length === 0 ? undefined : placed[of % placed.length];
    if (from === 'wrapper') return aReport(name, second, { ...told, kind: 'sdk_event' });
    const trace = call * 1_000 + 1;
    if (from === 'same span again' && known !== undefined) {
      const place = aPlace(trace + known.span, known.span, 500 + known.span);
      return aReport(name, second, {
        ...told,
        responseId: null,
        requestId: `${place.traceId}:${place.spanId}`,
        trace: place,
      });
    }
    if (from === 'span around' && known !== undefined) {
      const place = aPlace(trace + known.span, 500 + known.span);
      return aReport(name, known.second - 1, {
        ...told,
        // Each one another event.
        startMicros: FIRST + BigInt(known.second - 1) * 1_000_000n + BigInt(index),
        responseId: null,
        requestId: `${place.traceId}:${place.spanId}`,
        trace: place,
        endMicros: FIRST + BigInt(known.second + 5) * 1_000_000n + BigInt(index),
      });
    }
    const span = index + 1;
    placed.push({ span, second });
    return aReport(name, second, { ...told, trace: aPlace(trace + span, span, 500 + span) });
  });
}

/**
 * The expected counting event: the counts of the best report, in the report that ended first among the best with an id.
 */
function expectedOf(reports: CallRecord[]) {
  const best = Math.max(...reports.map(({ reportedClasses }) => reportedClasses));
  const usage = reports.find(({ reportedClasses }) => reportedClasses === best)?.usage ?? null;
  const named = reports.filter(({ responseId }) => responseId !== null);
  const richest = Math.max(...named.map(({ reportedClasses }) => reportedClasses));
  const ends = named
    .filter(({ reportedClasses }) => reportedClasses === richest)
    .map(({ startMicros }) => startMicros);
  const teams = reports.flatMap(({ teamId }) => teamId ?? []).sort();
  return {
    timestampMicros: ends.reduce((least, at) => (at < least ? at : least)),
    tokens: [usage?.input ?? 0, usage?.cacheRead ?? 0, usage?.output ?? 0],
    unmetered: usage === null,
    teamId: teams[0] ?? null,
  };
}

const cuts = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 9 })), { minLength: 80, maxLength: 80 });

describe(`any number of reports of any calls (TEST_SEED=${SEED})`, () => {
  it(
    'in any order, in any batches, one after the other or at once, between sweeps, leave one event a call and the right totals',
    async () => {
      const run = await fc.check(
        fc.asyncProperty(
          fc.array(views, { minLength: 1, maxLength: 3 }),
          cuts,
          fc.boolean(),
          async (drawn, order, isAtOnce) => {
            const calls = await ReportedCalls.of(test);
            // The first report has an id, so that each call has one.
            const told = drawn.map((some, index) =>
              reportsOf(
                [{ from: 'span', usage: 'whole input', of: 0, team: null }, ...some],
                index + 1,
                idOf(calls, String(index)),
              ),
            );
            const items = told
              .flat()
              .map((report, index) => ({ report, key: order[index % order.length]?.[0] ?? 0, index }))
              .sort((one, other) => one.key - other.key || one.index - other.index);
            const batches: CallRecord[][] = [[]];
            for (const [place, { report }] of items.entries()) {
              batches.at(-1)?.push(report);
              if ((order[place % order.length]?.[1] ?? 0) < 6) batches.push([]);
            }
            const some = batches.filter((batch) => batch.length > 0);
            if (isAtOnce) {
              await Promise.all([...some.map((batch, place) => calls.send(batch, place)), calls.sweep()]);
            } else {
              for (const [place, batch] of some.entries()) {
                await calls.send(batch, place);
                if (order[place % order.length]?.[1] === 9) await calls.sweep();
              }
            }
            await calls.sweepAll();
            const check = async () => {
              const { live, superseded } = await calls.events();
              const found = live.map((event) => ({
                timestampMicros: event.timestampMicros,
                tokens: [event.inputTokens, event.cacheRead, event.outputTokens],
                unmetered: event.unmetered,
                teamId: event.teamId,
              }));
              const byTime = (one: { timestampMicros: bigint }, other: { timestampMicros: bigint }) =>
                Number(one.timestampMicros - other.timestampMicros);
              expect(found.sort(byTime)).toEqual(told.map(expectedOf).sort(byTime));
              const liveIds = new Set(live.map(({ id }) => id));
              expect(superseded.filter(({ supersededBy }) => !liveIds.has(supersededBy ?? ''))).toEqual([]);
              expect(await calls.misdirected()).toEqual([]);
              await calls.compareTotals();
            };
            await check();
            // Everything again changes nothing.
            await Promise.all(some.map((batch, place) => calls.send(batch.toReversed(), place + 1)));
            await calls.sweepAll();
            await check();
          },
        ),
        { seed: SEED, numRuns: RUNS, endOnFailure: true },
      );
      if (run.failed)
        throw new Error(
          `seed ${run.seed}, path ${run.counterexamplePath}: ${JSON.stringify(run.counterexample)}`,
          {
            cause: run.errorInstance,
          },
        );
    },
    60_000 + RUNS * 20_000,
  );
});
