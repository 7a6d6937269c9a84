import { afterEach, describe, expect, it } from 'vitest';
import { decimalFromPico, type Pico, picoFromDecimal } from '../../domain/money.js';
import { microsFromDate } from '../../domain/period.js';
import { type AzureCharge, startAzureBilling } from '../fakes/billing/azureBilling.js';
import { type AwsCharge, startCostExplorer } from '../fakes/billing/costExplorer.js';
import type { TestApi } from '../support/api.js';
import { AWS_KEYS, AWS_PAYER } from '../support/awsBills.js';
import { pollToEnd, runGaps } from '../support/bills.js';
import { testConnectors } from '../support/connectors.js';
import { CONNECTIONS, FAST } from '../support/fetchedBills.js';
import { imported, read } from '../support/months.js';
import { startWorkingApi } from '../support/workingApi.js';

/**
 * One month's bill from two sources, by connection and by file or by two files: it counts once, and differences are
 * shown.
 */

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

const LIMIT_MS = 180_000;
const DAY_MS = 86_400_000;

let api: TestApi;
let fake: { close(): Promise<void> } | undefined;
afterEach(async () => {
  await api?.close();
  await fake?.close();
  fake = undefined;
});

const today = new Date();
/** The first day of the month some months ago: `YYYY-MM-01`. */
const firstDay = (monthsAgo: number) =>
  new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - monthsAgo, 1)).toISOString().slice(0, 10);
const shift = (day: string, days: number) =>
  new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10);
/** The last complete month, its days, and the last day before it. */
const MONTH = firstDay(1).slice(0, 7);
const DAYS = Array.from({ length: 31 }, (_, at) => shift(firstDay(1), at)).filter((day) =>
  day.startsWith(MONTH),
);
const EVE = shift(firstDay(1), -1);
const [WRONG_TAX, WRONG_USAGE, ROUNDED] = [DAYS[4], DAYS[11], DAYS[17]] as [string, string, string];

async function start(addresses: Parameters<typeof testConnectors>[0]): Promise<void> {
  const nowMicros = () => microsFromDate(new Date());
  const connectors = testConnectors(addresses, nowMicros);
  api = await startWorkingApi({ connectors, syncPace: FAST, nowMicros });
}

async function connected(body: object): Promise<void> {
  const answer = await api.post(CONNECTIONS, body);
  expect([answer.status, answer.body.code]).toEqual([201, undefined]);
  const sync = await pollToEnd(api, answer.body.sync.status_url, LIMIT_MS);
  expect(sync, JSON.stringify(sync.error)).toMatchObject({ status: 'succeeded', result: { missing: [] } });
}

const sum = (values: readonly string[]): Pico =>
  values.reduce((total, value) => total + (picoFromDecimal(value) ?? 0n), 0n);
const dollars = (pico: Pico) => Number(decimalFromPico(pico));

/** A shown difference, without its ids. */
const told = ({
  day,
  span,
  charge_category,
  counted_kind,
  counted_usd,
  other_kind,
  other_usd,
  difference_usd,
}: Json) => [
  `${span} ${day} ${charge_category}`,
  `${counted_kind} ${counted_usd}`,
  `${other_kind} ${other_usd}`,
  difference_usd,
];

/** The differences of a month in its statement and, by themselves, in a run: both the same. */
async function differencesOf(month: string): Promise<Json[]> {
  const statement = await read(api, api, `statement?period=${month}`);
  const run = await runGaps(api, '?period=90d', LIMIT_MS);
  const ofMonth = run.result.source_differences.filter(({ day }: Json) => day.startsWith(month));
  expect(ofMonth).toEqual(statement.source_differences);
  return statement.source_differences.map(told);
}

describe('Cost Explorer and a Cost and Usage Report of one month', () => {
  const costOf = (at: number) => `${at + 1}.2345678${at % 10}`;
  const charge = (day: string, cost: string, recordType = 'Usage'): AwsCharge => ({
    day,
    recordType,
    service: 'Amazon Bedrock',
    usageType: recordType === 'Usage' ? 'USE1-NovaPro-input-tokens' : '',
    account: AWS_PAYER,
    cost,
    quantity: recordType === 'Usage' ? '1000' : '0',
  });
  /** The cost of the day before the month, and its part on the month's invoice: it was learnt of late. */
  const [EVE_COST, LATE_COST] = ['10', '0.5'];

  async function startAws(): Promise<void> {
    const aws = await startCostExplorer({
      truth: {
        accessKeyId: AWS_KEYS.access_key_id,
        secretAccessKey: AWS_KEYS.secret_access_key,
        charges: [
          charge(EVE, EVE_COST),
          charge(EVE, LATE_COST),
          ...DAYS.flatMap((day, at) => [charge(day, costOf(at)), charge(day, '0.31', 'Tax')]),
        ],
        finalBefore: firstDay(0),
      },
      nowSeconds: () => Math.floor(Date.now() / 1_000),
    });
    fake = aws;
    await start({ awsCostExplorer: aws.origin });
    await connected({
      provider: 'aws_bedrock',
      credentials: AWS_KEYS,
      settings: { account: AWS_PAYER, region: 'us-east-1' },
    });
  }

  const HEADER =
    'bill_payer_account_id,bill_billing_period_start_date,bill_invoice_id,line_item_usage_account_id,line_item_line_item_type,line_item_usage_start_date,line_item_product_code,line_item_usage_type,line_item_usage_amount,line_item_currency_code,line_item_unblended_cost,pricing_unit';
  const line = (month: string, { day, recordType, usageType, quantity, cost }: AwsCharge) =>
    `${AWS_PAYER},${month}-01T00:00:00Z,IN${month},${AWS_PAYER},${recordType},${day}T05:00:00Z,AmazonBedrock,${usageType},${quantity},USD,${cost},1K tokens`;
  const late = line(MONTH, charge(EVE, LATE_COST));
  const file = (lines: readonly string[]) => [HEADER, ...lines].join('\n');
  const upload = (lines: readonly string[]) => imported(api, api, file(lines), { provider: 'aws_bedrock' });
  const totalOf = async (month: string) =>
    (await read(api, api, `statement?period=${month}`)).total as Record<string, number>;

  it('is counted once, and each day on which they differ is shown with both amounts', async () => {
    await startAws();
    const costs = DAYS.map((day, at) => (day === WRONG_USAGE ? '13.75' : costOf(at)));
    const lines = DAYS.flatMap((day, at) => [
      // Another digit than Cost Explorer rounds to is no difference.
      charge(day, day === ROUNDED ? `${costs[at]}004` : (costs[at] as string)),
      charge(day, day === WRONG_TAX ? '0.3' : '0.31', 'Tax'),
    ]);
    await upload(lines.map((one) => line(MONTH, one)));
    const total = await totalOf(MONTH);
    const taxes = lines.filter(({ recordType }) => recordType === 'Tax').map(({ cost }) => cost);
    const usage = lines.filter(({ recordType }) => recordType === 'Usage').map(({ cost }) => cost);
    expect([total.billed_usage_usd, total.tax_usd, total.invoice_total_usd]).toEqual(
      [sum(usage), sum(taxes), sum([...usage, ...taxes])].map(dollars),
    );
    expect(await differencesOf(MONTH)).toEqual([
      [`day ${WRONG_USAGE} usage`, 'file 13.75', 'api 12.23456781', -1.51543219],
      [`day ${WRONG_TAX} tax`, 'file 0.3', 'api 0.31', 0.01],
    ]);
  }, 300_000);

  it('counts a late charge once, whichever of the copies is there', async () => {
    await startAws();
    const before = EVE.slice(0, 7);
    expect((await totalOf(before)).billed_usage_usd).toBe(10.5);
    const ofMonth = DAYS.map((day, at) => line(MONTH, charge(day, costOf(at))));
    // The invoice of the month has it too, and Cost Explorer includes it in the day.
    await upload([late, ...ofMonth]);
    expect((await totalOf(before)).billed_usage_usd).toBe(10.5);
    expect(await differencesOf(before)).toEqual([]);
    // The day's own report has the rest: both invoices together are the day, and equal Cost Explorer.
    await upload([line(before, charge(EVE, EVE_COST))]);
    const statement = await read(api, api, `statement?period=${before}`);
    expect(statement.total.billed_usage_usd).toBe(10.5);
    const ofEve = statement.sources.filter(({ last_day }: Json) => last_day === EVE);
    expect(ofEve.map(({ kind }: Json) => kind)).toEqual(['file', 'file']);
    expect(await differencesOf(before)).toEqual([]);
  }, 300_000);
});

describe('Azure’s query and cost details of one month, in euros', () => {
  const SUBSCRIPTION = 'aaaaaaaa-0000-4000-8000-000000000001';
  const SCOPE = `/subscriptions/${SUBSCRIPTION}`;
  const RESOURCE = `${SCOPE}/resourceGroups/rg/providers/Microsoft.CognitiveServices/accounts/chat`;
  const METER = '5.4 inp Gl 1M Tokens';
  const CREDENTIALS = { tenant_id: 'tenant', client_id: 'trueup', client_secret: 'S3cret~OfTheApplication' };
  const costOf = (at: number) => `${40 + at}.25`;

  it('is counted once, converted, and the day on which they differ is shown', async () => {
    const charges = DAYS.map(
      (day, at): AzureCharge => ({
        day,
        cost: costOf(at),
        quantity: '16',
        dimensions: {
          Meter: METER,
          MeterCategory: 'Foundry Models',
          ResourceId: RESOURCE,
          SubscriptionId: SUBSCRIPTION,
        },
      }),
    );
    const azure = await startAzureBilling({
      truth: {
        tenantId: CREDENTIALS.tenant_id,
        clientId: CREDENTIALS.client_id,
        clientSecret: CREDENTIALS.client_secret,
        scopes: { [SCOPE]: charges },
        currency: 'EUR',
      },
      nowSeconds: () => Math.floor(Date.now() / 1_000),
    });
    fake = azure;
    await start({ azureManagement: azure.origin, azureLogin: azure.origin });
    await connected({
      provider: 'azure_openai',
      credentials: CREDENTIALS,
      settings: { scope: SCOPE, fx_rate: '1.08' },
    });
    const details = [
      'SubscriptionId,Date,MeterCategory,MeterSubCategory,MeterName,UnitOfMeasure,Quantity,CostInBillingCurrency,ChargeType,BillingCurrencyCode,ResourceId,InvoiceId',
      ...DAYS.map((day, at) =>
        [
          ...[SUBSCRIPTION, day, 'Foundry Models', 'Azure OpenAI GPT5', METER, '1M', '16'],
          // Floating-point numbers lose a billionth of a euro.
          day === WRONG_USAGE ? '51' : day === ROUNDED ? `${costOf(at)}000001` : costOf(at),
          ...['Usage', 'EUR', RESOURCE, 'G1'],
        ].join(','),
      ),
    ];
    await imported(api, api, details.join('\n'), { provider: 'azure_openai', fx_rate: '1.08' });
    const { total } = await read(api, api, `statement?period=${MONTH}`);
    const euros = sum(DAYS.map((day, at) => (day === WRONG_USAGE ? '51' : costOf(at))));
    expect(total.invoice_total_usd).toBeCloseTo(dollars((euros * 108n) / 100n), 5);
    expect(await differencesOf(MONTH)).toEqual([
      [`day ${WRONG_USAGE} usage`, 'file 55.08', 'api 55.35', 0.27],
    ]);
  }, 300_000);
});

describe('two files of one month', () => {
  it('of Google, its export and FOCUS: the one that came last counts, and where they differ is shown', async () => {
    await start({});
    const account = '012345-6789AB-CDEF01';
    const costOf = (at: number) => `${at + 3}.5`;
    const own = DAYS.map((day, at) =>
      JSON.stringify({
        billing_account_id: account,
        service: { description: 'Gemini API' },
        sku: { description: 'Generate content input token count gemini 2.5 flash text' },
        usage_start_time: `${day} 18:00:00 UTC`,
        usage_end_time: `${day} 19:00:00 UTC`,
        cost: Number(costOf(at)),
        cost_type: 'regular',
        currency: 'USD',
        usage: { amount: 1_000, unit: 'count' },
        invoice: { month: MONTH.replace('-', '') },
      }),
    );
    await imported(api, api, own.join('\n'), { provider: 'google' });
    const focus = [
      'BilledCost,BillingAccountId,BillingCurrency,BillingPeriodStart,ChargeCategory,ChargeDescription,ChargePeriodStart,ChargePeriodEnd,ProviderName,ServiceName',
      ...DAYS.map((day, at) =>
        [
          ...[day === WRONG_USAGE ? '20' : costOf(at), account, 'USD', `${MONTH}-01T00:00:00Z`, 'Usage'],
          ...[
            'Generate content input token count gemini 2.5 flash text',
            `${day}T18:00:00Z`,
            `${day}T19:00:00Z`,
          ],
          ...['Google Cloud', 'Gemini API'],
        ].join(','),
      ),
    ];
    await imported(api, api, focus.join('\n'), { provider: 'google' });
    const { total } = await read(api, api, `statement?period=${MONTH}`);
    expect(total.invoice_total_usd).toBe(
      dollars(sum(DAYS.map((day, at) => (day === WRONG_USAGE ? '20' : costOf(at))))),
    );
    expect(await differencesOf(MONTH)).toEqual([[`day ${WRONG_USAGE} usage`, 'file 20', 'file 14.5', -5.5]]);
  }, 300_000);

  it('of xAI, its invoice and the days: the days count, and what the invoice contains beyond them is shown', async () => {
    await start({});
    const [year, month] = MONTH.split('-').map(Number);
    const invoice = JSON.stringify({
      invoices: [
        {
          billingCycle: { year, month },
          lines: [
            { description: 'grok-4', unitType: 'Prompt text tokens', amount: '3100' },
            { description: 'grok-4', unitType: 'Completion text tokens', amount: '900' },
          ],
          vatCost: '800',
        },
      ],
    });
    await imported(api, api, invoice, { provider: 'xai' });
    const csv = [
      'date,model,token_class,quantity,amount_usd',
      `${DAYS[2]},grok-4,input,10000000,30`,
      `${DAYS[20]},grok-4,output,500000,7.5`,
    ];
    await imported(api, api, csv.join('\n'), { provider: 'xai' });
    const { total } = await read(api, api, `statement?period=${MONTH}`);
    expect([total.billed_usage_usd, total.tax_usd]).toEqual([37.5, 8]);
    expect(await differencesOf(MONTH)).toEqual([[`month ${MONTH}-01 usage`, 'file 37.5', 'file 40', 2.5]]);
    // Days that sum to the invoiced amount are no difference.
    await imported(api, api, [...csv, `${DAYS[21]},grok-4,output,200000,2.5`].join('\n'), {
      provider: 'xai',
    });
    expect(await differencesOf(MONTH)).toEqual([]);
  }, 300_000);
});
