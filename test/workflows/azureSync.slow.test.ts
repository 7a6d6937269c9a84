import { afterEach, describe, expect, it } from 'vitest';
import { listSourceDifferences } from '../../db/billing/billCoverage.js';
import { listBilledTotals } from '../../db/billing/billingRows.js';
import { microsFromDate } from '../../domain/period.js';
import { type AzureCharge, type AzureFake, startAzureBilling } from '../fakes/billing/azureBilling.js';
import type { TestApi } from '../support/api.js';
import { importBill, pollToEnd } from '../support/bills.js';
import { testConnectors } from '../support/connectors.js';
import { CONNECTIONS, daysAgo, FAST } from '../support/fetchedBills.js';
import { startWorkingApi } from '../support/workingApi.js';

const SUBSCRIPTION = 'aaaaaaaa-0000-4000-8000-000000000001';
const SCOPE = `/subscriptions/${SUBSCRIPTION}`;
const CREDENTIALS = {
  tenant_id: 'bbbbbbbb-0000-4000-8000-000000000002',
  client_id: 'trueup',
  client_secret: 'S3cret~OfTheApplication.0123456789',
};
const RESOURCE = `${SCOPE}/resourceGroups/rg/providers/Microsoft.CognitiveServices/accounts/chat`;
const LIMIT_MS = 180_000;

let api: TestApi;
let azure: AzureFake;
afterEach(async () => {
  await api?.close();
  await azure?.close();
});

/** Charges of a past day; its cost in cents is the number of days. */
const charges = (days: number): AzureCharge[] =>
  Array.from({ length: days }, (_, ago) => ({
    day: daysAgo(ago + 1),
    cost: `${100 + ago}.25`,
    quantity: `${40 + ago}`,
    dimensions: {
      Meter: '5.4 inp Gl 1M Tokens',
      MeterCategory: 'Foundry Models',
      ResourceId: RESOURCE,
      SubscriptionId: SUBSCRIPTION,
    },
  }));

async function start(currency = 'USD', days = 70): Promise<void> {
  const started = Math.floor(Date.now() / 1_000);
  azure = await startAzureBilling({
    truth: {
      tenantId: CREDENTIALS.tenant_id,
      clientId: CREDENTIALS.client_id,
      clientSecret: CREDENTIALS.client_secret,
      scopes: { [SCOPE]: charges(days) },
      currency,
    },
    nowSeconds: () => started,
    pageRows: 20,
  });
  const nowMicros = () => microsFromDate(new Date());
  const connectors = testConnectors({ azureManagement: azure.origin, azureLogin: azure.origin }, nowMicros);
  api = await startWorkingApi({ connectors, syncPace: FAST, nowMicros });
}

const connect = (more: object = {}) =>
  api.post(CONNECTIONS, {
    provider: 'azure_openai',
    credentials: CREDENTIALS,
    settings: { scope: SCOPE },
    ...more,
  });

async function patch(path: string, body: object) {
  const response = await fetch(api.baseUrl + path, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${api.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as { sync: { status_url: string } } };
}

async function totals() {
  const rows = await listBilledTotals(api.orgDb, {
    provider: 'azure_openai',
    fromDay: '2000-01-01',
    toDay: '2100-01-01',
  });
  return rows.filter(({ amountPico }) => amountPico !== 0n);
}

describe('a connection to Azure', () => {
  it('fetches ninety days by month and page, and each day counts to the last digit', async () => {
    await start();
    const { status, body } = await connect();
    expect(body).toMatchObject({ provider_account_id: SUBSCRIPTION, settings: { scope: SCOPE } });
    expect(status).toBe(201);
    expect(JSON.stringify(body)).not.toContain(CREDENTIALS.client_secret);
    expect(await pollToEnd(api, body.sync.status_url, LIMIT_MS)).toMatchObject({ status: 'succeeded' });
    expect((await totals()).map(({ day, accountId, amountPico }) => [day, accountId, amountPico])).toEqual(
      charges(70)
        .map(({ day, cost }) => [day, SUBSCRIPTION, BigInt(cost.replace('.', '')) * 10n ** 10n])
        .reverse(),
    );
    expect(azure.requests.filter(({ report }) => report === 'token').length).toBeLessThanOrEqual(2);
  }, 300_000);

  it('counts a month once of which the export is there too, and shows where they differ', async () => {
    await start('USD', 10);
    const { body } = await connect();
    await pollToEnd(api, body.sync.status_url, LIMIT_MS);
    const csv = [
      'SubscriptionId,Date,MeterCategory,MeterSubCategory,MeterName,UnitOfMeasure,Quantity,CostInBillingCurrency,ChargeType,BillingCurrencyCode,ResourceId,InvoiceId',
      ...charges(10).map(({ day, cost, quantity }, ago) =>
        [
          SUBSCRIPTION,
          day,
          'Foundry Models',
          'Azure OpenAI GPT5',
          '5.4 inp Gl 1M Tokens',
          '1M',
          quantity,
          ago === 3 ? '999' : cost,
          'Usage',
          'USD',
          RESOURCE,
          'G1',
        ].join(','),
      ),
    ].join('\n');
    const imported = await importBill(api, csv, { provider: 'azure_openai' });
    expect(imported).toMatchObject({ status: 'succeeded', format: 'azure_cost_details', rows: 10 });
    const counted = await totals();
    expect(counted).toHaveLength(10);
    // The export is final, so its word counts; the query's is the cross-check.
    expect(counted.find(({ day }) => day === daysAgo(4))?.amountPico).toBe(999n * 10n ** 12n);
    const differences = await listSourceDifferences(api.orgDb, {
      provider: 'azure_openai',
      fromDay: '2000-01-01',
      toDay: '2100-01-01',
      limit: 100,
    });
    expect(differences.map(({ day, countedKind, otherKind }) => [day, countedKind, otherKind])).toEqual([
      [daysAgo(4), 'file', 'api'],
    ]);
  }, 300_000);

  it('converts by the rate of its settings, and keeps another currency without one', async () => {
    await start('EUR', 3);
    const { body } = await connect({ settings: { scope: SCOPE, fx_rate: '2' } });
    expect(body.settings).toMatchObject({ scope: SCOPE, fx_rate: '2' });
    await pollToEnd(api, body.sync.status_url, LIMIT_MS);
    expect((await totals()).map(({ amountPico }) => amountPico)).toEqual(
      [20_450n, 20_250n, 20_050n].map((cents) => cents * 10n ** 10n),
    );
    const changed = await patch(`${CONNECTIONS}/${body.id}`, { settings: { scope: SCOPE } });
    expect(changed.status).toBe(200);
    await pollToEnd(api, changed.body.sync.status_url, LIMIT_MS);
    expect(await totals()).toEqual([]);
    const { rows } = await api.database.superuser.query(
      `select distinct d.unconverted_rows::int as n from billing_days d where d.org_id = $1 and d.superseded_at is null and d.charge_category = 'usage' and d.row_count > 0`,
      [api.orgId],
    );
    expect(rows).toEqual([{ n: 1 }]);
  }, 300_000);

  it('converts again every day whose rate has changed, and none that has one for its own month', async () => {
    await start('EUR', 70);
    const { body } = await connect({ settings: { scope: SCOPE, fx_rate: '2' } });
    await pollToEnd(api, body.sync.status_url, LIMIT_MS);
    const month = daysAgo(60).slice(0, 7);
    const expected = (ofMonth: bigint, others: bigint) =>
      charges(70)
        .map(({ day }, ago) => [
          day,
          BigInt(10_025 + ago * 100) * 10n ** 10n * (day.startsWith(month) ? ofMonth : others),
        ])
        .sort();
    const told = async () => (await totals()).map(({ day, amountPico }) => [day, amountPico]).sort();
    expect(await told()).toEqual(expected(2n, 2n));
    const changedTo = async (settings: object) => {
      const changed = await patch(`${CONNECTIONS}/${body.id}`, { settings: { scope: SCOPE, ...settings } });
      expect(changed.status).toBe(200);
      return pollToEnd(api, changed.body.sync.status_url, LIMIT_MS);
    };
    // The provider repeats its answer, which restates nothing.
    const given = await changedTo({ fx_rate: '2', fx_rates: { [month]: '3' } });
    expect(given).toMatchObject({ status: 'succeeded', result: { restated: [], missing: [] } });
    expect(await told()).toEqual(expected(3n, 2n));
    await changedTo({ fx_rate: '4.0', fx_rates: { [month]: '3' } });
    expect(await told()).toEqual(expected(3n, 4n));
    // The same rate in other digits is equal: only the days that may still change are fetched.
    const queries = azure.requests.length;
    const again = await api.post(`${CONNECTIONS}/${body.id}/sync`, {});
    expect(await pollToEnd(api, again.body.status_url, LIMIT_MS)).toMatchObject({
      status: 'succeeded',
      result: { changed_days: 0 },
    });
    const asked = azure.requests.slice(queries).filter(({ report }) => report === 'query');
    expect(
      asked.every(
        ({ body: query }) => (query as { timePeriod: { from: string } }).timePeriod.from >= daysAgo(36),
      ),
    ).toBe(true);
    const refused = await patch(`${CONNECTIONS}/${body.id}`, {
      settings: { scope: SCOPE, fx_rates: { '2026-13': '1' } },
    });
    expect(refused.status).toBe(400);
  }, 300_000);

  it('is refused with what to change: secret, role, scope', async () => {
    await start();
    const fieldOf = (answer: { body: { errors: { field: string; message: string }[] } }) =>
      answer.body.errors[0];
    const wrongSecret = await connect({ credentials: { ...CREDENTIALS, client_secret: 'wrong' } });
    expect(wrongSecret.status).toBe(400);
    expect(fieldOf(wrongSecret)?.message).toContain('the client_secret is wrong');
    const noRole = await connect({
      settings: { scope: '/subscriptions/cccccccc-0000-4000-8000-000000000003' },
    });
    expect(fieldOf(noRole)?.message).toContain('Cost Management Reader');
    expect(fieldOf(await connect({ settings: {} }))).toMatchObject({ field: 'settings.scope' });
    expect(fieldOf(await connect({ settings: { scope: '/subscriptions/x' } }))).toMatchObject({
      field: 'settings.scope',
    });
    expect(fieldOf(await connect({ settings: { scope: { projects: ['p'] } } }))).toMatchObject({
      field: 'settings.scope',
    });
    const { body } = await connect();
    const other = await patch(`${CONNECTIONS}/${body.id}`, {
      settings: { scope: '/subscriptions/cccccccc-0000-4000-8000-000000000003' },
    });
    expect(other).toMatchObject({ status: 409, body: { code: 'account_mismatch' } });
  }, 300_000);
});
