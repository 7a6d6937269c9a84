import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { adoptDefaultAccount } from '../../../db/billing/billingConnections.js';
import { listObservedSince } from '../../../db/events/observedCalls.js';
import { changePrices } from '../../../db/events/revisions.js';
import { loadPriceBook } from '../../../db/pricing/prices.js';
import { decimalFromPico } from '../../../domain/money.js';
import { reconcileDays } from '../../../domain/reconciliation/reconcileDays.js';
import { DEFAULT_WEIGHTS } from '../../../domain/reconciliation/weights/weightSet.js';
import { readProviderDay } from '../../../usecases/reconciliation/providerDay.js';
import { foldAll } from '../../db/support/compareTotals.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import {
  ACCOUNTS,
  aBilledOrganization,
  addBill,
  addCalls,
  dayAt,
  gapRunsOf,
  MODEL,
  type Runs,
} from '../../support/incrementalRuns.js';
import { propertyRuns } from '../../support/propertyRuns.js';

const DAYS = 6;
const [ONE, TWO] = ACCOUNTS;

let api: TestApi;
let runs: Runs;

beforeAll(async () => {
  api = await startTestApi();
  runs = await gapRunsOf(api);
});

afterAll(async () => {
  await api?.close();
});

const sql = (text: string, values: unknown[]) => api.database.superuser.query(text, values);

/** Changes of a run's inputs, and the number of provider-days that each changes. */
const CHANGES: Record<
  string,
  { days: number; make: (org: TestOrganization, at: number) => Promise<unknown> }
> = {
  'a call that came late': {
    days: 1,
    make: ({ orgId }, at) => addCalls(api, orgId, { day: dayAt(at), account: ONE }),
  },
  'a call that began the day before': {
    days: 1,
    make: ({ orgId }, at) =>
      addCalls(api, orgId, { day: dayAt(at - 1), account: TWO, hour: 22, endsAfterHours: 4 }),
  },
  'calls priced anew': { days: 1, make: reprice },
  'a contract': { days: DAYS, make: agree },
  'a copy of the bill that counts before the others': {
    days: 1,
    make: ({ orgId }, at) =>
      addBill(api, orgId, { account: ONE, days: [dayAt(at)], rank: 30, wrong: [dayAt(at)] }),
  },
  'a copy of the bill that counts no more': {
    days: DAYS,
    make: ({ orgId }) =>
      sql(
        'update billing_days set superseded_at = now() where org_id = $1 and provider_account_id = $2 and superseded_at is null',
        [orgId, TWO],
      ),
  },
};

async function reprice({ orgId, orgDb }: TestOrganization, at: number): Promise<void> {
  const { rows } = await sql(
    `select id, to_char(timestamp at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as timestamp from events
     where org_id = $1 and timestamp >= $2::date and timestamp < $2::date + 1 order by timestamp limit 1`,
    [orgId, dayAt(at)],
  );
  await orgDb.transaction((inside) =>
    changePrices(
      inside,
      rows.map((row) => ({
        ...row,
        costPico: 70_000_000_000_000n + BigInt(at),
        costSource: 'computed' as const,
        price: { computedPico: 70_000_000_000_000n + BigInt(at), priceGaps: [], contextBand: 0 },
      })),
    ),
  );
}

async function agree(org: TestOrganization, at: number): Promise<void> {
  const { status } = await api.post(
    '/api/v1/pricing/contract-rates',
    {
      provider: 'openai',
      model: MODEL,
      discount_percent: 5 + at,
      effective_from: dayAt(0),
      source: { document: 'Agreement' },
    },
    org.adminKey,
  );
  expect(status).toBe(201);
}

describe('a run compares what changed', () => {
  it('and nothing where nothing did', async () => {
    const org = await aBilledOrganization(api);
    expect((await runs.run(org)).units).toBe(DAYS);
    const before = await runs.published(org);
    const { units, run } = await runs.run(org);
    expect(units).toBe(0);
    expect(run.result).toMatchObject({ provider_days: DAYS, unchanged_days: DAYS });
    expect(await runs.published(org)).toEqual(before);
  });

  it('and nothing because a fold has added up what it had counted itself', async () => {
    const org = await aBilledOrganization(api);
    await runs.run(org);
    // A running transaction keeps later rows from the fold.
    const client = await api.database.superuser.connect();
    await client.query('begin; select pg_current_xact_id()');
    await addCalls(api, org.orgId, { day: dayAt(2), account: ONE });
    expect((await runs.run(org)).units).toBe(1);
    await client.query('commit');
    client.release();
    await foldAll(api.database.superuser, org.orgDb);
    const before = await runs.published(org);
    expect((await runs.run(org)).units).toBe(0);
    expect(await runs.published(org)).toEqual(before);
  });

  it.each(Object.entries(CHANGES))('%s', async (_, { days, make }) => {
    const org = await aBilledOrganization(api, [dayAt(1), dayAt(2), dayAt(3)]);
    await runs.run(org);
    await make(org, 3);
    expect((await runs.run(org)).units).toBe(days);
    const after = await runs.published(org);
    await runs.runFully(org);
    expect(await runs.published(org)).toEqual(after);
  });

  it('calls that are no longer stored: who sent them may be known from nowhere else', async () => {
    const org = await aBilledOrganization(api);
    await runs.run(org);
    // Only folded calls are removed.
    await foldAll(api.database.superuser, org.orgDb);
    const { rows: summed } = await sql(
      'select sum(calls)::int as calls from billing_cells where org_id = $1',
      [org.orgId],
    );
    expect(summed).toEqual([{ calls: 14 }]);
    await sql('delete from events where org_id = $1 and timestamp < $2::date', [org.orgId, dayAt(2)]);
    expect((await runs.run(org)).units).toBe(2);
  });

  it('a key that is entered: its calls have an account from then on', async () => {
    const org = await aBilledOrganization(api);
    await addCalls(api, org.orgId, { day: dayAt(4), account: null, apiKey: 'key_x' });
    await runs.run(org);
    await sql(
      `insert into provider_keys (org_id, provider, provider_key_id, provider_account_id, name, status)
       values ($1, 'openai', 'key_x', $2, 'x', 'active')`,
      [org.orgId, ONE],
    );
    expect((await runs.run(org)).units).toBe(DAYS);
  });

  it('a bill that is no longer provisional', async () => {
    let nowMicros = BigInt(Date.parse(`${dayAt(DAYS - 1)}T20:00:00Z`)) * 1000n;
    const early = await gapRunsOf(api, () => nowMicros);
    const org = await aBilledOrganization(api);
    await early.run(org);
    nowMicros += 86_400_000_000n;
    // The day that closed; none has left the days of which hours are kept.
    expect((await early.run(org)).units).toBe(1);
  });

  it('publishes after any sequence of changes what a run over everything does', async () => {
    const steps = fc.array(
      fc.record({ change: fc.constantFrom(...Object.keys(CHANGES)), at: fc.integer({ min: 1, max: 5 }) }),
      { minLength: 1, maxLength: 5 },
    );
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        const org = await aBilledOrganization(api, [dayAt(2)]);
        await runs.run(org);
        for (const { change, at } of sequence) {
          await CHANGES[change]?.make(org, at);
          await runs.run(org);
        }
        const after = await runs.published(org);
        await runs.runFully(org);
        expect(await runs.published(org)).toEqual(after);
      }),
      { numRuns: propertyRuns(2), seed: 7 },
    );
  });
});

describe('a run explains', () => {
  it('the series of the account whose day has changed, and none of another account of the same model', async () => {
    const org = await aBilledOrganization(api, [dayAt(1)]);
    await runs.run(org);
    await addCalls(api, org.orgId, { day: dayAt(3), account: ONE });
    const { run } = await runs.run(org);
    const { rows } = await sql(
      'select provider_account_id as account from series_explanations where org_id = $1 and run_id = $2',
      [org.orgId, run.id],
    );
    expect(rows).toEqual([{ account: ONE }]);
  });
});

describe('findings', () => {
  const WRONG = [dayAt(1), dayAt(2), dayAt(3)];
  const statuses = async ({ orgId }: TestOrganization) =>
    (await sql('select id, kind, status, decided_as from findings where org_id = $1 order by id', [orgId]))
      .rows;
  const decide = ({ orgId }: TestOrganization) =>
    sql(`update findings set status = 'dismissed', decided_at = now() where org_id = $1`, [orgId]);
  const correct = ({ orgId }: TestOrganization) =>
    addBill(api, orgId, { account: ONE, days: WRONG, rank: 30 });
  const takeBack = ({ orgId }: TestOrganization) =>
    sql('update billing_days set superseded_at = now() where org_id = $1 and source_rank = 30', [orgId]);

  it('are published with their days, and sum to the pico-dollar', async () => {
    const org = await aBilledOrganization(api, WRONG);
    await runs.run(org);
    const found = await statuses(org);
    expect(found).toHaveLength(1);
    const { rows } = await sql(
      `select f.impact_usd = sum(d.impact_usd) as sums, count(*)::int as days from findings f
       join finding_days d on d.org_id = f.org_id and d.finding_id = f.id where f.org_id = $1 group by f.org_id, f.id, f.impact_usd`,
      [org.orgId],
    );
    expect(rows).toEqual([{ sums: true, days: WRONG.length }]);
  });

  it('that are found again keep their id and what was decided on them', async () => {
    const org = await aBilledOrganization(api, WRONG);
    await runs.run(org);
    await decide(org);
    const before = await statuses(org);
    await addBill(api, org.orgId, { account: ONE, days: [dayAt(4)], rank: 30, wrong: [dayAt(4)] });
    await runs.run(org);
    expect(await statuses(org)).toEqual(before);
    const { rows } = await sql('select last_day::text from findings where org_id = $1', [org.orgId]);
    expect(rows).toEqual([{ last_day: dayAt(4) }]);
  });

  it('without a decision are removed when they are no longer found', async () => {
    const org = await aBilledOrganization(api, WRONG);
    await runs.run(org);
    await correct(org);
    await runs.run(org);
    expect(await statuses(org)).toEqual([]);
  });

  it('that were decided on are gone when they are no longer found, and return as they were', async () => {
    const org = await aBilledOrganization(api, WRONG);
    await runs.run(org);
    await decide(org);
    const before = await statuses(org);
    await correct(org);
    await runs.run(org);
    expect(await statuses(org)).toEqual([{ ...before[0], status: 'gone', decided_as: 'dismissed' }]);
    await takeBack(org);
    await runs.run(org);
    expect(await statuses(org)).toEqual(before);
  });

  it('of two runs at once are found once: one explains when the other has published', async () => {
    const org = await aBilledOrganization(api, WRONG);
    const first = await runs.begin(org, '30d');
    const second = await runs.begin(org, '7d');
    await runs.match(first);
    await addBill(api, org.orgId, { account: ONE, days: [dayAt(4)], rank: 30, wrong: [dayAt(4)] });
    await runs.match(second);
    expect(await runs.explain(first)).toBe(true);
    expect(await runs.explain(second)).toBe(false);
    await runs.finish(first);
    expect(await runs.explain(second)).toBe(true);
    await runs.finish(second);
    await runs.run(org);
    const after = await runs.published(org);
    expect(await statuses(org)).toHaveLength(1);
    await runs.runFully(org);
    expect(await runs.published(org)).toEqual(after);
  });

  it('of an account without a name keep their id when it gets its name', async () => {
    const org = await api.addOrganization();
    for (const at of [0, 1, 2, 3, 4, 5])
      await addCalls(api, org.orgId, { day: dayAt(at - 1), account: null });
    await addCalls(api, org.orgId, { day: dayAt(5), account: null });
    const days = [0, 1, 2, 3, 4, 5].map(dayAt);
    await addBill(api, org.orgId, { account: 'default', days, wrong: WRONG });
    await runs.run(org);
    const before = await statuses(org);
    expect(before).toHaveLength(1);
    await adoptDefaultAccount(api.database.database, org.orgId, 'openai', ONE);
    await runs.run(org);
    expect(await statuses(org)).toEqual(before);
    const after = await runs.published(org);
    expect(JSON.stringify(after)).not.toContain('"default"');
    await runs.runFully(org);
    expect(await runs.published(org)).toEqual(after);
  });

  it('are those of all days together, computed at once', async () => {
    const org = await aBilledOrganization(api, WRONG);
    const { run } = await runs.run(org);
    const book = await loadPriceBook(api.database.database);
    const since = await listObservedSince(org.orgDb, 'openai');
    const days = [];
    for (const at of [0, 1, 2, 3, 4, 5]) {
      const scope = { provider: 'openai' as const, day: dayAt(at) };
      const beside = { nowMicros: run.windowEndMicros, observedSince: since, withHours: false };
      days.push(await readProviderDay(org.orgDb, scope, beside));
    }
    const prices = { agreed: book, list: book.list };
    const { findings } = reconcileDays('openai', days, prices, DEFAULT_WEIGHTS, []);
    const { rows } = await sql(
      `select kind, variant, grade, probability, trim_scale(impact_usd)::text as impact, first_day::text as first, last_day::text as last
       from findings where org_id = $1`,
      [org.orgId],
    );
    expect(rows).toEqual(
      findings.map((finding) => ({
        kind: finding.kind,
        variant: finding.variant,
        grade: finding.grade,
        probability: finding.probability,
        impact: decimalFromPico(finding.impactPico),
        first: finding.days[0]?.day,
        last: finding.days.at(-1)?.day,
      })),
    );
  });

  it('of a run that has ended are not published', async () => {
    const org = await aBilledOrganization(api, WRONG);
    const work = await runs.begin(org);
    await runs.match(work);
    await runs.explain(work);
    await sql(`update gap_runs set status = 'cancelled', finished_at = now() where org_id = $1`, [org.orgId]);
    await runs.finish(work);
    expect(await runs.published(org)).toMatchObject({ buckets: [], pointers: [], findings: [] });
  });
});
