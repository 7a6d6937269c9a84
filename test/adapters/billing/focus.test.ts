import { describe, expect, it } from 'vitest';
import type { BilledRow } from '../../../domain/billing/billedRow.js';
import { decimalFromPico } from '../../../domain/money.js';
import { readBill } from '../../support/readBill.js';

/** Columns of FOCUS's Cost and Usage by version, as far as they are read. */
const COMMON = [
  'BilledCost',
  'BillingAccountId',
  'BillingCurrency',
  'ChargeCategory',
  'ChargeClass',
  'ChargeDescription',
  'ChargePeriodStart',
  'ChargePeriodEnd',
  'ConsumedQuantity',
  'ConsumedUnit',
  'ContractedCost',
  'EffectiveCost',
  'ListCost',
  'PricingQuantity',
  'PricingUnit',
  'ResourceId',
  'ServiceName',
  'SkuId',
  'SubAccountId',
];
const SKU = ['SkuMeter', 'SkuPriceDetails'];
const VERSIONS: Record<string, string[]> = {
  '1.0': [...COMMON, 'ProviderName'],
  '1.1': [...COMMON, ...SKU, 'ProviderName'],
  '1.2': [...COMMON, ...SKU, 'InvoiceId', 'PricingCurrency', 'PricingCurrencyEffectiveCost', 'ProviderName'],
  '1.3': [...COMMON, ...SKU, 'InvoiceId', 'ProviderName', 'ServiceProviderName', 'HostProviderName'],
  '1.4': [...COMMON, ...SKU, 'InvoiceId', 'InvoiceDetailId', 'ServiceProviderName', 'HostProviderName'],
};

type Charge = Record<string, string>;

const aCharge = (over: Charge = {}): Charge => ({
  BilledCost: '1.25',
  BillingAccountId: 'acct-1',
  BillingCurrency: 'USD',
  ChargeCategory: 'Usage',
  ChargeDescription: 'gpt-5, input',
  ChargePeriodStart: '2026-09-03T00:00:00Z',
  ChargePeriodEnd: '2026-09-04T00:00:00Z',
  ConsumedQuantity: '1000000',
  ConsumedUnit: 'Tokens',
  ListCost: '1.5',
  ContractedCost: '1.25',
  EffectiveCost: '1.25',
  ServiceName: 'OpenAI API',
  SkuId: 'sku-1',
  ProviderName: 'OpenAI',
  ServiceProviderName: 'OpenAI',
  ...over,
});

const quoted = (cell: string) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

const csvOf = (columns: readonly string[], charges: readonly Charge[]) =>
  [columns, ...charges.map((charge) => columns.map((column) => quoted(charge[column] ?? '')))]
    .map((cells) => cells.join(','))
    .join('\n');

const OWN = ['x_UsageType', 'x_ServiceCode', 'x_SkuMeterName', 'x_SkuMeterCategory', 'x_BilledCostInUsd'];

const read = (charges: readonly Charge[], provider = 'openai', more: object = {}) =>
  readBill(csvOf([...(VERSIONS['1.2'] as string[]), ...OWN], charges), {
    provider: provider as 'openai',
    ...more,
  });

async function rowOf(over: Charge, provider = 'openai', more: object = {}): Promise<BilledRow> {
  const { rows } = await read([aCharge(over)], provider, more);
  expect(rows).toHaveLength(1);
  return rows[0] as BilledRow;
}

describe('a FOCUS export', () => {
  it.each(Object.keys(VERSIONS))(
    'of version %s is recognized by its columns and yields the same rows',
    async (version) => {
      const { rows, summary } = await readBill(csvOf(VERSIONS[version] as string[], [aCharge()]), {
        provider: 'openai',
      });
      expect(summary.format).toBe('focus');
      expect(rows).toHaveLength(1);
      expect(rows[0]).toMatchObject({
        account: 'acct-1',
        day: '2026-09-03',
        chargeCategory: 'usage',
        lineItem: 'gpt-5, input',
        model: 'gpt-5',
        tokenClass: 'input',
        quantity: 1_000_000n * 10n ** 12n,
        quantityUnit: 'tokens',
        amountPico: 1_250_000_000_000n,
        listPico: 1_500_000_000_000n,
        contractedPico: 1_250_000_000_000n,
        netPico: 1_250_000_000_000n,
        currency: 'USD',
      });
    },
  );

  it.each(['2026-09-03 00:00:00 UTC', '2026-09-03T00:00Z', '2026-09-03 00:00:00', '2026-09-03'])(
    'has times as its writer prints them: %s',
    async (start) => {
      const columns = VERSIONS['1.2'] as string[];
      const { rows } = await readBill(csvOf(columns, [{ ...aCharge(), ChargePeriodStart: start }]), {
        provider: 'openai',
      });
      expect(rows[0]?.day).toBe('2026-09-03');
    },
  );

  it('without a column that it cannot do without names it', async () => {
    const columns = (VERSIONS['1.2'] as string[]).filter((name) => name !== 'BillingCurrency');
    await expect(readBill(csvOf(columns, [aCharge()]), { provider: 'openai' })).rejects.toThrow(
      /billingcurrency is missing; a FOCUS export has/,
    );
  });

  it.each([
    ['Usage', '', '1', 'gpt-5, input', 'usage'],
    ['Usage', '', '-1', 'gpt-5, input', 'adjustment'],
    ['Usage', '', '-1', 'Refund of September', 'refund'],
    ['Usage', 'Correction', '-1', 'gpt-5, input', 'adjustment'],
    ['Usage', 'Correction', '-1', 'Refund: gpt-5', 'refund'],
    ['Usage', '', '0', 'gpt-5, input', 'usage'],
    ['Purchase', '', '100', 'Prepaid credits', 'purchase'],
    ['Purchase', 'Correction', '-100', 'Prepaid credits', 'adjustment'],
    ['Purchase', '', '-100', 'Refund of a purchase', 'refund'],
    ['Tax', '', '3', 'VAT', 'tax'],
    ['Tax', 'Correction', '-3', 'VAT refund', 'tax'],
    ['Credit', '', '-5', 'Promotional credit', 'credit'],
    ['Adjustment', '', '0.01', 'Rounding', 'adjustment'],
    ['Adjustment', '', '-2', 'Refund', 'refund'],
  ])('%s %s of %s for “%s” is %s', async (ChargeCategory, ChargeClass, BilledCost, text, expected) => {
    const row = await rowOf({ ChargeCategory, ChargeClass, BilledCost, ChargeDescription: text });
    expect([row.chargeCategory, decimalFromPico(row.originalAmount ?? 0n)]).toEqual([expected, BilledCost]);
  });

  it('leaves out who is another, and other services, and counts them by category and currency', async () => {
    const aws = { ProviderName: 'Amazon Web Services', ServiceProviderName: '' };
    const { rows, summary } = await read(
      [
        aCharge({ ...aws, ServiceName: 'Amazon Bedrock', BilledCost: '2' }),
        aCharge({ ...aws, ServiceName: 'Amazon EC2', BilledCost: '10.5' }),
        aCharge({ ...aws, ServiceName: 'Amazon EC2', BilledCost: '0.25' }),
        aCharge({ ...aws, ServiceName: 'Amazon S3', BilledCost: '1', ChargeCategory: 'Tax' }),
        aCharge({ ...aws, ServiceName: 'Claude (Amazon Bedrock Edition)', BilledCost: '3' }),
        aCharge({ ProviderName: 'OpenAI', BilledCost: '7', BillingCurrency: 'EUR' }),
      ],
      'aws_bedrock',
    );
    expect(rows.map((row) => decimalFromPico(row.originalAmount ?? 0n))).toEqual(['2', '3']);
    expect(
      summary.leftOut
        .map((one) => [one.chargeCategory, one.currency, one.rows, decimalFromPico(one.amount)])
        .sort(),
    ).toEqual([
      ['tax', 'USD', 1, '1'],
      ['usage', 'EUR', 1, '7'],
      ['usage', 'USD', 2, '10.75'],
    ]);
  });

  it('takes a hyperscaler’s own label and its own account', async () => {
    const azure = await rowOf(
      {
        ProviderName: 'Microsoft',
        ServiceName: 'Azure OpenAI',
        SubAccountId: '/subscriptions/ABC-1',
        SkuMeter: 'gpt-4o-0806-Inp-glbl Tokens',
        ChargeDescription: 'Azure OpenAI',
        ConsumedQuantity: '',
        PricingQuantity: '12.5',
        PricingUnit: '1K Tokens',
      },
      'azure_openai',
    );
    expect(azure).toMatchObject({
      account: 'abc-1',
      lineItem: 'gpt-4o-0806-Inp-glbl Tokens',
      model: 'gpt-4o-2024-08-06',
      tokenClass: 'input',
      quantity: 12_500n * 10n ** 12n,
    });
    const bedrock = await rowOf(
      {
        ProviderName: 'AWS',
        ServiceName: 'Amazon Bedrock',
        SubAccountId: '444455556666',
        x_UsageType: 'USE1-Nova2.0Lite-input-tokens',
        ChargeDescription: '$0.00033 per 1K input tokens',
        ConsumedQuantity: '37411.2',
        ConsumedUnit: '1K tokens',
      },
      'aws_bedrock',
    );
    expect(bedrock).toMatchObject({
      account: 'acct-1',
      project: '444455556666',
      lineItem: 'USE1-Nova2.0Lite-input-tokens',
      tokenClass: 'input',
      quantity: 37_411_200n * 10n ** 12n,
      quantityUnit: 'tokens',
    });
    expect(bedrock.model).toMatch(/nova-2-lite/);
    const google = await rowOf(
      {
        ProviderName: 'Google Cloud',
        ServiceName: 'Vertex AI',
        ChargeDescription: 'Gemini 2.5 Flash GA Text Input - Predictions',
        SubAccountId: 'my-project',
        ConsumedUnit: 'count',
      },
      'google',
    );
    expect(google).toMatchObject({ account: 'acct-1', project: 'my-project', model: 'gemini-2.5-flash' });
  });

  it('takes model and class from SkuPriceDetails where the writer names them', async () => {
    const row = await rowOf(
      {
        ProviderName: 'Cohere',
        ServiceName: 'Cohere API',
        ChargeDescription: 'Chat usage',
        SkuMeter: 'Output Tokens',
        SkuPriceDetails: '{"x_Model":"command-a-03-2025","x_Tier":"batch","x_Region":"eu"}',
      },
      'cohere',
    );
    expect(row).toMatchObject({
      model: 'command-a-03-2025',
      tokenClass: 'output',
      serviceTier: 'standard',
      isBatch: true,
      region: 'eu',
      lineItem: 'Chat usage',
    });
  });

  it.each([
    ['Input Tokens', 'input'],
    ['Cache Read Tokens', 'cache_read'],
    ['Cached Input Tokens', 'cache_read'],
    ['Cache Write Tokens', 'cache_write_5m'],
    ['Cache Write Tokens, 1 Hour', 'cache_write_1h'],
    ['Audio Input Tokens', 'input_audio'],
    ['Output Tokens', 'output'],
  ])('a meter %s counts %s', async (SkuMeter, expected) => {
    const row = await rowOf({ SkuMeter, SkuPriceDetails: '{"Model":"m"}', ChargeDescription: 'x' }, 'openai');
    expect(row.tokenClass).toBe(expected);
  });

  it('keeps unknown charges as other, with their dollars', async () => {
    const { rows, summary } = await read([
      aCharge({ ChargeDescription: 'Mystery', SkuPriceDetails: 'no JSON' }),
      aCharge({ ChargeDescription: 'Mystery', SkuPriceDetails: '{"Kind":"none"}' }),
    ]);
    expect(rows.map((row) => [row.model, row.tokenClass, row.quantityUnit])).toEqual(
      Array(2).fill([null, 'other', 'Tokens']),
    );
    expect(summary.unparsed).toEqual([{ label: 'Mystery', rows: 2, amountPico: 2_500_000_000_000n }]);
  });
});

describe('days of a FOCUS export', () => {
  const period = { BillingPeriodStart: '2026-09-01T00:00:00Z', BillingPeriodEnd: '2026-10-01T00:00:00Z' };

  it('a charge of another billing period than its invoice’s is kept separate, on its own day', async () => {
    const { rows } = await readBill(
      csvOf(
        [...(VERSIONS['1.2'] as string[]), 'BillingPeriodStart', 'BillingPeriodEnd'],
        [
          aCharge(period),
          aCharge({ ...period, ChargePeriodStart: '2026-08-31T23:00:00Z' }),
          aCharge({ ...period, ChargePeriodStart: '2026-10-01T00:00:00Z' }),
        ],
      ),
      { provider: 'openai' },
    );
    expect(rows.map((row) => [row.day, row.report])).toEqual([
      ['2026-09-03', ''],
      ['2026-08-31', 'invoice 202609'],
      ['2026-10-01', 'invoice 202609'],
    ]);
  });

  it('Google’s are Pacific days, those of other providers UTC days', async () => {
    const start = { ChargePeriodStart: '2026-09-03T06:59:59Z', ChargePeriodEnd: '2026-09-03T07:59:59Z' };
    const google = { ...start, ProviderName: 'Google', ServiceName: 'Gemini API' };
    expect((await rowOf(google, 'google')).day).toBe('2026-09-02');
    expect((await rowOf(start)).day).toBe('2026-09-03');
  });
});

describe('currencies of a FOCUS export', () => {
  it('the bill’s own conversion takes precedence over the rate of the request', async () => {
    const euro = { BillingCurrency: 'EUR', BilledCost: '10', EffectiveCost: '10', ListCost: '20' };
    const given = { fxRate: '1.5' };
    const own = await rowOf(
      { ...euro, PricingCurrency: 'USD', PricingCurrencyEffectiveCost: '11' },
      'openai',
      given,
    );
    expect([own.amountPico, own.listPico]).toEqual([11_000_000_000_000n, 22_000_000_000_000n]);
    const told = await rowOf({ ...euro, x_BilledCostInUsd: '12' }, 'openai', given);
    expect([told.amountPico, told.listPico]).toEqual([12_000_000_000_000n, 24_000_000_000_000n]);
    const plain = await rowOf(euro, 'openai', given);
    expect(plain.amountPico).toBe(15_000_000_000_000n);
    const none = await rowOf(euro);
    expect([none.amountPico, none.originalAmount, none.currency]).toEqual([null, 10n * 10n ** 12n, 'EUR']);
  });

  it('several without a rate are shown, each in its own; with one rate for all of them they are refused', async () => {
    const charges = [
      aCharge({ BillingCurrency: 'EUR' }),
      aCharge({ BillingCurrency: 'JPY', BilledCost: '150' }),
      aCharge(),
    ];
    const { rows, summary } = await read(charges);
    expect(rows.map((row) => row.amountPico)).toEqual([null, null, 1_250_000_000_000n]);
    expect(summary.unconverted.map((one) => [one.currency, decimalFromPico(one.amount)]).sort()).toEqual([
      ['EUR', '1.25'],
      ['JPY', '150'],
    ]);
    await expect(read(charges, 'openai', { fxRate: '1.1' })).rejects.toThrow(
      /in EUR and JPY, which one fx_rate cannot convert/,
    );
  });
});

describe('a fault of a FOCUS export is named with its place', () => {
  it.each([
    [{ BilledCost: 'x' }, /line 2, column 1: billedcost must be a decimal number/],
    [{ BilledCost: '' }, /line 2, column 1: billedcost must be a decimal number, not empty/],
    [{ ChargeCategory: 'Fee' }, /line 2, column 4: chargecategory must be Usage, Purchase/],
    [{ ChargePeriodStart: 'May' }, /line 2, column 7: chargeperiodstart must be a time/],
    [{ BillingCurrency: 'credits' }, /line 2, column 3: a currency is three letters/],
  ])('%o', async (over, message) => {
    await expect(read([aCharge(over as Charge)])).rejects.toThrow(message);
  });
});
