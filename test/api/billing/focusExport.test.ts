import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestApi, TestOrganization } from '../../support/api.js';
import { importBill } from '../../support/bills.js';
import { exactOf, readTable, sumsBy, sumTexts, textOfExact, timesExact } from '../../support/exactTable.js';
import { FOCUS_DAYS, loadFocusMonth, FOCUS_MONTH as month } from '../../support/focusMonth.js';
import { startWorkingApi } from '../../support/workingApi.js';
import { readBody } from '../support/requests.js';

/** A month with every kind of charge, exported as FOCUS and read by an independent reader. */

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas
type Json = any;
type Row = Record<string, string>;

let api: TestApi;
let org: TestOrganization;
let rows: Row[];

const [, D2] = FOCUS_DAYS;

/** Decimals have a point in every row; equal numbers are equal texts without it. */
const plain = (text: string | undefined) => sumTexts([text ?? '']);

const fetchCsv = async (query: string, key = org.adminKey) => {
  const response = await fetch(`${api.baseUrl}/api/v1/reconciliation/focus?${query}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return { response, text: await response.text() };
};

const exportOf = async (query: string): Promise<Row[]> => readTable((await fetchCsv(query)).text);

beforeAll(async () => {
  api = await startWorkingApi();
  org = await loadFocusMonth(api);
  rows = await exportOf(`period=${month}`);
}, 300_000);

afterAll(() => api?.close());

const get = (path: string): Promise<Json> => readBody(api, `/api/v1/reconciliation/${path}`, org.adminKey);

describe('the export', () => {
  it('has every charge of the month: by category it is the statement', async () => {
    const { total } = await get(`statement?period=${month}`);
    const billed = sumsBy(rows, (row) => row.x_ChargeCategory as string, 'x_BilledUsd');
    expect(billed).toEqual({
      adjustment: '-0.25',
      credit: '-250.000000000001',
      purchase: '100',
      refund: '-3.5',
      tax: '1.07',
      usage: '18.600012000123',
    });
    expect(Number(sumTexts(rows.map((row) => row.x_BilledUsd as string)))).toBe(total.invoice_total_usd);
    expect(Number(billed.usage)).toBe(total.billed_usage_usd);
  });

  it('is in the currency of each bill', () => {
    expect(sumsBy(rows, (row) => row.BillingCurrency as string, 'BilledCost')).toMatchObject({
      EUR: '1.87',
      DKK: '12.345678901234',
    });
    const kroner = rows.filter((row) => row.BillingCurrency === 'DKK');
    expect(kroner.map((row) => [row.BilledCost, row.x_BilledUsd, row.PricingCurrency])).toEqual([
      ['12.345678901234', '', 'DKK'],
      ['0.0', '', 'DKK'],
    ]);
    const euro = rows.find((row) => row.BillingCurrency === 'EUR');
    expect(euro).toMatchObject({
      x_BilledUsd: '2.10001',
      PricingCurrency: 'USD',
      PricingCurrencyEffectiveCost: '2.10001',
      EffectiveCost: '1.87',
      ProviderName: 'Mistral AI',
    });
  });

  it('keeps price × quantity = cost to the last digit, in every row that has a price', () => {
    const product = (a: string, b: string) => textOfExact(timesExact(exactOf(a), exactOf(b)));
    const priced = rows.filter((row) => row.ListUnitPrice !== '');
    expect(priced.length).toBeGreaterThan(8);
    for (const row of priced) {
      expect(product(row.ListUnitPrice as string, row.PricingQuantity as string)).toBe(plain(row.ListCost));
      expect(product(row.ContractedUnitPrice as string, row.PricingQuantity as string)).toBe(
        plain(row.ContractedCost),
      );
    }
    expect(rows.find((row) => row.ConsumedQuantity === '2000001.0')).toMatchObject({
      PricingQuantity: '2.000001',
      PricingUnit: '1000000 Tokens',
      ListUnitPrice: '2.0',
      ListCost: '4.000002',
      x_ListPriceSource: 'price_list',
    });
  });

  it('states of a charge without a price list that it is one charge, and whose price that is', () => {
    expect(rows.find((row) => row.x_Model === 'mystery-model')).toMatchObject({
      PricingQuantity: '1.0',
      PricingUnit: 'Charges',
      ListUnitPrice: '0.000000000123',
      ConsumedQuantity: '77.0',
      x_ListPriceSource: 'none',
    });
  });

  it('leaves unit, price and quantity empty for taxes, credits and corrections', () => {
    const plain = rows.filter((row) =>
      ['Tax', 'Credit', 'Adjustment'].includes(row.ChargeCategory as string),
    );
    expect(plain).toHaveLength(4);
    for (const row of plain) {
      expect([
        row.ListUnitPrice,
        row.PricingQuantity,
        row.PricingUnit,
        row.ConsumedQuantity,
        row.SkuId,
      ]).toEqual(['', '', '', '', '']);
      expect([row.ListCost, row.ContractedCost, row.EffectiveCost]).toEqual(Array(3).fill(row.BilledCost));
    }
    const purchase = rows.find((row) => row.ChargeCategory === 'Purchase');
    expect(purchase).toMatchObject({
      BilledCost: '100.0',
      EffectiveCost: '0.0',
      ChargeFrequency: 'One-Time',
    });
  });

  it('lays what was observed beside it: the sums are those of the gap explorer', async () => {
    const { gaps } = await get(`gap-explorer?period=90d&limit=1000`);
    const days = gaps.filter((gap: Json) => gap.bucket.startsWith(month));
    const ours = days.reduce((sum: number, gap: Json) => sum + gap.our_cost_usd, 0);
    expect(Number(sumTexts(rows.map((row) => row.x_ObservedCostUsd as string)))).toBeCloseTo(ours, 12);
    const usage = rows.filter((row) => row.ChargeCategory === 'Usage');
    for (const row of usage.filter(({ x_BilledUsd }) => x_BilledUsd !== ''))
      expect(sumTexts([row.x_ObservedCostUsd as string, row.x_GapUsd as string])).toBe(row.x_BilledUsd);
    expect(new Set(usage.map((row) => row.x_ReconStatus))).toEqual(
      new Set(['matched', 'partial', 'unmatched', 'unbilled']),
    );
  });

  it('has the use that a bill charges nothing for, with its quantity and list price', () => {
    const free = rows.find((row) => row.ConsumedQuantity === '250000.0');
    expect(free).toMatchObject({
      BilledCost: '0.0',
      EffectiveCost: '0.0',
      x_BilledUsd: '0',
      PricingQuantity: '0.25',
      ChargeCategory: 'Usage',
      x_ListPriceSource: 'price_list',
    });
    expect(Number(free?.ListCost)).toBeGreaterThan(0);
  });

  it('has a row at zero for use that no bill has, by class', () => {
    const unbilled = rows.filter((row) => row.x_ReconStatus === 'unbilled');
    const mini = unbilled.filter((row) => row.x_Model === 'gpt-5-mini');
    expect(mini.map((row) => [row.x_TokenClass, row.ConsumedQuantity]).sort()).toEqual([
      ['input', '1000000.0'],
      ['output', '70.0'],
    ]);
    for (const row of unbilled)
      expect([row.BilledCost, row.ListCost, row.PricingQuantity]).toEqual(['0.0', '0.0', '0.0']);
    // Output that the second day's bill leaves out, though it charges the model's input.
    expect(unbilled.find((row) => row.ChargePeriodStart?.startsWith(D2))).toMatchObject({
      x_Model: 'gpt-6-sol',
      x_TokenClass: 'output',
      ConsumedQuantity: '250.0',
    });
  });

  it('runs nothing in a spreadsheet, and a quoted label comes back whole', () => {
    expect(rows.map((row) => row.ChargeDescription)).toContain("'=cmd()");
    expect(rows.map((row) => row.ChargeDescription)).toContain('gpt-6-sol, "input"');
  });

  it('is of 1.4 what 1.4 calls it: the same charges under the newer columns', async () => {
    const newer = await exportOf(`period=${month}&version=1.4`);
    const [one, other] = [Object.keys(rows[0] as Row), Object.keys(newer[0] as Row)];
    expect(one.filter((name) => !other.includes(name))).toEqual(['ProviderName', 'PublisherName']);
    expect(other.filter((name) => !one.includes(name))).toEqual([
      'HostProviderName',
      'InvoiceDetailId',
      'ServiceProviderName',
    ]);
    const shared = one.filter((name) => other.includes(name));
    expect(newer.map((row) => shared.map((name) => row[name]))).toEqual(
      rows.map((row) => shared.map((name) => row[name])),
    );
  });

  it('is the same twice, and comes as an attachment', async () => {
    const [first, second] = [await fetchCsv(`period=${month}`), await fetchCsv(`period=${month}`)];
    expect(second.text).toBe(first.text);
    expect(first.response.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
    expect(first.response.headers.get('content-disposition')).toBe(
      `attachment; filename="focus-1.2-${month}.csv"`,
    );
  });

  it('of a month without a bill is a header alone, and one that has not begun is refused', async () => {
    expect(await exportOf('period=2024-02')).toEqual([]);
    expect((await fetchCsv('period=2024-02')).text.split('\r\n')).toHaveLength(2);
    for (const query of ['period=2999-01', 'period=2024-13', 'period=2024-02&version=1.3', ''])
      expect((await fetchCsv(query)).response.status, query).toBe(400);
  });

  it('shows nothing of another organization', async () => {
    const other = await api.addOrganization();
    expect(readTable((await fetchCsv(`period=${month}`, other.adminKey)).text)).toEqual([]);
  });
});

describe('a bill that cannot be converted', () => {
  it('is exported in its own currency, priced as it is billed, and in no dollars', async () => {
    const other = await api.addOrganization();
    await importBill(api, exportInEuros(), { provider: 'openai' }, other.adminKey);
    const [row, ...more] = readTable((await fetchCsv('period=2026-01', other.adminKey)).text);
    expect(more).toEqual([]);
    expect(row).toMatchObject({
      BilledCost: '1.87',
      BillingCurrency: 'EUR',
      PricingCurrency: 'EUR',
      PricingCurrencyEffectiveCost: '1.87',
      ListCost: '1.87',
      PricingQuantity: '1.0',
      ConsumedQuantity: '3000000.0',
      x_ListPriceSource: 'none',
      x_BilledUsd: '',
      x_GapUsd: '',
    });
  });
});

describe('periods of an export', () => {
  it('are the month for an invoice’s line, and Pacific days for Google', async () => {
    const other = await api.addOrganization();
    const invoice = {
      coreInvoice: {
        lines: [
          { description: 'grok-4-0709', unitType: 'Prompt text tokens', numUnits: '1000', amount: '300' },
        ],
      },
      billingCycle: { year: 2026, month: 1 },
    };
    await importBill(api, JSON.stringify(invoice), { provider: 'xai', account: 'x' }, other.adminKey);
    const google =
      'billing_account_id,service.description,sku.description,usage_start_time,cost,currency,invoice.month\n' +
      'g,Gemini API,Gemini 2.5 Flash GA Text Input - Predictions,2026-01-11 07:30:00 UTC,2.5,USD,202601\n';
    await importBill(api, google, { provider: 'google' }, other.adminKey);
    const told = readTable((await fetchCsv('period=2026-01', other.adminKey)).text).map((row) => [
      row.ProviderName,
      row.BilledCost,
      row.ChargePeriodStart,
      row.ChargePeriodEnd,
      row.BillingPeriodStart,
      row.x_ReconStatus,
    ]);
    expect(told).toEqual([
      [
        'Google Cloud',
        '2.5',
        '2026-01-10T08:00:00Z',
        '2026-01-11T08:00:00Z',
        '2026-01-01T08:00:00Z',
        'not_compared',
      ],
      ['xAI', '3.0', '2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z', '2026-01-01T00:00:00Z', 'not_compared'],
    ]);
  });
});

/** An export of another tool: FOCUS in euros, without an exchange rate. */
function exportInEuros(): string {
  const cells: Row = {
    BilledCost: '1.87',
    BillingAccountId: 'eu-1',
    BillingCurrency: 'EUR',
    ChargeCategory: 'Usage',
    ChargeDescription: 'gpt-6-sol, input',
    ChargePeriodStart: '2026-01-05T00:00:00Z',
    ConsumedQuantity: '3',
    ConsumedUnit: '1M Tokens',
    ProviderName: 'OpenAI',
    ServiceName: 'OpenAI API',
  };
  return `${Object.keys(cells).join(',')}\n${Object.values(cells)
    .map((cell) => `"${cell}"`)
    .join(',')}\n`;
}

describe('an export that is imported again', () => {
  it.each(['1.2', '1.4'])('of version %s bills the same, charge by charge', async (version) => {
    const other = await api.addOrganization();
    const { text } = await fetchCsv(`period=${month}&version=${version}`);
    for (const provider of ['openai', 'mistral', 'cohere']) {
      const done = await importBill(api, text, { provider }, other.adminKey);
      expect(done).toMatchObject({ status: 'succeeded', format: 'focus' });
    }
    const again = readTable((await fetchCsv(`period=${month}&version=${version}`, other.adminKey)).text);
    const billed = readTable(text).filter((row) => row.x_ReconStatus !== 'unbilled');
    const same = [
      ...[
        'BilledCost',
        'BillingAccountId',
        'BillingCurrency',
        'ChargeCategory',
        'ChargeDescription',
        'ChargePeriodStart',
      ],
      ...[
        'ConsumedQuantity',
        'ConsumedUnit',
        'SkuMeter',
        'SubAccountId',
        'x_BilledUsd',
        'x_ChargeCategory',
        'x_IsBatch',
      ],
      ...['x_Model', 'x_ProviderKeyId', 'x_TokenClass', 'EffectiveCost'],
    ];
    const texts = (all: Row[]) => all.map((row) => same.map((name) => row[name]).join('|')).sort();
    expect(texts(again)).toEqual(texts(billed));
  });
});
