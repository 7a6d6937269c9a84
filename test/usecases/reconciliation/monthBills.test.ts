import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listBilledTotals } from '../../../db/billing/billingRows.js';
import { loadPriceBook } from '../../../db/pricing/prices.js';
import { decimalFromPico } from '../../../domain/money.js';
import { DEFAULT_WEIGHTS } from '../../../domain/reconciliation/weights/weightSet.js';
import { reconcileBills } from '../../../usecases/reconciliation/reconcileBills.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { gapRunsOf } from '../../support/incrementalRuns.js';
import { readBill } from '../../support/readBill.js';
import { storeBill } from '../../support/storedBill.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});

afterAll(async () => {
  await api?.close();
});

const INVOICE = JSON.stringify({
  invoices: [
    {
      billingCycle: { year: 2026, month: 9 },
      lines: [
        { description: 'grok-4', unitType: 'Prompt text tokens', amount: '31000' },
        { description: 'grok-4', unitType: 'Completion text tokens', amount: '9000' },
      ],
      vatCost: '8000',
    },
  ],
});
const DAILY =
  'date,model,token_class,quantity,amount_usd\n2026-09-03,grok-4,input,1000000,3\n2026-09-20,grok-4,output,1000000,15\n';

async function billed(org: TestOrganization) {
  const totals = await listBilledTotals(org.orgDb, {
    provider: 'xai',
    fromDay: '2026-09-01',
    toDay: '2026-10-01',
  });
  return totals
    .map(({ day, chargeCategory, amountPico }) => `${day} ${chargeCategory} ${decimalFromPico(amountPico)}`)
    .sort();
}

async function buckets(org: TestOrganization) {
  const book = await loadPriceBook(api.database.database);
  const request = {
    provider: 'xai' as const,
    fromDay: null,
    toDay: null,
    nowMicros: BigInt(Date.parse('2026-10-20T12:00:00Z')) * 1_000n,
  };
  return (await reconcileBills(org.orgDb, request, { agreed: book, list: book.list }, DEFAULT_WEIGHTS))
    .buckets;
}

describe('a bill that states a month but no days', () => {
  it('enters the month’s statement and is compared with no day', async () => {
    const org = await api.addOrganization();
    await storeBill(api, org, 'xai', await readBill(INVOICE, { provider: 'xai' }));
    expect(await billed(org)).toEqual(['2026-09-01 tax 80', '2026-09-01 usage 400']);
    expect(await buckets(org)).toEqual([]);
    const runs = await gapRunsOf(api);
    expect((await runs.run(org)).units).toBe(0);
  });

  it('no longer counts once the days themselves are billed, which would count the bill twice', async () => {
    const org = await api.addOrganization();
    await storeBill(api, org, 'xai', await readBill(INVOICE, { provider: 'xai' }));
    await storeBill(api, org, 'xai', await readBill(DAILY, { provider: 'xai' }));
    // The days contain no tax, so the invoice's own still counts.
    expect(await billed(org)).toEqual(['2026-09-01 tax 80', '2026-09-03 usage 3', '2026-09-20 usage 15']);
    expect((await buckets(org)).map(({ providerCostPico }) => decimalFromPico(providerCostPico))).toEqual([
      '3',
      '15',
    ]);
  });
});
