import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { picoFromDecimal } from '../../../domain/money.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import {
  ACCOUNTS,
  aBilledOrganization,
  addBill,
  dayAt,
  gapRunsOf,
  type Runs,
} from '../../support/incrementalRuns.js';
import { DISPUTES, FINDINGS, financialOf, QUEUE } from '../support/financial.js';

const [ACCOUNT] = ACCOUNTS;

let api: TestApi;
let runs: Runs;
beforeAll(async () => {
  api = await startTestApi();
  runs = await gapRunsOf(api);
}, 300_000);
afterAll(() => api?.close());

const picoOf = (decimal: string) => picoFromDecimal(decimal) ?? 0n;

describe('a finding of a run in a bill', () => {
  it('is read, decided on and added up, and what the next run finds besides is disputed besides', async () => {
    const { confirm } = financialOf(() => api);
    const org = await aBilledOrganization(api, [dayAt(1), dayAt(2), dayAt(3)]);
    const get = async (path: string) => (await api.get(path, org.adminKey)).body;
    await runs.run(org);

    const { findings } = await get(`${FINDINGS}?provider_account_id=${ACCOUNT}&blame=provider`);
    expect(findings).toHaveLength(1);
    const [{ id, impact_usd_exact: impact }] = findings;
    const whole = await get(`${FINDINGS}/${id}`);
    expect(whole.days.map(({ day }: { day: string }) => day)).toEqual([dayAt(1), dayAt(2), dayAt(3)]);
    const { rate_usd_exact, volume_usd_exact, own_pricing_usd_exact } = whole.parts;
    const parts = [rate_usd_exact, volume_usd_exact, own_pricing_usd_exact].map(picoOf);
    expect(parts.reduce((sum, part) => sum + part, 0n)).toBe(picoOf(impact));
    expect(whole.lines.length).toBeGreaterThan(0);
    expect(whole.waterfall.length).toBeGreaterThan(0);

    expect((await get(QUEUE)).items[0]).toMatchObject({ id, impact_usd_exact: impact });
    const first = await confirm(org, id);
    expect(first.status).toBe(201);
    // 300 million cached tokens a day, charged $0.15 instead of $0.075 a million.
    expect(first.body.amount_cents).toBe(3 * 2_250);
    expect((await get('/api/v1/financial/summary')).recoverable_confirmed_usd).toBe(67.5);

    await addBill(api, org.orgId, { account: ACCOUNT, days: [dayAt(4)], rank: 30, wrong: [dayAt(4)] });
    await runs.run(org);
    const repeat = await confirm(org, id);
    expect([repeat.status, repeat.body.id]).toEqual([200, first.body.id]);
    const { items } = await get(QUEUE);
    expect(items).toMatchObject([{ period_start: dayAt(4), period_end: dayAt(4), impact_usd_exact: '22.5' }]);
    const second = await confirm(org, items[0].id);
    expect(second.status).toBe(201);
    expect(second.body).toMatchObject({ amount_cents: 2_250, period_start: dayAt(4), period_end: dayAt(4) });
    expect((await get(`${DISPUTES}/${first.body.id}`)).days).toHaveLength(3);
    expect((await get('/api/v1/financial/summary')).recoverable_confirmed_usd).toBe(90);
  });
});
