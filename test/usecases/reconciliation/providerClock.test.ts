import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPriceBook } from '../../../db/pricing/prices.js';
import { DEFAULT_WEIGHTS } from '../../../domain/reconciliation/weights/weightSet.js';
import { reconcileBills } from '../../../usecases/reconciliation/reconcileBills.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { ACCOUNTS, addCalls, dayAt, gapRunsOf, type Runs } from '../../support/incrementalRuns.js';
import { aShiftedOrganization } from '../../support/shiftedDays.js';

const [ONE] = ACCOUNTS;

let api: TestApi;
let runs: Runs;

beforeAll(async () => {
  api = await startTestApi();
  runs = await gapRunsOf(api);
});

afterAll(async () => {
  await api?.close();
});

/** A run finds the provider's clock and matches every day; another run has nothing to compare. */
async function expectAllMatched(org: TestOrganization, hours: number): Promise<void> {
  const { run } = await runs.run(org);
  expect(run.dayOffsets).toEqual(hours === 0 ? {} : { openai: hours });
  expect(await runs.published(org)).toMatchObject({ findings: [] });
  const { rows } = await api.database.superuser.query(
    'select distinct match_status, our_cost_usd = provider_cost_usd as same from gap_buckets where org_id = $1',
    [org.orgId],
  );
  expect(rows).toEqual([{ match_status: 'matched', same: true }]);
  expect((await runs.run(org)).units).toBe(0);
}

describe('a provider whose clock is not UTC', () => {
  it.each([-8, 0, 9])('has its days compared as it counts them: %i hours ahead', async (hours) => {
    const org = await aShiftedOrganization(api, hours);
    await expectAllMatched(org, hours);
  });

  it.each([-8, 0, 5])('has them compared so where its bill has days alone: %i hours ahead', async (hours) => {
    const org = await aShiftedOrganization(api, hours, { daysAlone: true });
    await expectAllMatched(org, hours);
  });

  it('has the days of a run over 7 days compared alike by one over 30: no day of them again', async () => {
    const early = await gapRunsOf(api, () => BigInt(Date.parse('2026-10-10T12:00:00Z')) * 1000n);
    const org = await aShiftedOrganization(api, -8);
    const [week, month] = [await early.run(org, '7d'), await early.run(org, '30d')];
    expect([week.run.dayOffsets, month.run.dayOffsets]).toEqual([{ openai: -8 }, { openai: -8 }]);
    expect([week.units, month.units]).toEqual([5, 3]);
    const { rows } = await api.database.superuser.query(
      `select distinct match_status from gap_buckets where org_id = $1 and width = 'day'`,
      [org.orgId],
    );
    expect(rows).toEqual([{ match_status: 'matched' }]);
  });

  it('has both days compared again that a late call may lie on', async () => {
    const org = await aShiftedOrganization(api, -8);
    await runs.run(org);
    await addCalls(api, org.orgId, { day: dayAt(3), account: ONE, hour: 2 });
    const { units, run } = await runs.run(org);
    expect(units).toBe(3);
    expect(run.dayOffsets).toEqual({ openai: -8 });
    const after = await runs.published(org);
    await runs.runFully(org);
    expect(await runs.published(org)).toEqual(after);
  });

  it('has them compared so when all days are computed at once', async () => {
    const org = await aShiftedOrganization(api, -8);
    const book = await loadPriceBook(api.database.database);
    const { buckets, findings } = await reconcileBills(
      org.orgDb,
      {
        provider: 'openai',
        fromDay: null,
        toDay: null,
        nowMicros: BigInt(Date.parse('2026-10-20T12:00:00Z')) * 1000n,
      },
      { agreed: book, list: book.list },
      DEFAULT_WEIGHTS,
    );
    expect(findings).toEqual([]);
    expect(new Set(buckets.map((bucket) => bucket.matchStatus))).toEqual(new Set(['matched']));
  });
});
