import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { decimalFromPico } from '../../../domain/money.js';
import { readBill } from '../../support/readBill.js';

const REAL = readFileSync(new URL('../../fixtures/bills/azure-ea-anonymous.csv', import.meta.url));

/** Columns of the schemas that Microsoft publishes for cost and usage details, as far as they are read. */
const EA = [
  'SubscriptionId',
  'ResourceGroup',
  'Date',
  'ProductName',
  'MeterCategory',
  'MeterSubCategory',
  'MeterName',
  'UnitOfMeasure',
  'Quantity',
  'EffectivePrice',
  'CostInBillingCurrency',
  'ResourceId',
  'UnitPrice',
  'ChargeType',
  'BillingCurrencyCode',
  'PayGPrice',
];
const MCA = [
  'invoiceId',
  'subscriptionId',
  'date',
  'product',
  'meterCategory',
  'meterSubCategory',
  'meterName',
  'unitOfMeasure',
  'quantity',
  'costInBillingCurrency',
  'costInUsd',
  'paygCostInUsd',
  'resourceId',
  'chargeType',
  'billingCurrency',
  'pricingCurrency',
];
const PAYG = [
  'SubscriptionGuid',
  'UsageDateTime',
  'MeterCategory',
  'MeterSubCategory',
  'MeterName',
  'UnitOfMeasure',
  'UsageQuantity',
  'PreTaxCost',
  'Currency',
  'InstanceId',
];

const SUBSCRIPTION = 'AAAAAAAA-0000-4000-8000-000000000001';
const RESOURCE = `/subscriptions/${SUBSCRIPTION}/resourceGroups/RG-Chat/providers/Microsoft.CognitiveServices/accounts/Chat-Prod`;

const quoted = (cell: string) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

function csv(columns: readonly string[], records: readonly Record<string, string>[]): string {
  return [columns, ...records.map((record) => columns.map((column) => quoted(record[column] ?? '')))]
    .map((cells) => cells.join(','))
    .join('\r\n');
}

const aLine = (over: Record<string, string> = {}) => ({
  SubscriptionId: SUBSCRIPTION,
  ResourceGroup: 'RG-Chat',
  Date: '9/2/2026',
  MeterCategory: 'Foundry Models',
  MeterSubCategory: 'Azure OpenAI GPT5',
  MeterName: '5.4 mini cd Inp Gl 1M Tokens',
  UnitOfMeasure: '1M',
  Quantity: '12.5',
  CostInBillingCurrency: '0.9375',
  ResourceId: RESOURCE,
  UnitPrice: '0.08',
  PayGPrice: '0.1',
  ChargeType: 'Usage',
  BillingCurrencyCode: 'USD',
  ...over,
});

const AZURE = { provider: 'azure_openai' } as const;

describe('cost details of Azure', () => {
  it('a real export without models leaves everything out, and its total is that of its cells to a picocent', async () => {
    const { rows, summary } = await readBill(REAL, AZURE);
    expect(rows).toEqual([]);
    expect(summary.format).toBe('azure_cost_details');
    const lines = REAL.toString('utf8').trim().split(/\r?\n/);
    expect(summary.leftOut.reduce((sum, { rows: count }) => sum + count, 0)).toBe(lines.length - 1);
    expect(summary.leftOut.map(({ currency }) => currency)).toEqual(summary.leftOut.map(() => 'CAD'));
    // The same sum by separate exact arithmetic: some cells have more digits than the twelve that are stored.
    const exact = lines.slice(1).reduce((sum, line) => sum + costInAtto(line), 0n);
    const told = summary.leftOut.reduce((sum, { amount }) => sum + amount, 0n) * 1_000_000n;
    const difference = told > exact ? told - exact : exact - told;
    expect(difference).toBeLessThan(10_000_000n);
  });

  it('a line is read by its meter, counted in tokens, and keeps list and contract amounts', async () => {
    const { rows } = await readBill(`\ufeff${csv(EA, [aLine()])}`, AZURE);
    expect(rows).toEqual([
      expect.objectContaining({
        account: SUBSCRIPTION.toLowerCase(),
        day: '2026-09-02',
        chargeCategory: 'usage',
        lineItem: '5.4 mini cd Inp Gl 1M Tokens',
        model: 'gpt-5.4-mini',
        tokenClass: 'cache_read',
        isBatch: false,
        project: 'rg-chat/chat-prod',
        quantity: 12_500_000n * 10n ** 12n,
        quantityUnit: 'tokens',
        amountPico: 937_500_000_000n,
        listPico: 1_250_000_000_000n,
        contractedPico: 1_000_000_000_000n,
        currency: 'USD',
        isFinal: null,
      }),
    ]);
  });

  it('units of a thousand and of one are counted as such, and a meter by the hour is no token', async () => {
    const { rows } = await readBill(
      csv(EA, [
        aLine({ MeterName: 'gpt-4o-0806-Outp-glbl Tokens', UnitOfMeasure: '1K', Quantity: '2.5' }),
        aLine({ MeterName: 'gpt-4o-0806-Outp-glbl Tokens', UnitOfMeasure: '1', Quantity: '2500' }),
        aLine({ MeterName: 'o4 mini ft hosting Dz Unit', UnitOfMeasure: '1 Hour', Quantity: '24' }),
        aLine({ MeterName: 'gpt weird Tokens', UnitOfMeasure: '1K', Quantity: '7' }),
      ]),
      AZURE,
    );
    expect(
      rows.map(({ tokenClass, quantity, quantityUnit, observable }) => [
        tokenClass,
        quantity,
        quantityUnit,
        observable,
      ]),
    ).toEqual([
      ['output', 2_500n * 10n ** 12n, 'tokens', true],
      ['output', 2_500n * 10n ** 12n, 'tokens', true],
      ['other', 24n * 10n ** 12n, '1 Hour', false],
      ['other', 7n * 10n ** 12n, '1K', true],
    ]);
  });

  it('charges that no grammar reads are listed with their dollars', async () => {
    const { summary } = await readBill(csv(EA, [aLine({ MeterName: 'gpt weird Tokens' })]), AZURE);
    expect(summary.unparsed).toEqual([{ label: 'gpt weird Tokens', rows: 1, amountPico: 937_500_000_000n }]);
  });

  it('purchases, refunds, corrections and rounding are no use', async () => {
    const lines = [
      aLine({
        ChargeType: 'Purchase',
        MeterCategory: '',
        MeterName: '',
        ProductName: 'Azure OpenAI Provisioned Throughput',
      }),
      aLine({ ChargeType: 'Refund', CostInBillingCurrency: '-3' }),
      aLine({ CostInBillingCurrency: '-1' }),
      aLine({ ChargeType: 'RoundingAdjustment', CostInBillingCurrency: '0.000001' }),
      aLine({ ChargeType: 'UnusedReservation' }),
      aLine({ ChargeType: 'Tax', CostInBillingCurrency: '2' }),
      aLine({ CostInBillingCurrency: '0', Quantity: '5' }),
    ];
    const { rows } = await readBill(csv(EA, lines), AZURE);
    expect(rows.map(({ chargeCategory, observable }) => [chargeCategory, observable])).toEqual([
      ['purchase', false],
      ['refund', true],
      ['adjustment', true],
      ['adjustment', true],
      ['usage', false],
      ['tax', true],
      ['usage', true],
    ]);
    expect(rows[6]?.amountPico).toBe(0n);
  });

  it('other services are left out and counted by category and currency', async () => {
    const { rows, summary } = await readBill(
      csv(EA, [
        aLine(),
        aLine({ MeterCategory: 'Storage', CostInBillingCurrency: '5.64902E-05' }),
        aLine({ MeterCategory: 'Storage', CostInBillingCurrency: '1' }),
        aLine({
          MeterCategory: 'Virtual Machines',
          ChargeType: 'Refund',
          CostInBillingCurrency: '-2',
          BillingCurrencyCode: 'EUR',
        }),
      ]),
      AZURE,
    );
    expect(rows).toHaveLength(1);
    expect(summary.leftOut).toEqual([
      { chargeCategory: 'refund', currency: 'EUR', rows: 1, amount: -2n * 10n ** 12n },
      { chargeCategory: 'usage', currency: 'USD', rows: 2, amount: 1_000_056_490_200n },
    ]);
  });

  it('a Customer Agreement’s columns in their own case, with Microsoft’s own dollars', async () => {
    const { rows } = await readBill(
      csv(MCA, [
        {
          ...Object.fromEntries(
            Object.entries(aLine()).map(([name, cell]) => [name[0]?.toLowerCase() + name.slice(1), cell]),
          ),
          date: '09/02/2026',
          invoiceId: 'G123456',
          costInBillingCurrency: '0.80',
          costInUsd: '0.9375',
          paygCostInUsd: '1.25',
          billingCurrency: 'EUR',
          pricingCurrency: 'USD',
        },
      ]),
      { ...AZURE, fxRate: '2' },
    );
    expect(rows[0]).toMatchObject({
      day: '2026-09-02',
      amountPico: 937_500_000_000n,
      listPico: 1_250_000_000_000n,
      currency: 'EUR',
      originalAmount: 800_000_000_000n,
      isFinal: true,
    });
  });

  it('a bill in euros is converted by the rate of the request, and kept in euros without one', async () => {
    const bill = csv(EA, [aLine({ BillingCurrencyCode: 'EUR', CostInBillingCurrency: '10461.12' })]);
    const converted = await readBill(bill, { ...AZURE, fxRate: '1.0842' });
    expect(decimalFromPico(converted.rows[0]?.amountPico ?? 0n)).toBe('11341.946304');
    const { rows, summary } = await readBill(bill, AZURE);
    expect(rows[0]).toMatchObject({
      amountPico: null,
      listPico: null,
      currency: 'EUR',
      originalAmount: 10_461_120_000_000_000n,
    });
    expect(summary.unconverted).toEqual([{ currency: 'EUR', rows: 1, amount: 10_461_120_000_000_000n }]);
  });

  it('pay-as-you-go columns of older files', async () => {
    const { rows } = await readBill(
      csv(PAYG, [
        {
          SubscriptionGuid: SUBSCRIPTION,
          UsageDateTime: '2026-02-28T00:00:00Z',
          MeterCategory: 'Cognitive Services',
          MeterSubCategory: 'Azure OpenAI',
          MeterName: 'gpt 4.1 Outp Data Zone Tokens',
          UnitOfMeasure: '1K',
          UsageQuantity: '1000',
          PreTaxCost: '8.8',
          Currency: 'usd',
          InstanceId: RESOURCE,
        },
      ]),
      AZURE,
    );
    expect(rows[0]).toMatchObject({
      day: '2026-02-28',
      model: 'gpt-4.1',
      tokenClass: 'output',
      region: 'data_zone',
      amountPico: 8_800_000_000_000n,
      quantity: 1_000_000n * 10n ** 12n,
    });
  });

  it.each([
    ['Date', '2026-02-30', 'date must be a day'],
    ['CostInBillingCurrency', 'n/a', 'costinbillingcurrency must be a decimal number'],
    ['CostInBillingCurrency', '', 'costinbillingcurrency must be a decimal number, not empty'],
    ['BillingCurrencyCode', 'Euro', 'a currency is three letters'],
  ])('a fault of the cell %s (%s) is reported with its place', async (column, cell, sentence) => {
    const place = `line 3, column ${EA.indexOf(column) + 1}: ${sentence}`;
    await expect(readBill(csv(EA, [aLine(), aLine({ [column]: cell })]), AZURE)).rejects.toThrow(
      column === 'CostInBillingCurrency' && cell === '' ? sentence : place,
    );
  });

  it('is not taken as the bill of another provider', async () => {
    await expect(readBill(csv(EA, [aLine()]), { provider: 'openai' })).rejects.toThrow(
      'a bill of azure_openai',
    );
  });
});

/** The cost cell of a line of the real file, counted from its currency cell, which nothing quoted follows. */
function costInAtto(line: string): bigint {
  const cells: string[] = [];
  for (const [, quotedCell, plain] of line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g))
    cells.push(quotedCell ?? plain ?? '');
  const [, sign, whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:E([+-]\d+))?$/.exec(cells[17] ?? '') ?? [];
  const shift = 18 - fraction.length + Number(exponent);
  const digits = BigInt(whole + fraction);
  if (shift < 0) throw new Error(`more digits than are kept: ${cells[17]}`);
  return (sign === '-' ? -digits : digits) * 10n ** BigInt(shift);
}
