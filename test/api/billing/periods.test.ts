import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listBilledAdjustments } from '../../../db/billing/periods.js';
import {
  endOfMonth,
  followingMonth,
  monthOf,
  monthsBetween,
  startOfMonth,
} from '../../../domain/billing/periods.js';
import { usdNumberFromPico } from '../../../domain/money.js';
import { isoFromMicros, MICROS_PER_DAY, microsFromDate, startOfDay } from '../../../domain/period.js';
import type { TestApi, TestOrganization } from '../../support/api.js';
import { importBill } from '../../support/bills.js';
import { startWorkingApi } from '../../support/workingApi.js';
import { anEvent, ingest } from '../support/requests.js';

const NOW = microsFromDate(new Date());
const THIS = monthOf(NOW);
/** The four months before this one, oldest first. */
const [FIRST = '', SECOND = '', THIRD = '', LAST = ''] = (() => {
  const earlier: string[] = [];
  for (let end = startOfMonth(THIS); earlier.length < 4; end = startOfMonth(monthOf(end - 1n)))
    earlier.unshift(monthOf(end - 1n));
  return earlier;
})();
const TODAY = isoFromMicros(startOfDay(NOW)).slice(0, 10);
const PERIODS = '/api/v1/periods';

let api: TestApi;
beforeAll(async () => {
  api = await startWorkingApi();
});
afterAll(() => api?.close());

/** A call of a reported cost on a day of a month. */
const call = (month: string, costUsd: number, over: object = {}) =>
  anEvent({ timestamp: `${month}-10T05:06:07Z`, cost_usd: costUsd, ...over });

const lastDay = (month: string) => isoFromMicros(endOfMonth(month) - MICROS_PER_DAY).slice(0, 10);

async function summary(org: TestOrganization, query: string) {
  const { status, body } = await api.get(`/api/v1/usage/summary?${query}`, org.adminKey);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}
const ofMonth = (org: TestOrganization, month: string, more = '') =>
  summary(org, `from=${month}-01&to=${lastDay(month)}${more}`);

const close = (org: TestOrganization, month: string) =>
  api.post(`${PERIODS}/${month}/close`, {}, org.adminKey);
const read = async (org: TestOrganization, month: string) =>
  (await api.get(`${PERIODS}/${month}`, org.adminKey)).body;

describe('a month that has not begun', () => {
  it.each([followingMonth(THIS), '2131-01', '9999-11'])('is not found: %s', async (month) => {
    const { status, body } = await api.get(`${PERIODS}/${month}`);
    expect([status, body.code, body.detail]).toEqual([
      404,
      'not_found',
      `${month} has not begun; ask for a month up to ${THIS}`,
    ]);
  });

  it('begins with the current one, which is answered, as any earlier one is', async () => {
    for (const month of [THIS, LAST, '2021-01'])
      expect((await api.get(`${PERIODS}/${month}`)).body).toMatchObject({ period: month, status: 'open' });
  });
});

describe('closing a month', () => {
  it('keeps its totals from then on; what comes later is dated today, and everything still sums', async () => {
    const org = await api.addOrganization();
    await ingest(api, [call(THIRD, 3, { team_id: 't1' }), call(LAST, 5, { team_id: 't2' })], org.ingestKey);
    const closed = await close(org, LAST);
    expect(closed.status).toBe(200);
    expect(closed.body).toMatchObject({
      period: LAST,
      status: 'closed',
      closed_with: LAST,
      closed_by: expect.stringMatching(/^key_/),
      frozen: { own: { cost_usd: 5, call_count: 1 }, booked: { cost_usd: 0 }, total: { cost_usd: 5 } },
      adjustments: { cost_usd: 0, call_count: 0 },
      current: { cost_usd: 5 },
    });
    const before = await ofMonth(org, LAST);
    expect(before).toMatchObject({
      as_of: null,
      total_cost_usd: 5,
      adjustments: { cost_usd: 0, periods: [] },
    });
    await ingest(api, [call(LAST, 7, { team_id: 't2' }), call(THIRD, 11, { team_id: 't3' })], org.ingestKey);
    expect(await ofMonth(org, LAST)).toEqual(before);
    expect((await ofMonth(org, THIRD)).total_cost_usd).toBe(3);
    expect(await summary(org, `from=${TODAY}&group_by=team`)).toMatchObject({
      total_cost_usd: 18,
      call_count: 2,
      breakdown: [
        { key: 't3', cost_usd: 11 },
        { key: 't2', cost_usd: 7 },
      ],
      adjustments: {
        cost_usd: 18,
        call_count: 2,
        periods: [
          { period: THIRD, cost_usd: 11, call_count: 1 },
          { period: LAST, cost_usd: 7, call_count: 1 },
        ],
      },
    });
    expect((await summary(org, `from=${FIRST}-01`)).total_cost_usd).toBe(26);
    expect(await read(org, LAST)).toMatchObject({
      frozen: { total: { cost_usd: 5 } },
      adjustments: { cost_usd: 7, call_count: 1 },
      current: { cost_usd: 12, call_count: 2 },
    });
    expect(await read(org, THIS)).toMatchObject({ status: 'open', frozen: null, booked: { cost_usd: 18 } });
    const days = await api.get(`/api/v1/dashboard/breakdown/day?since=${FIRST}-01`, org.adminKey);
    expect(days.body.items).toMatchObject([
      { key: `${THIRD}-10`, cost_usd: 3 },
      { key: `${LAST}-10`, cost_usd: 5 },
      { key: TODAY, cost_usd: 18 },
    ]);
    const team = await api.get(
      `/api/v1/dashboard/breakdown/session?since=${LAST}-01&until=${lastDay(LAST)}&team_id=t2`,
      org.adminKey,
    );
    expect(team.body).toMatchObject({ total_cost_usd: 5, as_of: null });
  });

  it('twice changes nothing, and takes all earlier months along the first time', async () => {
    const org = await api.addOrganization();
    await ingest(api, [call(FIRST, 1), call(THIRD, 2)], org.ingestKey);
    const first = await close(org, THIRD);
    const again = await close(org, THIRD);
    expect([again.status, again.body]).toEqual([200, first.body]);
    const earlier = await close(org, SECOND);
    expect([earlier.status, earlier.body.closed_at, earlier.body.closed_with]).toEqual([
      200,
      first.body.closed_at,
      THIRD,
    ]);
    const { body } = await api.get(PERIODS, org.adminKey);
    expect(
      body.periods.map((one: { period: string; status: string; total_cost_usd: number }) => [
        one.period,
        one.status,
        one.total_cost_usd,
      ]),
    ).toEqual([
      [THIS, 'open', null],
      [LAST, 'open', null],
      [THIRD, 'closed', 2],
      [SECOND, 'closed', 0],
      [FIRST, 'closed', 1],
    ]);
    const page = await api.get(`${PERIODS}?limit=2&offset=1`, org.adminKey);
    expect(page.body).toMatchObject({ count: 2, offset: 1, has_more: true, periods: [{ period: LAST }, {}] });
    const ancient = await read(org, '2020-02');
    expect(ancient).toMatchObject({ status: 'closed', closed_with: THIRD, current: { call_count: 0 } });
    await ingest(api, [anEvent({ timestamp: '2020-02-03T00:00:00Z', cost_usd: 4 })], org.ingestKey);
    expect(await read(org, '2020-02')).toMatchObject({
      frozen: { total: { cost_usd: 0 } },
      adjustments: { cost_usd: 4 },
      current: { cost_usd: 4 },
    });
    expect((await summary(org, `from=${TODAY}`)).total_cost_usd).toBe(4);
  });

  it('is refused for a month that is not over, for one out of order, and for what is no month', async () => {
    const org = await api.addOrganization();
    const code = async (month: string) => {
      const { status, body } = await close(org, month);
      return [status, body.code];
    };
    expect(await code(THIS)).toEqual([409, 'period_not_over']);
    expect(await code(followingMonth(THIS))).toEqual([409, 'period_not_over']);
    expect((await close(org, FIRST)).status).toBe(200);
    expect(await code(THIRD)).toEqual([409, 'period_out_of_order']);
    expect((await close(org, THIRD)).body.message).toContain(`${SECOND} is still open`);
    expect(await code(SECOND)).toEqual([200, undefined]);
    for (const wrong of ['2026-13', '2026-1', 'last', '0000-01']) {
      expect(await code(wrong)).toEqual([400, 'invalid_parameter']);
      expect((await api.get(`${PERIODS}/${wrong}`, org.adminKey)).status).toBe(400);
    }
  });

  it('is refused before the first call: a slip in the year would leave hundreds of months to close', async () => {
    const org = await api.addOrganization();
    await ingest(api, [call(SECOND, 1)], org.ingestKey);
    const { status, body } = await close(org, FIRST);
    expect([status, body.code]).toEqual([409, 'period_out_of_order']);
    expect(body.message).toContain(`close ${SECOND} or a later month`);
    expect((await close(org, THIRD)).status).toBe(200);
    expect(await ofMonth(org, SECOND)).toMatchObject({ total_cost_usd: 1 });
  });

  it('is the admin’s, and of one organization only', async () => {
    const org = await api.addOrganization();
    const other = await api.addOrganization();
    await ingest(api, [call(LAST, 1)], org.ingestKey);
    await ingest(api, [call(LAST, 2)], other.ingestKey);
    const member = await api.addKey(org.orgId, 'member');
    expect((await api.post(`${PERIODS}/${LAST}/close`, {}, member)).status).toBe(403);
    await close(org, LAST);
    expect((await api.get(`${PERIODS}/${LAST}`, member)).body.status).toBe('closed');
    expect(await read(other, LAST)).toMatchObject({ status: 'open', current: { cost_usd: 2 } });
    await ingest(api, [call(LAST, 4)], other.ingestKey);
    expect((await ofMonth(other, LAST)).total_cost_usd).toBe(6);
  });

  it('keeps what was billed; a restated day is an adjustment dated when the newer copy came', async () => {
    const org = await api.addOrganization();
    const bill = (amount: string) =>
      `date,model,token_class,quantity,amount_usd\n${LAST}-10,gpt-4o,input,1000,${amount}\n${LAST}-11,gpt-4o,input,1000,2\n`;
    const fields = { provider: 'openai', account: 'acme' };
    await importBill(api, bill('10'), fields, org.adminKey);
    expect((await close(org, LAST)).body.billed).toEqual([
      {
        provider: 'openai',
        provider_account_id: 'acme',
        charge_category: 'usage',
        frozen_usd: 12,
        adjustments_usd: 0,
        current_usd: 12,
        current_usd_exact: '12',
      },
    ]);
    await importBill(api, bill('10.5'), fields, org.adminKey);
    expect(await read(org, LAST)).toMatchObject({
      billed: [{ frozen_usd: 12, adjustments_usd: 0.5, current_usd: 12.5 }],
      restated: [{ day: `${LAST}-10`, booked_on: TODAY, settled: false, amount_usd: 0.5 }],
      restated_count: 1,
    });
  });
});

describe('a restated bill of a closed month', () => {
  it('is settled when the month in which the newer copy came is closed, and a still newer one is dated after it', async () => {
    const org = await api.addOrganization();
    const fields = { provider: 'openai', account: 'acme' };
    const restate = async (amount: number, fetchedOn: string) => {
      const text = `date,model,token_class,quantity,amount_usd\n${SECOND}-10,gpt-4o,input,1000,${amount}\n`;
      const { import_id } = await importBill(api, text, fields, org.adminKey);
      await api.database.superuser.query(
        `update billing_days set source_fetched_at = $3 where org_id = $1 and replace(source_id::text, '-', '') = $2`,
        [org.orgId, import_id.slice(4), `${fetchedOn}T12:00:00Z`],
      );
    };
    const adjustments = async (filter: { month?: string; bookedIn?: string }) =>
      (await listBilledAdjustments(org.orgDb, filter)).map(({ bookedOn, isSettled, amountPico }) => [
        bookedOn,
        isSettled,
        usdNumberFromPico(amountPico),
      ]);
    await restate(10, `${SECOND}-12`);
    await close(org, SECOND);
    expect(await adjustments({})).toEqual([]);
    await restate(11, `${THIRD}-05`);
    expect(await adjustments({ month: SECOND })).toEqual([[`${THIRD}-05`, false, 1]]);
    await restate(13, `${THIRD}-20`);
    expect(await adjustments({ month: SECOND })).toEqual([[`${THIRD}-20`, false, 3]]);
    await close(org, THIRD);
    expect(await adjustments({ bookedIn: THIRD })).toEqual([[`${THIRD}-20`, true, 3]]);
    await restate(9, `${LAST}-02`);
    expect(await adjustments({ month: SECOND })).toEqual([
      [`${THIRD}-20`, true, 3],
      [`${LAST}-02`, false, -4],
    ]);
    expect(await adjustments({ bookedIn: LAST })).toEqual([[`${LAST}-02`, false, -4]]);
    expect(await read(org, SECOND)).toMatchObject({
      billed: [{ frozen_usd: 10, adjustments_usd: -1, current_usd: 9 }],
      restated_count: 2,
    });
  });
});

describe('as_of', () => {
  it('shows a closed month as it was known at a day’s end, each call in its own month', async () => {
    const org = await api.addOrganization();
    await ingest(api, [call(SECOND, 3), call(THIRD, 5)], org.ingestKey);
    await close(org, THIRD);
    // The closing was nine days ago; one call came six days ago, another today.
    const daysAgo = (days: bigint) => isoFromMicros(startOfDay(NOW) - days * MICROS_PER_DAY + 3_600_000_000n);
    const { superuser } = api.database;
    await superuser.query('update period_closings set closed_at = $2 where org_id = $1', [
      org.orgId,
      daysAgo(9n),
    ]);
    await ingest(api, [call(THIRD, 7)], org.ingestKey);
    await superuser.query('update events set ingested_at = $2 where org_id = $1 and cost_usd = 7', [
      org.orgId,
      daysAgo(6n),
    ]);
    await ingest(api, [call(THIRD, 11)], org.ingestKey);
    const day = (days: bigint) => daysAgo(days).slice(0, 10);
    const asOf = async (days: bigint) => (await ofMonth(org, THIRD, `&as_of=${day(days)}`)).total_cost_usd;
    expect([await asOf(9n), await asOf(7n), await asOf(6n), await asOf(1n), await asOf(0n)]).toEqual([
      5, 5, 12, 12, 23,
    ]);
    expect((await ofMonth(org, THIRD)).total_cost_usd).toBe(5);
    const known = await ofMonth(org, THIRD, `&as_of=${day(6n)}`);
    expect(known).toMatchObject({
      as_of: `${day(5n)}T00:00:00Z`,
      adjustments: { cost_usd: 7, call_count: 1, periods: [{ period: THIRD, cost_usd: 7, call_count: 1 }] },
    });
    const breakdown = await api.get(
      `/api/v1/dashboard/breakdown/provider?since=${THIRD}-01&until=${lastDay(THIRD)}&as_of=${day(6n)}`,
      org.adminKey,
    );
    expect(breakdown.body.total_cost_usd).toBe(12);
    const refused = async (query: string) => {
      const { status, body } = await api.get(`/api/v1/usage/summary?${query}`, org.adminKey);
      return [status, body.code];
    };
    const window = `from=${THIRD}-01&to=${lastDay(THIRD)}`;
    expect(await refused(`${window}&as_of=${day(10n)}`)).toEqual([400, 'as_of_unanswerable']);
    expect(await refused(`${window}&as_of=${daysAgo(6n)}`)).toEqual([400, 'as_of_unanswerable']);
    expect(await refused(`from=${THIRD}-01&as_of=${day(6n)}`)).toEqual([400, 'as_of_unanswerable']);
    expect(await refused(`${window}&as_of=yesterday`)).toEqual([400, 'invalid_parameter']);
  });

  it('of now shows everything that is known, and without a closed month changes nothing', async () => {
    const org = await api.addOrganization();
    await ingest(api, [call(LAST, 5)], org.ingestKey);
    const plain = await ofMonth(org, LAST);
    const { as_of: asked, ...now } = await ofMonth(org, LAST, '&as_of=2999-01-01');
    expect(asked).toMatch(/^20/);
    expect(now).toEqual({ ...plain, as_of: undefined });
    expect(plain.adjustments).toBeNull();
  });
});

it('months are listed from the first call on, without a gap', async () => {
  const org = await api.addOrganization();
  await ingest(api, [call(SECOND, 1)], org.ingestKey);
  const { body } = await api.get(PERIODS, org.adminKey);
  expect(body.periods.map(({ period }: { period: string }) => period)).toEqual(
    monthsBetween(SECOND, THIS).reverse(),
  );
});
