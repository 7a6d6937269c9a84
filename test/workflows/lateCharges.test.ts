import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestApi } from '../support/api.js';
import { importBill } from '../support/bills.js';
import { startWorkingApi } from '../support/workingApi.js';

/** A bill of September that has a charge of August in it, after August's own: neither is lost, neither counts twice. */

let api: TestApi;

beforeAll(async () => {
  api = await startWorkingApi();
});

afterAll(() => api?.close());

type Cells = Record<string, string>;

const csvOf = (records: readonly Cells[]) =>
  [Object.keys(records[0] ?? {}), ...records.map((record) => Object.values(record))]
    .map((cells) => cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(','))
    .join('\n');

/** A charge on a day, on the bill of a month. */
const FORMATS: Record<
  string,
  { provider: string; charge(day: string, month: string, amount: string): Cells }
> = {
  FOCUS: {
    provider: 'openai',
    charge: (day, month, amount) => ({
      BilledCost: amount,
      BillingAccountId: 'acct',
      BillingCurrency: 'USD',
      BillingPeriodStart: `${month}-01T00:00:00Z`,
      ChargeCategory: 'Usage',
      ChargeDescription: 'gpt-6-sol, input',
      ChargePeriodStart: `${day}T00:00:00Z`,
      ProviderName: 'OpenAI',
      ServiceName: 'OpenAI API',
    }),
  },
  'AWS CUR 2.0': {
    provider: 'aws_bedrock',
    charge: (day, month, amount) => ({
      bill_payer_account_id: '111122223333',
      bill_billing_period_start_date: `${month}-01T00:00:00Z`,
      line_item_line_item_type: 'Usage',
      line_item_product_code: 'AmazonBedrock',
      line_item_usage_account_id: '111122223333',
      line_item_usage_type: 'USE1-Nova2.0Lite-input-tokens',
      line_item_usage_start_date: `${day}T01:00:00Z`,
      line_item_usage_end_date: `${day}T02:00:00Z`,
      line_item_usage_amount: '1',
      line_item_unblended_cost: amount,
      line_item_currency_code: 'USD',
      pricing_unit: '1K tokens',
    }),
  },
  'Azure cost details': {
    provider: 'azure_openai',
    charge: (day, month, amount) => ({
      SubscriptionId: 'a-1',
      BillingPeriodStartDate: `${Number(month.slice(5))}/1/${month.slice(0, 4)}`,
      Date: day,
      MeterCategory: 'Foundry Models',
      MeterSubCategory: 'Azure OpenAI GPT5',
      MeterName: '5.4 mini cd Inp Gl 1M Tokens',
      UnitOfMeasure: '1M',
      Quantity: '1',
      CostInBillingCurrency: amount,
      ChargeType: 'Usage',
      BillingCurrencyCode: 'USD',
    }),
  },
  'Google billing export': {
    provider: 'google',
    charge: (day, month, amount) => ({
      billing_account_id: 'g',
      'service.description': 'Gemini API',
      'sku.description': 'Gemini 2.5 Flash GA Text Input - Predictions',
      usage_start_time: `${day} 12:00:00 UTC`,
      cost: amount,
      currency: 'USD',
      'invoice.month': month.replace('-', ''),
    }),
  },
};

describe('a later bill with a charge of an earlier month', () => {
  it.each(Object.keys(FORMATS))('%s: adds to that month and takes the place of nothing', async (name) => {
    const { provider, charge } = FORMATS[name] as (typeof FORMATS)[string];
    const org = await api.addOrganization();
    const bills = [
      [charge('2026-08-30', '2026-08', '3'), charge('2026-08-31', '2026-08', '10')],
      [charge('2026-08-31', '2026-09', '0.5'), charge('2026-09-01', '2026-09', '7')],
    ];
    for (const records of bills)
      expect(await importBill(api, csvOf(records), { provider }, org.adminKey)).toMatchObject({
        status: 'succeeded',
      });
    const totals = [];
    for (const month of ['2026-08', '2026-09']) {
      const { body } = await api.get(`/api/v1/reconciliation/statement?period=${month}`, org.adminKey);
      totals.push(body.total.billed_usage_usd);
    }
    expect(totals).toEqual([13.5, 7]);
  });
});
