import { afterEach, describe, expect, it } from 'vitest';
import { AzureOpenaiConnector } from '../../../adapters/billing/azureOpenaiConnector.js';
import type { FetchedPage, ProviderAccess, ReportChunk } from '../../../adapters/billing/connector.js';
import { microsOfDay } from '../../../domain/period.js';
import {
  type AzureCharge,
  type AzureFake,
  type AzureFakeOptions,
  type AzureTruth,
  startAzureBilling,
} from '../../fakes/billing/azureBilling.js';
import { readBill } from '../../support/readBill.js';
import { fetchChunk } from './support/connections.js';

const SUBSCRIPTION = 'aaaaaaaa-0000-4000-8000-000000000001';
const SCOPE = `/subscriptions/${SUBSCRIPTION}`;
const BILLING_ACCOUNT = '/providers/Microsoft.Billing/billingAccounts/1234567';
const TENANT = 'bbbbbbbb-0000-4000-8000-000000000002';
const SECRET = 'S3cret~OfTheApplication.0123456789';
const CREDENTIALS = { tenant_id: TENANT, client_id: 'trueup', client_secret: SECRET };
const resource = (name: string) =>
  `${SCOPE}/resourceGroups/RG-Chat/providers/Microsoft.CognitiveServices/accounts/${name}`;

const aCharge = (over: Partial<AzureCharge> = {}, dimensions: Record<string, string> = {}): AzureCharge => ({
  day: '2026-09-01',
  cost: '4.25',
  quantity: '1.7',
  ...over,
  dimensions: {
    Meter: '5.4 inp Gl 1M Tokens',
    MeterCategory: 'Foundry Models',
    ResourceId: resource('Chat'),
    SubscriptionId: SUBSCRIPTION,
    ...dimensions,
  },
});

const CHARGES: readonly AzureCharge[] = [
  aCharge(),
  aCharge({ cost: '0.000001', quantity: '0.0000004' }),
  aCharge({ cost: '30', quantity: '2' }, { Meter: '5.4 opt Gl 1M Tokens', ResourceId: resource('Batch') }),
  aCharge(
    { day: '2026-09-30', cost: '8.8', quantity: '1000' },
    { Meter: 'gpt 4.1 Outp Data Zone Tokens', MeterCategory: 'Cognitive Services' },
  ),
  aCharge({ cost: '99' }, { MeterCategory: 'Storage', Meter: 'Hot LRS Data Stored' }),
  aCharge({ day: '2026-10-01' }),
];

const truthOf = (charges: readonly AzureCharge[] = CHARGES, currency = 'USD'): AzureTruth => ({
  tenantId: TENANT,
  clientId: 'trueup',
  clientSecret: SECRET,
  scopes: { [SCOPE]: charges, [BILLING_ACCOUNT.toLowerCase()]: charges },
  currency,
});

const NOW = microsOfDay('2026-10-12');
const SEPTEMBER: ReportChunk = {
  report: 'query',
  feed: 'cost',
  bucketWidth: '1d',
  startMicros: microsOfDay('2026-09-01'),
  endMicros: microsOfDay('2026-10-01'),
};

const running: AzureFake[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((fake) => fake.close()));
});

let nowMicros = NOW;

async function start(options: Partial<AzureFakeOptions> = {}, deadlineMs = 60_000) {
  nowMicros = NOW;
  const nowSeconds = () => Number(nowMicros / 1_000_000n);
  const fake = await startAzureBilling({ truth: truthOf(), nowSeconds, ...options });
  running.push(fake);
  const connector = new AzureOpenaiConnector({
    baseUrl: fake.origin,
    loginBaseUrl: fake.origin,
    nowMicros: () => nowMicros,
    nowMs: () => performance.now(),
    requestGapMs: 0,
    deadlineMs,
  });
  return { fake, connector };
}

const access = (
  resourceScope = SCOPE,
  credentials: Record<string, string> = CREDENTIALS,
): ProviderAccess => ({
  credentials,
  settings: { scope: { resource: resourceScope } },
  signal: new AbortController().signal,
});

const fetchAll = (connector: AzureOpenaiConnector, at = access(), chunk = SEPTEMBER) =>
  fetchChunk(connector, at, chunk);

const AZURE = { provider: 'azure_openai', format: 'azure_query_pages', mayBeEmpty: true } as const;
const rowsOf = (pages: readonly FetchedPage[]) =>
  readBill(Buffer.concat(pages.flatMap(({ body }) => [body, Buffer.from('\n')])), AZURE);

describe('Azure is asked', () => {
  it('with a token of the application, which is asked for once while it holds', async () => {
    const { fake, connector } = await start({ tokenSeconds: 3_600 });
    await fetchAll(connector);
    await fetchAll(connector);
    expect(fake.requests.map(({ report }) => report)).toEqual(['token', 'query', 'query']);
    nowMicros += 3_400_000_000n;
    await fetchAll(connector);
    expect(fake.requests.filter(({ report }) => report === 'token')).toHaveLength(2);
  });

  it('again with another token where one is no longer taken', async () => {
    const { fake, connector } = await start();
    await fetchAll(connector);
    fake.revokeTokens();
    expect(await fetchAll(connector)).toHaveLength(1);
    expect(fake.requests.map(({ report, status }) => `${report} ${status}`)).toEqual([
      'token 200',
      'query 200',
      'query 401',
      'token 200',
      'query 200',
    ]);
  });

  it('not a third time where a new token is refused', async () => {
    const { fake, connector } = await start({ tokenSeconds: 1 });
    nowMicros += 5_000_000n;
    const late = fake.requests.length;
    fake.faults.inject({ kind: 'denied', report: 'query' });
    await expect(fetchAll(connector)).rejects.toMatchObject({ code: 'credentials_refused' });
    expect(fake.requests.slice(late).map(({ report }) => report)).toEqual(['token', 'query']);
  });

  it('for model services alone, by meter and resource, a month and at most 31 days at once', async () => {
    const { fake, connector } = await start();
    const plan = connector.plan({ fromDay: '2026-07-14', toDay: '2026-10-13' }, NOW);
    expect(plan).toHaveLength(3);
    for (const chunk of plan) await fetchAll(connector, access(), chunk);
    const bodies = fake.requests.flatMap(({ report, body }) => (report === 'query' ? [body] : []));
    expect(bodies[0]).toMatchObject({
      type: 'ActualCost',
      timePeriod: { from: '2026-09-12T00:00:00Z', to: '2026-10-12T23:59:59Z' },
      dataset: {
        grouping: [{ name: 'Meter' }, { name: 'ResourceId' }],
        filter: { dimensions: { name: 'MeterCategory', values: ['Cognitive Services', 'Foundry Models'] } },
      },
    });
    expect(fake.requests.every(({ status }) => status === 200)).toBe(true);
  });

  it('by subscription where a billing account is read: resources appear within a subscription only', async () => {
    const { fake, connector } = await start();
    const { rows } = await rowsOf(await fetchAll(connector, access(BILLING_ACCOUNT)));
    expect(fake.requests.at(-1)?.body).toMatchObject({
      dataset: { grouping: [{ name: 'Meter' }, { name: 'SubscriptionId' }] },
    });
    expect(rows[0]).toMatchObject({ account: null, project: SUBSCRIPTION });
  });
});

describe('an answer of Azure', () => {
  it('is read by the names of its columns, sums that it made itself included', async () => {
    const { connector } = await start();
    const pages = await fetchAll(connector);
    const { rows, summary } = await rowsOf(pages);
    expect(summary.format).toBe('azure_query_pages');
    expect(
      rows.map(({ day, model, tokenClass, amountPico, quantity, project, region, account }) => ({
        day,
        model,
        tokenClass,
        amountPico,
        quantity,
        project,
        region,
        account,
      })),
    ).toEqual([
      {
        day: '2026-09-01',
        model: 'gpt-5.4',
        tokenClass: 'input',
        amountPico: 4_250_001_000_000n,
        quantity: 17_000_004n * 10n ** 11n,
        project: 'rg-chat/chat',
        region: null,
        account: SUBSCRIPTION,
      },
      {
        day: '2026-09-01',
        model: 'gpt-5.4',
        tokenClass: 'output',
        amountPico: 30_000_000_000_000n,
        quantity: 2_000_000n * 10n ** 12n,
        project: 'rg-chat/batch',
        region: null,
        account: SUBSCRIPTION,
      },
      {
        day: '2026-09-30',
        model: 'gpt-4.1',
        tokenClass: 'output',
        amountPico: 8_800_000_000_000n,
        quantity: 1_000_000n * 10n ** 12n,
        project: 'rg-chat/chat',
        region: 'data_zone',
        account: SUBSCRIPTION,
      },
    ]);
    expect(pages[0]?.buckets).toEqual([
      { startMicros: SEPTEMBER.startMicros, endMicros: SEPTEMBER.endMicros },
    ]);
  });

  it('in pages is the same as in one: the link is followed by its parameters, never by its address', async () => {
    const whole = await start();
    const expected = await rowsOf(await fetchAll(whole.connector));
    const paged = await start({ pageRows: 1 });
    const pages = await fetchAll(paged.connector);
    expect(pages.map(({ buckets }) => buckets.length)).toEqual([0, 0, 1]);
    expect((await rowsOf(pages)).rows).toEqual(expected.rows);
    expect(paged.fake.requests.filter(({ report }) => report === 'query')).toHaveLength(3);
  });

  it('that counts tokens and not units of the meter is recognized by rates that no model has', async () => {
    const { rows } = await readBill(
      JSON.stringify({
        id: 'subscriptions/…/query/1',
        properties: {
          nextLink: null,
          columns: ['Cost', 'UsageQuantity', 'UsageDate', 'Meter', 'ResourceId', 'Currency'].map((name) => ({
            name,
          })),
          rows: [
            [
              10461.12,
              1700000000,
              20260901,
              '5.6 sol ShortCo Inp Std Gl 1M Tokens',
              '/subscriptions/...',
              'EUR',
            ],
          ],
        },
      }),
      { provider: 'azure_openai' },
    );
    expect(rows).toEqual([
      expect.objectContaining({
        day: '2026-09-01',
        model: 'gpt-5.6-sol',
        longContext: false,
        quantity: 1_700_000_000n * 10n ** 12n,
        amountPico: null,
        currency: 'EUR',
        originalAmount: 10_461_120_000_000_000n,
      }),
    ]);
  });

  it('without rows marks its days as billing nothing', async () => {
    const { connector } = await start({ truth: truthOf([]) });
    const [page] = await fetchAll(connector);
    expect(page).toMatchObject({
      status: 204,
      nextCursor: null,
      buckets: [{ startMicros: SEPTEMBER.startMicros }],
    });
    expect((await rowsOf([page as FetchedPage])).rows).toEqual([]);
  });

  it('that contains a charge twice is refused: pages have been seen to overlap', async () => {
    const { connector } = await start();
    const [page] = await fetchAll(connector);
    await expect(rowsOf([page as FetchedPage, page as FetchedPage])).rejects.toThrow('occurs twice');
  });

  it.each([
    ['{"properties":{"columns":[{"name":"Cost"}],"rows":[]}}', 'has no column usagedate'],
    [
      '{"properties":{"columns":[{"name":"Cost"},{"name":"UsageDate"},{"name":"Meter"}],"rows":[[1,20261101,"x"]]}}',
      'a day that was not requested',
    ],
    ['{"value":[]}', 'properties is not as documented'],
    ['<html>', 'it is not JSON'],
  ])('of another shape is refused with its fault: %s', async (body, sentence) => {
    const { fake, connector } = await start();
    fake.faults.inject({ kind: 'wrong_shape', body, report: 'query' });
    await expect(fetchAll(connector)).rejects.toMatchObject({
      code: 'provider_answer_unreadable',
      message: expect.stringContaining(sentence),
    });
  });
});

describe('a refusal by Azure', () => {
  it.each([
    [{ tenant_id: 'other' }, 'no directory with this tenant_id'],
    [{ tenant_id: '../x' }, 'no id or domain of a directory'],
    [{ client_id: 'other' }, 'no application with this client_id'],
    [{ client_secret: 'other' }, 'the client_secret is wrong'],
  ])('of %o names what to change, and nothing of the secret', async (over, sentence) => {
    const { connector } = await start();
    const error = await fetchAll(connector, access(SCOPE, { ...CREDENTIALS, ...over })).catch(
      (thrown) => thrown,
    );
    expect(error).toMatchObject({ code: 'credentials_refused', message: expect.stringContaining(sentence) });
    expect(error.message).not.toContain(SECRET);
  });

  it('a scope that the application may not read names the role to give', async () => {
    const { connector } = await start();
    await expect(
      connector.identify(access('/subscriptions/cccccccc-0000-4000-8000-000000000003')),
    ).rejects.toMatchObject({
      code: 'credentials_refused',
      message: expect.stringMatching(
        /^Azure answered 403: the application may not read query; give .* Cost Management Reader/,
      ),
    });
    await expect(
      connector.test(access('/subscriptions/cccccccc-0000-4000-8000-000000000003')),
    ).resolves.toEqual([expect.objectContaining({ name: 'costs', ok: false })]);
  });

  it('with 429 is waited out as long as the longest of its headers states', async () => {
    const { connector } = await start({ queriesPerMinute: 1 });
    await fetchAll(connector);
    await expect(fetchAll(connector)).rejects.toMatchObject({
      code: 'provider_rate_limited',
      retryAfterSeconds: 23,
    });
    await expect(fetchAll(connector)).rejects.toThrow('asked to be left alone');
  });

  it('an outage of the login or of the query is temporary', async () => {
    for (const report of ['token', 'query']) {
      const { fake, connector } = await start();
      fake.faults.inject({ kind: 'outage', status: 503, report });
      await expect(fetchAll(connector)).rejects.toMatchObject({ code: 'provider_unavailable' });
      fake.faults.clear();
      expect(await fetchAll(connector)).toHaveLength(1);
    }
  });

  it('by a login that does not answer comes after the timeout', async () => {
    const { fake, connector } = await start({}, 500);
    fake.faults.inject({ kind: 'hang', report: 'token' });
    await expect(fetchAll(connector)).rejects.toMatchObject({
      code: 'provider_unavailable',
      message: expect.stringContaining('did not answer in time'),
    });
  });
});

describe('the account and the scope of a connection', () => {
  it('the scope determines the account of the bill', async () => {
    const { connector } = await start();
    expect(await connector.identify(access())).toEqual({ accountId: SUBSCRIPTION, name: null });
    expect(connector.accountOfSettings({ scope: { resource: `${SCOPE}/resourceGroups/RG-1/` } })).toBe(
      SUBSCRIPTION,
    );
    expect(connector.accountOfSettings({ scope: { resource: BILLING_ACCOUNT } })).toBe('1234567');
  });

  it.each([
    'aaaaaaaa-0000-4000-8000-000000000001',
    '/subscriptions/x',
    `${SCOPE}/resourceGroups/..`,
    `${SCOPE}/resourceGroups/a/providers/x`,
    '/providers/Microsoft.Billing/billingAccounts/../../x',
    'https://management.azure.com/subscriptions/aaaaaaaa-0000-4000-8000-000000000001',
    `${SCOPE}?x=1`,
  ])('%s is no scope', async (text) => {
    const { connector } = await start();
    expect(connector.settingsFault({ scope: { resource: text } })?.field).toBe('scope');
  });
});
