import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestApi } from '../support/api.js';
import {
  cents,
  centsOf,
  daysOf,
  imported,
  read,
  runOver,
  sendCalls,
  sum,
  UNITS_PER_DOLLAR,
} from '../support/months.js';
import { startWorkingApi } from '../support/workingApi.js';

/**
 * Months with unusual edges, days or currencies, from the upload of the bill to the displayed results. The expected
 * amounts are computed here: in whole millionths of a cent, with the runtime's table of time zones.
 */

/** Generous, because the runs compete with everything else on the machine. */
const LIMIT_MS = 240_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
let api: TestApi;

beforeAll(async () => {
  api = await startWorkingApi();
});

afterAll(() => api?.close());

describe('a month in euros', () => {
  const account = 'aaaaaaaa-0000-4000-8000-000000000001';
  const month = '2026-06';
  const DAYS = 30;
  const CALLS = 20;
  /** Ten-thousandths of a dollar for a euro. */
  const RATE = 10_842n;
  /** Dollars for a million tokens ×100. */
  const PRICE_CENTS = 75n;
  const day = (at: number) => `${month}-${String(at + 1).padStart(2, '0')}`;
  const tokensOf = (at: number, n: number) => 150_000 + at * 1_009 + n * 137;
  const tokensOfDay = (at: number) => sum(Array.from({ length: CALLS }, (_, n) => BigInt(tokensOf(at, n))));
  /** Tokens × cents for a million = millionths of a cent. */
  const rightOf = (at: number) => tokensOfDay(at) * PRICE_CENTS;
  /** On the eleventh the meter was charged half as much again. */
  const WRONG = 10;
  const dollarsOf = (at: number) => (at === WRONG ? (rightOf(at) * 3n) / 2n : rightOf(at));
  /** Millionths of a euro cent, as a bill with eight decimals has them. */
  const eurosOf = (units: bigint) => (units * 10_000n + RATE / 2n) / RATE;
  const back = (euros: bigint) => (euros * RATE + 5_000n) / 10_000n;
  const decimal = (units: bigint) => {
    const text = String(units < 0n ? -units : units).padStart(9, '0');
    return `${units < 0n ? '-' : ''}${text.slice(0, -8)}.${text.slice(-8)}`;
  };
  const TAX = 12_345_678n;
  const CREDIT = -500_000_001n;

  const bill = () => {
    const header =
      'SubscriptionId,Date,MeterCategory,MeterSubCategory,MeterName,UnitOfMeasure,Quantity,CostInBillingCurrency,ChargeType,BillingCurrencyCode';
    const line = (at: number, meter: string, quantity: string, euros: bigint, type: string) =>
      `${account},${day(at)},Foundry Models,Azure OpenAI GPT5,${meter},1M,${quantity},${decimal(euros)},${type},EUR`;
    const usage = Array.from({ length: DAYS }, (_, at) =>
      line(at, '5.4 mini Inp Gl 1M Tokens', decimal(tokensOfDay(at) * 100n), eurosOf(dollarsOf(at)), 'Usage'),
    );
    return [
      header,
      ...usage,
      line(29, '5.4 mini Inp Gl 1M Tokens', '0', TAX, 'Tax'),
      line(14, '5.4 mini Inp Gl 1M Tokens', '0', CREDIT, 'Credit'),
    ].join('\n');
  };

  it(
    'is converted by the rate of the request: statement, summary and gaps to the cent',
    async () => {
      const org = await api.addOrganization();
      const calls = Array.from({ length: DAYS }, (_, at) =>
        Array.from({ length: CALLS }, (_, n) => ({
          atMs: Date.parse(`${day(at)}T00:30:00Z`) + n * HOUR_MS,
          tokens: tokensOf(at, n),
        })),
      ).flat();
      await sendCalls(api, org, { provider: 'azure_openai', model: 'gpt-5.4-mini', account }, calls);
      const done = await imported(api, org, bill(), { provider: 'azure_openai', fx_rate: '1.0842' });
      expect(done.unconverted).toEqual([]);
      const run = await runOver(api, org, `${month}-01`, '2026-07-01');
      expect(run.result).toMatchObject({ provider_days: 30, flagged: 1 });

      const usage = sum(Array.from({ length: DAYS }, (_, at) => back(eurosOf(dollarsOf(at)))));
      const [tax, credit] = [back(TAX), -((-CREDIT * RATE + 5_000n) / 10_000n)];
      const { total, status, coverage } = await read(api, org, `statement?period=${month}`);
      expect({ status, complete: coverage.complete }).toEqual({ status: 'final', complete: true });
      expect({
        usage: centsOf(total.billed_usage_usd),
        tax: centsOf(total.tax_usd),
        credits: centsOf(total.credits_usd),
        invoice: centsOf(total.invoice_total_usd),
      }).toEqual({
        usage: cents(usage),
        tax: cents(tax),
        credits: cents(credit),
        invoice: cents(usage + tax + credit),
      });
      const excess = dollarsOf(WRONG) - rightOf(WRONG);
      expect(centsOf(total.rate_difference_usd)).toBe(cents(excess));
      const days = await daysOf(api, org, month, day(DAYS - 1));
      expect(
        days.map((one) => [
          one.usage_start.slice(0, 10),
          centsOf(one.provider_cost_usd),
          centsOf(one.delta_usd),
        ]),
      ).toEqual(
        Array.from({ length: DAYS }, (_, at) => [
          day(at),
          cents(dollarsOf(at)),
          at === WRONG ? cents(excess) : '0.00',
        ]),
      );
      const summary = await read(api, org, 'summary');
      expect({
        period: summary.period,
        billed: centsOf(summary.matched_usd + summary.unmatched_usd),
        unmatched: centsOf(summary.unmatched_usd),
      }).toEqual({ period: month, billed: cents(usage), unmatched: cents(excess) });
    },
    LIMIT_MS,
  );
});

const LOS_ANGELES = new Intl.DateTimeFormat('en-CA', { timeZone: 'America/Los_Angeles' });
/** The day in Los Angeles, by the runtime's table of time zones. */
const pacificDay = (atMs: number) => LOS_ANGELES.format(new Date(atMs));

describe('a month of Pacific days', () => {
  const account = '012345-6789AB-CDEF01';
  const RATE_CENTS = 30n;
  const tokensOf = (atMs: number) => (1_000 + ((atMs / HOUR_MS) % 997)) * 1_000;
  const unitsOf = (atMs: number) => BigInt(tokensOf(atMs)) * RATE_CENTS;
  const stamp = (atMs: number) => `${new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  /** A second charge of this size falls in the hour of the change. */
  const EXTRA = 3n * UNITS_PER_DOLLAR + 17_000_000n;

  const line = (atMs: number, units: bigint, month: string, more: object = {}) =>
    JSON.stringify({
      billing_account_id: account,
      service: { description: 'Gemini API' },
      sku: { description: 'Generate content input token count gemini 2.5 flash text' },
      usage_start_time: stamp(atMs),
      usage_end_time: stamp(atMs + HOUR_MS),
      project: { id: 'shop' },
      cost: Number(units) / 1e8,
      cost_type: 'regular',
      currency: 'USD',
      usage: { amount: tokensOf(atMs), unit: 'count' },
      invoice: { month: month.replace('-', '') },
      ...more,
    });

  it.each([
    { month: '2026-03', days: 31, changed: '2026-03-08', hours: 23, atChange: '2026-03-08T10:00:00Z' },
    { month: '2025-11', days: 30, changed: '2025-11-02', hours: 25, atChange: '2025-11-02T09:00:00Z' },
    { month: '2024-02', days: 29, changed: '2024-02-29', hours: 24, atChange: '2024-03-01T07:00:00Z' },
  ])(
    '$month: each day has the hours that it had, $changed $hours, to the cent',
    async (given) => {
      const { month, days, changed, atChange } = given;
      const org = await api.addOrganization();
      const around = Array.from(
        { length: (days + 4) * 24 },
        (_, at) => Date.parse(`${month}-01T00:00:00Z`) - 2 * DAY_MS + at * HOUR_MS,
      );
      const ofMonth = around.filter((atMs) => pacificDay(atMs).startsWith(month));
      const hoursOf = (day: string) => ofMonth.filter((atMs) => pacificDay(atMs) === day);
      expect(hoursOf(changed)).toHaveLength(given.hours);
      // Calls go on before and after the month that the bill is of.
      await sendCalls(
        api,
        org,
        { provider: 'google', model: 'gemini-2.5-flash' },
        around.map((atMs) => ({ atMs: atMs + HOUR_MS / 2, tokens: tokensOf(atMs) })),
      );
      const changeMs = Date.parse(atChange);
      const bill = [
        ...ofMonth.map((atMs) => line(atMs, unitsOf(atMs) + (atMs === changeMs ? EXTRA : 0n), month)),
        line(ofMonth.at(-1) as number, 1_234_567n, month, { cost_type: 'tax', usage: {} }),
      ];
      await imported(api, org, bill.join('\n'), { provider: 'google' });
      const lastDay = `${month}-${days}`;
      const run = await runOver(
        api,
        org,
        `${month}-01`,
        new Date(Date.parse(lastDay) + DAY_MS).toISOString().slice(0, 10),
      );
      expect(run.result).toMatchObject({ provider_days: days, flagged: 1 });

      const usage = sum(ofMonth.map(unitsOf)) + EXTRA;
      const { total, status, coverage } = await read(api, org, `statement?period=${month}`);
      expect({ status, missing: coverage.missing }).toEqual({ status: 'final', missing: [] });
      expect([total.billed_usage_usd, total.tax_usd, total.invoice_total_usd].map(centsOf)).toEqual(
        [usage, 1_234_567n, usage + 1_234_567n].map(cents),
      );
      const found = await daysOf(api, org, month, lastDay);
      expect(
        found.map((one) => [
          one.usage_start.slice(0, 10),
          centsOf(one.provider_cost_usd),
          centsOf(one.our_cost_usd),
        ]),
      ).toEqual(
        Array.from({ length: days }, (_, at) => {
          const day = `${month}-${String(at + 1).padStart(2, '0')}`;
          const seen = sum(hoursOf(day).map(unitsOf));
          return [day, cents(day === changed ? seen + EXTRA : seen), cents(seen)];
        }),
      );
      const summary = await read(api, org, 'summary');
      expect([summary.period, ...[summary.matched_usd, summary.unmatched_usd].map(centsOf)]).toEqual([
        month,
        cents(usage - EXTRA),
        cents(EXTRA),
      ]);
    },
    LIMIT_MS,
  );
});

describe('a leap day', () => {
  const account = '111122223333';
  /** Cents for a million tokens. */
  const RATE_CENTS = 33n;
  const tokensOf = (atMs: number) => (2_000 + ((atMs / HOUR_MS) % 991)) * 1_000;
  const unitsOf = (atMs: number) => BigInt(tokensOf(atMs)) * RATE_CENTS;
  /** Hours of 28 and 29 February and 1 March, in UTC. */
  const hours = Array.from({ length: 72 }, (_, at) => Date.parse('2024-02-28T00:00:00Z') + at * HOUR_MS);
  const EXTRA = 271_000_000n;
  const EXTRA_AT = Date.parse('2024-02-29T23:00:00Z');
  const dayOf = (atMs: number) => new Date(atMs).toISOString().slice(0, 10);
  const decimal = (units: bigint) => {
    const text = String(units).padStart(9, '0');
    return `${text.slice(0, -8)}.${text.slice(-8)}`;
  };

  const reportOf = (month: string) => {
    const header =
      'bill_payer_account_id,bill_billing_period_start_date,bill_invoice_id,line_item_usage_account_id,line_item_line_item_type,line_item_usage_start_date,line_item_usage_end_date,line_item_product_code,line_item_usage_type,line_item_usage_amount,line_item_currency_code,line_item_unblended_cost,pricing_unit';
    const lines = hours
      .filter((atMs) => dayOf(atMs).startsWith(month))
      .map((atMs) => {
        const [start, end] = [atMs, atMs + HOUR_MS].map((at) => new Date(at).toISOString());
        const cost = decimal(unitsOf(atMs) + (atMs === EXTRA_AT ? EXTRA : 0n));
        return `${account},${month}-01T00:00:00.000Z,IN${month},${account},Usage,${start},${end},AmazonBedrock,USE1-Nova2.0Lite-input-tokens,${tokensOf(atMs) / 1_000},USD,${cost},1K tokens`;
      });
    return [header, ...lines].join('\n');
  };

  it(
    'belongs to February, whole, and its last hour to no other day',
    async () => {
      const org = await api.addOrganization();
      await sendCalls(
        api,
        org,
        { provider: 'aws_bedrock', model: 'us.amazon.nova-2-lite-v1:0', account },
        hours.map((atMs) => ({ atMs: atMs + HOUR_MS / 2, tokens: tokensOf(atMs) })),
      );
      for (const month of ['2024-02', '2024-03'])
        await imported(api, org, reportOf(month), { provider: 'aws_bedrock' });
      const run = await runOver(api, org, '2024-02-01', '2024-04-01');
      expect(run.result).toMatchObject({ provider_days: 3, flagged: 1 });
      const seenOn = (day: string) => sum(hours.filter((atMs) => dayOf(atMs) === day).map(unitsOf));
      const found = await daysOf(api, org, '2024-02', '2024-03-31');
      const amounts = found.map((one) => [one.provider_cost_usd, one.our_cost_usd].map(centsOf));
      expect(amounts).toEqual([
        [cents(seenOn('2024-02-28')), cents(seenOn('2024-02-28'))],
        [cents(seenOn('2024-02-29') + EXTRA), cents(seenOn('2024-02-29'))],
        [cents(seenOn('2024-03-01')), cents(seenOn('2024-03-01'))],
      ]);
      const february = await read(api, org, 'statement?period=2024-02');
      const march = await read(api, org, 'statement?period=2024-03');
      expect([february, march].map(({ total }) => centsOf(total.invoice_total_usd))).toEqual([
        cents(seenOn('2024-02-28') + seenOn('2024-02-29') + EXTRA),
        cents(seenOn('2024-03-01')),
      ]);
      // February's last day has a bill; the missing days precede the account's first bill.
      expect(february.coverage.missing).toMatchObject([{ first_day: '2024-02-01', last_day: '2024-02-27' }]);
      const { body } = await api.get(
        '/api/v1/reconciliation/audit?provider=aws_bedrock&from=2024-02-29&to=2024-02-29',
        org.adminKey,
      );
      expect(centsOf(body.totals.difference_usd)).toBe(cents(EXTRA));
    },
    LIMIT_MS,
  );
});
