import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listObservedSources } from '../../../db/events/observedCalls.js';
import { insertOrganization } from '../../../db/installation/organizations.js';
import { OrgDb } from '../../../db/orgDb.js';
import { foldUsage, listUnfoldedOrganizations } from '../../../db/usage/rollups.js';
import { startOf } from '../../../db/usage/usageLog.js';
import { billingDayOf } from '../../../domain/billing/billingDay.js';
import { DomainError } from '../../../domain/errors.js';
import type { CallRecord } from '../../../domain/events/event.js';
import { dayOf, MICROS_PER_DAY, microsOfDay } from '../../../domain/period.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { IngestWriter } from '../../../usecases/events/ingestWriter.js';
import { sweepTraces } from '../../../usecases/events/traceSweep.js';
import type { PriceBookHolder } from '../../../usecases/pricing/priceBookHolder.js';
import { sumUsage } from '../../../usecases/usage/usage.js';
import { testSeed } from '../../fakes/seededRandom.js';
import { aBatch, aCall, aUsage } from '../../support/aCall.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { openTestPrices } from '../../support/prices.js';
import { propertyRuns } from '../../support/propertyRuns.js';
import { compareSources } from '../support/compareSources.js';
import { compareCells, compareRead, compareStored, foldAll } from '../support/compareTotals.js';
import { DAYS, DIMENSIONS, FIRST, HOUR, step } from '../support/drawSteps.js';
import { otherPrices, repriceAll } from '../support/repriceAll.js';

const SEED = testSeed();
const RUNS = propertyRuns(3);

let test: TestDatabase;
let prices: PriceBookHolder;
/** The prices, others, and some without a model. */
let books: PriceBook[];

beforeAll(async () => {
  test = await createTestDatabase({ poolMax: 10 });
  prices = await openTestPrices(test.database);
  const list = prices.current();
  books = [list, otherPrices(list, 3n), otherPrices(list, 2n, ['gpt-4o', 'gpt-4o-mini'])];
});
afterAll(() => test.close());

async function aNewOrganization(): Promise<{ orgDb: OrgDb; send(...calls: CallRecord[]): Promise<unknown> }> {
  const orgId = randomUUID();
  await insertOrganization(test.database, { id: orgId, name: 'totals' });
  const writer = new IngestWriter(test.database, prices, 4, {
    queueRows: () => undefined,
    batchRows: () => undefined,
  });
  return {
    orgDb: new OrgDb(test.database, orgId),
    async send(...calls) {
      const request = { orgId, keyId: `key_${'0'.repeat(10)}`, defaultProjectId: null, batch: aBatch(calls) };
      // Retries when asked to, as a client does whose batch conflicts with others over the same few calls.
      for (let attempt = 0; attempt < 10; attempt += 1) {
        const outcome = await writer.submit(request).catch((error: unknown) => {
          if (!(error instanceof DomainError) || error.code !== 'service_unavailable') throw error;
        });
        if (outcome) return outcome;
      }
      throw new Error('ten times told to come back');
    },
  };
}

/** A fold may lose to a simultaneous one, which then did its work. */
async function foldBesideOthers(orgDb: OrgDb): Promise<void> {
  await foldUsage(test.database, orgDb.orgId).catch((error: unknown) => {
    if (!(error instanceof DomainError)) throw error;
  });
}

describe(`totals (TEST_SEED=${SEED})`, () => {
  it(
    'equal the live events, for any window, dimension and filter, after any order of ingests, repeats, call reports, sweeps, re-pricings and folds',
    async () => {
      const run = await fc.check(
        fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
          const { orgDb, send: store } = await aNewOrganization();
          const sent: CallRecord[][] = [];
          const send = (calls: CallRecord[]) => {
            sent.push(calls);
            return store(...calls);
          };
          const fold = () => foldBesideOthers(orgDb);
          for (const action of steps) {
            if (action.do === 'ingest')
              await Promise.all([...action.batches.map(send), ...(action.withFold ? [fold(), fold()] : [])]);
            else if (action.do === 'repeat') await Promise.all(sent.slice(-3).map(send));
            else if (action.do === 'fold') await fold();
            else if (action.do === 'reprice') {
              const window = { fromMicros: FIRST, toMicros: FIRST + DAYS * MICROS_PER_DAY };
              const beside = action.beside.length > 0 ? [send(action.beside), fold()] : [];
              await Promise.all([repriceAll(orgDb, books[action.book] as PriceBook, window), ...beside]);
            } else if (action.do === 'sweep') await sweepTraces(test.database, prices);
            else for (const asked of action.questions) await compareRead(test.superuser, orgDb, asked);
          }
          await Promise.all([
            compareCells(test.superuser, orgDb),
            compareSources(test.superuser, orgDb),
            ...DIMENSIONS.map((dimension) =>
              compareRead(test.superuser, orgDb, {
                dimension,
                filter: {},
                fromMicros: undefined,
                toMicros: undefined,
              }),
            ),
          ]);
          if (sent.length === 0) return;
          await foldAll(test.superuser, orgDb);
          await compareStored(test.superuser, orgDb.orgId);
          await compareCells(test.superuser, orgDb);
          await compareSources(test.superuser, orgDb);
        }),
        { seed: SEED, numRuns: RUNS, endOnFailure: true },
      );
      if (run.failed)
        throw new Error(`seed ${run.seed}, path ${run.counterexamplePath}`, { cause: run.errorInstance });
    },
    60_000 + RUNS * 10_000,
  );

  it('count a call once that its own request completed and a later request reports again, folded or not', async () => {
    for (const foldsBetween of [false, true]) {
      const { orgDb, send } = await aNewOrganization();
      const told = (scopeName: string, input: number, reportedClasses: number) =>
        aCall({
          responseId: 'resp_1',
          requestId: 'resp_1',
          scopeName,
          reportedClasses,
          usage: aUsage({ input, output: 1 }),
          startMicros: FIRST + BigInt(reportedClasses),
        });
      await send(told('first', 10, 1));
      // The poorer report in this request completes the stored one, in the transaction that stores it.
      await send(told('second', 20, 3), told('third', 20, 2));
      if (foldsBetween) await foldAll(test.superuser, orgDb);
      await send(told('fourth', 40, 4));
      for (const dimension of DIMENSIONS)
        await compareRead(test.superuser, orgDb, {
          dimension,
          filter: {},
          fromMicros: undefined,
          toMicros: undefined,
        });
      await foldAll(test.superuser, orgDb);
      await compareStored(test.superuser, orgDb.orgId);
      await compareCells(test.superuser, orgDb);
      const { totals } = await sumUsage(orgDb, {
        dimension: 'model',
        filter: {},
        fromMicros: undefined,
        toMicros: undefined,
        limit: 10,
        offset: 0,
      });
      expect([totals.calls, totals.inputTokens]).toEqual([1, 40]);
    }
  });

  it('of projects come in by themselves, a share at a time, where a version folded that had none', async () => {
    const { orgDb, send } = await aNewOrganization();
    const calls = [
      aCall({ requestId: 'req_1', projectId: 'p1' }),
      aCall({ requestId: 'req_2', projectId: 'p2', userId: 'u1' }),
      aCall({ requestId: 'req_3' }),
    ];
    await send(...calls);
    await foldAll(test.superuser, orgDb);
    await test.superuser.query('delete from project_cells where org_id = $1', [orgDb.orgId]);
    await test.superuser.query('update rollup_state set projects_xid = 0 where org_id = $1', [orgDb.orgId]);
    await send(aCall({ requestId: 'req_4', projectId: 'p1' }));
    const compare = async () => {
      for (const filter of [{ boundProjectId: 'p1' }, { projectId: 'p2' }])
        for (const dimension of DIMENSIONS)
          await compareRead(test.superuser, orgDb, {
            dimension,
            filter,
            fromMicros: undefined,
            toMicros: undefined,
          });
    };
    await compare();
    expect(await listUnfoldedOrganizations(test.database)).toContain(orgDb.orgId);
    expect(await foldUsage(test.database, orgDb.orgId)).toEqual({ more: true });
    await compare();
    await foldAll(test.superuser, orgDb);
    await compareStored(test.superuser, orgDb.orgId);
    await compare();
  });

  it('of a day’s services are those of its calls, also where a version folded that had none, whatever came since', async () => {
    const { orgDb, send } = await aNewOrganization();
    const call = (of: Partial<CallRecord>) =>
      aCall({ startMicros: FIRST + HOUR, status: 'error', httpStatus: 429, ...of });
    await send(call({ requestId: 'req_1' }), call({ requestId: 'req_2', responseModel: 'gpt-4o' }));
    await send(call({ requestId: 'req_3', startMicros: FIRST + MICROS_PER_DAY }));
    await foldAll(test.superuser, orgDb);
    // Simulates the data of that version.
    await test.superuser.query('delete from source_days where org_id = $1', [orgDb.orgId]);
    await test.superuser.query('update observed_days set sources_revision = 0 where org_id = $1', [
      orgDb.orgId,
    ]);
    await compareSources(test.superuser, orgDb);
    await send(
      call({ requestId: 'req_4', serviceName: 'late' }),
      call({ requestId: 'req_5', startMicros: FIRST + 2n * MICROS_PER_DAY }),
    );
    await compareSources(test.superuser, orgDb);
    await foldAll(test.superuser, orgDb);
    await compareSources(test.superuser, orgDb);
    // The calls of a completely folded day are no longer needed.
    await test.superuser.query('delete from events where org_id = $1', [orgDb.orgId]);
    const listOf = (day: bigint) =>
      listObservedSources(orgDb, { provider: 'openai', day: dayOf(FIRST + day * MICROS_PER_DAY) });
    expect([(await listOf(0n)).size, (await listOf(2n)).size]).toEqual([0, 1]);
  });

  it('of Google’s services are by its Pacific days, in summer and in winter', async () => {
    const { orgDb, send } = await aNewOrganization();
    // Summer time began on 8 March and ends on 1 November 2026.
    const days = ['2026-03-07', '2026-03-08', '2026-03-09', '2026-10-31', '2026-11-01', '2026-11-02'];
    const times = days.flatMap((day) => [0n, 7n, 8n, 9n].map((hour) => microsOfDay(day) + hour * HOUR));
    const around = times.flatMap((time) => [time - 2_000_000n, time]);
    await send(
      ...around.map((startMicros, at) =>
        aCall({
          startMicros,
          endMicros: startMicros + 1n,
          provider: 'google',
          billedBy: 'google',
          requestId: `req_${at}`,
        }),
      ),
    );
    await compareSources(test.superuser, orgDb, days);
    await foldAll(test.superuser, orgDb);
    await compareSources(test.superuser, orgDb, days);
    const { rows } = await test.superuser.query<{ day: string; calls: number }>(
      'select day::text, calls::int from source_days where org_id = $1 order by day',
      [orgDb.orgId],
    );
    const counts = new Map<string, number>();
    for (const startMicros of around) {
      const day = billingDayOf('google', startMicros + 1n);
      counts.set(day, (counts.get(day) ?? 0) + 1);
    }
    expect(rows.map(({ day, calls }) => [day, calls])).toEqual([...counts].sort());
  });

  it('contain when a group was first and last seen, whether it is filtered or not, folded or not', async () => {
    const { orgDb, send } = await aNewOrganization();
    const times = [FIRST + 5n, FIRST + HOUR, FIRST + 2n * MICROS_PER_DAY + 7n];
    await send(
      ...times.map((startMicros) => aCall({ startMicros, teamId: 't1', requestId: `req_${startMicros}` })),
    );
    for (const fold of [false, true]) {
      if (fold) await foldAll(test.superuser, orgDb);
      for (const filter of [{}, { teamId: 't1' }, { model: 'gpt-4o', kind: 'sdk_event' }]) {
        const { groups } = await sumUsage(orgDb, {
          dimension: 'team',
          filter,
          fromMicros: undefined,
          toMicros: undefined,
          limit: 10,
          offset: 0,
        });
        expect(groups.map((group) => [group.key, group.firstSeenMicros, group.lastSeenMicros])).toEqual([
          ['t1', times[0], times[2]],
        ]);
      }
    }
  });

  it('are folded by a read that is far behind, but not by one that holds a connection already', async () => {
    const { orgDb, send } = await aNewOrganization();
    await send(aCall({ requestId: 'req_many' }));
    const { rows } = await test.superuser.query<{ name: string }>(
      `select column_name as name from information_schema.columns
       where table_name = 'event_adjustments' and column_name not in ('id', 'event_id', 'sign')`,
    );
    const names = rows.map(({ name }) => name).join(', ');
    const addMany = () =>
      test.superuser.query(
        `insert into event_adjustments (event_id, sign, ${names})
         select e.id, case when at % 2 = 0 then 1 else -1 end, ${names.replace('ingest_xid', 'pg_current_xact_id()::text::bigint')} from events e, generate_series(1, 50002) at where e.org_id = $1`,
        [orgDb.orgId],
      );
    const asked = { dimension: 'model' as const, filter: {}, fromMicros: undefined, toMicros: undefined };
    const folded = async () => {
      const state = 'select folded_xid::float8 as xid from rollup_state where org_id = $1';
      return (await test.superuser.query<{ xid: number }>(state, [orgDb.orgId])).rows[0]?.xid ?? 0;
    };
    const read = (on: OrgDb) => sumUsage(on, { ...asked, limit: 10, offset: 0 });
    await addMany();
    expect((await orgDb.transaction(read, 'repeatable read')).totals.calls).toBe(1);
    expect(await folded()).toBe(0);
    expect((await read(orgDb)).totals.calls).toBe(1);
    const first = await folded();
    expect(first).toBeGreaterThan(0);
    // The same a minute later, just after a fold that left many rows.
    await test.superuser.query(
      `update rollup_state set folded_at = folded_at - interval '1 minute' where org_id = $1`,
      [orgDb.orgId],
    );
    for (let transactions = 0; transactions < 2; transactions += 1) await addMany();
    expect(await foldUsage(test.database, orgDb.orgId)).toEqual({ more: true });
    const second = await folded();
    expect(second).toBeGreaterThan(first);
    expect((await read(orgDb)).totals.calls).toBe(1);
    expect(await folded()).toBeGreaterThan(second);
  });

  it('begin an hour and a day where PostgreSQL does in UTC', async () => {
    const units = ['hour', 'day'] as const;
    for (const unit of units) {
      const { rows } = await test.superuser.query(
        `select at from generate_series(timestamptz '1969-12-25Z', timestamptz '2040-01-01Z', interval '7 hours 59 minutes 59.999999 seconds') at
         where ${startOf(unit, 'at')} <> date_trunc('${unit}', at, 'UTC') limit 1`,
      );
      expect(rows).toEqual([]);
    }
  });
});
