import { afterAll, beforeAll, expect, it } from 'vitest';
import { listBilledCells } from '../../../db/billing/billingRows.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { readBill } from '../../support/readBill.js';
import { storeBill } from '../../support/storedBill.js';

const DAY = '2026-06-01';
const ACCOUNT = 'aaaaaaaa-0000-4000-8000-000000000001';
const BY_METER = [
  'SubscriptionId,Date,MeterCategory,MeterSubCategory,MeterName,UnitOfMeasure,Quantity,CostInBillingCurrency,ChargeType,BillingCurrencyCode',
  `${ACCOUNT},${DAY},Foundry Models,Azure OpenAI GPT5,5.4 mini Inp Gl 1M Tokens,1M,400,300,Usage,USD`,
].join('\n');
const BY_HAND = [
  'date,model,token_class,quantity,amount_usd',
  `${DAY},gpt-5.4-mini,input,400000000,300`,
].join('\n');

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

it('a stored line of the ordinary tier is known to be of it by its meter, and not by a file that may have left the tier out', async () => {
  for (const [bill, tierNamed] of [
    [BY_METER, true],
    [BY_HAND, undefined],
  ] as const) {
    const org = await api.addOrganization();
    await storeBill(api, org, 'azure_openai', await readBill(bill, { provider: 'azure_openai' }));
    const [cell, more] = await listBilledCells(org.orgDb, { provider: 'azure_openai', day: DAY });
    expect(more).toBeUndefined();
    expect(cell).toMatchObject({ model: 'gpt-5.4-mini', serviceTier: 'standard' });
    expect(cell?.tierNamed).toBe(tierNamed);
  }
});
