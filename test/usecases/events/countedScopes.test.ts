import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { updateSettings } from '../../../db/installation/organizations.js';
import type { OrgDb } from '../../../db/orgDb.js';
import type { CallRecord, SpanLink } from '../../../domain/events/event.js';
import type { CountedScope } from '../../../domain/installation/settings.js';
import { DEFAULT_SETTINGS } from '../../../domain/installation/settings.js';
import { sweepTraces } from '../../../usecases/events/traceSweep.js';
import type { PriceBookHolder } from '../../../usecases/pricing/priceBookHolder.js';
import { sumUsage } from '../../../usecases/usage/usage.js';
import { foldAll } from '../../db/support/compareTotals.js';
import { DIMENSIONS, type Step, step } from '../../db/support/drawSteps.js';
import { testSeed } from '../../fakes/seededRandom.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { untilNothingHoldsBack } from '../../support/horizon.js';
import { openTestPrices } from '../../support/prices.js';
import { propertyRuns } from '../../support/propertyRuns.js';
import { aSender } from '../../support/sender.js';

const SEED = testSeed();
const RUNS = propertyRuns(3);

let test: TestDatabase;
let prices: PriceBookHolder;
beforeAll(async () => {
  test = await createTestDatabase({ poolMax: 10 });
  prices = await openTestPrices(test.database);
});
afterAll(() => test.close());

async function anOrganization(countedScopes: readonly CountedScope[]) {
  const sender = await aSender(test, prices);
  await updateSettings(sender.orgDb, { ...DEFAULT_SETTINGS, countedScopes: [...countedScopes] });
  return sender;
}

async function totalsOf(orgDb: OrgDb): Promise<unknown[]> {
  const all = { fromMicros: undefined, toMicros: undefined, limit: 1_000, offset: 0 };
  return Promise.all(DIMENSIONS.map((dimension) => sumUsage(orgDb, { ...all, dimension, filter: {} })));
}

/** Spans of each source have separate ids; one may be nested in a span of the other scope. */
function placeOf({ trace, scopeName }: CallRecord, service: string, index: number): SpanLink | null {
  if (trace === null) return null;
  const mark = (scope: string) => (service === 'search' ? 'c' : scope);
  const parent = index % 3 === 0 ? (scopeName === 'a' ? 'b' : 'a') : scopeName;
  return {
    traceId: trace.traceId,
    spanId: `${mark(scopeName)}${trace.spanId.slice(1)}`,
    parentSpanId: trace.parentSpanId === null ? null : `${mark(parent)}${trace.parentSpanId.slice(1)}`,
  };
}

type Ingest = Extract<Step, { do: 'ingest' }>;
const batches = fc
  .array(
    step.filter((one): one is Ingest => one.do === 'ingest'),
    { minLength: 1, maxLength: 5 },
  )
  .map((steps) => steps.flatMap((one) => one.batches));
/** The drawn calls are of two scopes; some of another service, which no setting names. */
const drawn = fc.record({
  batches,
  counted: fc.constantFrom('a', 'b'),
  elsewhere: fc.array(fc.boolean(), { minLength: 1, maxLength: 7 }),
  order: fc.array(fc.nat(), { minLength: 30, maxLength: 30 }),
});

describe(`a scope that counts (TEST_SEED=${SEED})`, () => {
  it('makes totals contain its calls alone, as if the other scopes of the service had reported no call, in any order and any split into requests', {
    timeout: 300_000 + RUNS * 10_000,
  }, async () => {
    const run = await fc.check(
      fc.asyncProperty(drawn, async ({ batches, counted, elsewhere, order }) => {
        let index = 0;
        const told = batches.map((batch) =>
          batch.map((call) => {
            index += 1;
            const serviceName = elsewhere[index % elsewhere.length] === true ? 'search' : 'checkout';
            return { ...call, serviceName, trace: placeOf(call, serviceName, index) };
          }),
        );
        const counts = (call: CallRecord) => call.serviceName !== 'checkout' || call.scopeName === counted;
        const shuffled = told
          .map((batch, at) => ({ batch, rank: order[at] ?? at }))
          .sort((one, other) => one.rank - other.rank)
          .map(({ batch }) => batch);
        const set = await anOrganization([{ service: 'checkout', scope: counted }]);
        const alone = await anOrganization([]);
        for (const batch of shuffled) {
          const left = batch.filter((call) => !counts(call));
          const outcome = await set.send(batch);
          expect(outcome.leftOut).toBe(left.length);
          expect(outcome.accepted).toBe(batch.length - left.length);
        }
        for (const batch of shuffled)
          await alone.send(
            batch.filter(counts),
            batch.flatMap((call) => (counts(call) || call.trace === null ? [] : [call.trace])),
          );
        await untilNothingHoldsBack(test.superuser);
        while ((await sweepTraces(test.database, prices)).more);
        expect(await totalsOf(set.orgDb)).toEqual(await totalsOf(alone.orgDb));
        for (const { orgDb } of [set, alone]) await foldAll(test.superuser, orgDb);
        expect(await totalsOf(set.orgDb)).toEqual(await totalsOf(alone.orgDb));
        const { rows } = await test.superuser.query<{ n: string }>(
          `select count(*) as n from events where org_id = $1 and service_name = 'checkout' and scope_name <> $2`,
          [set.orgDb.orgId, counted],
        );
        expect(rows).toEqual([{ n: '0' }]);
      }),
      { seed: SEED, numRuns: RUNS, endOnFailure: true },
    );
    if (run.failed) throw new Error(fc.defaultReportMessage(run), { cause: run.errorInstance });
  });
});
