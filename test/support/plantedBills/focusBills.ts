import type { ChargeCategory } from '../../../domain/billing/billedRow.js';
import {
  AWKWARD,
  CSV_TABLE,
  csvOf,
  day,
  decimal,
  halves,
  LATE_DAY,
  numbersFrom,
  type PlantedBill,
  type PlantedCharge,
  parquetOf,
  parquetTable,
} from './planted.js';

/** Every column of Cost and Usage that is in all versions from 1.0 to 1.4 (FOCUS specification). */
const COMMON = [
  ...['AvailabilityZone', 'BilledCost', 'BillingAccountId', 'BillingAccountName', 'BillingCurrency'],
  ...['BillingPeriodEnd', 'BillingPeriodStart', 'ChargeCategory', 'ChargeClass', 'ChargeDescription'],
  ...['ChargeFrequency', 'ChargePeriodEnd', 'ChargePeriodStart', 'CommitmentDiscountCategory'],
  ...['CommitmentDiscountId', 'CommitmentDiscountName', 'CommitmentDiscountStatus', 'CommitmentDiscountType'],
  ...['ConsumedQuantity', 'ConsumedUnit', 'ContractedCost', 'ContractedUnitPrice', 'EffectiveCost'],
  ...['InvoiceIssuerName', 'ListCost', 'ListUnitPrice', 'PricingCategory', 'PricingQuantity', 'PricingUnit'],
  ...[
    'RegionId',
    'RegionName',
    'ResourceId',
    'ResourceName',
    'ResourceType',
    'ServiceCategory',
    'ServiceName',
  ],
  ...['SkuId', 'SkuPriceId', 'SubAccountId', 'SubAccountName', 'Tags'],
];
const FROM_1_1 = [
  ...[
    'CapacityReservationId',
    'CapacityReservationStatus',
    'CommitmentDiscountQuantity',
    'CommitmentDiscountUnit',
  ],
  ...['ServiceSubcategory', 'SkuMeter', 'SkuPriceDetails'],
];
const FROM_1_2 = [
  ...['BillingAccountType', 'InvoiceId', 'PricingCurrency', 'PricingCurrencyContractedUnitPrice'],
  ...['PricingCurrencyEffectiveCost', 'PricingCurrencyListUnitPrice', 'SubAccountType'],
];
const FROM_1_3 = [
  ...['AllocatedMethodDetails', 'AllocatedMethodId', 'AllocatedResourceId', 'AllocatedResourceName'],
  ...['AllocatedTags', 'ContractApplied', 'HostProviderName', 'ServiceProviderName'],
];
const UNTIL_1_3 = ['ProviderName', 'PublisherName'];
const FROM_1_4 = ['CommitmentProgramEligibilityDetails', 'InvoiceDetailId'];

export const FOCUS_COLUMNS: Readonly<Record<string, readonly string[]>> = {
  '1.0': [...COMMON, ...UNTIL_1_3],
  '1.1': [...COMMON, ...FROM_1_1, ...UNTIL_1_3],
  '1.2': [...COMMON, ...FROM_1_1, ...FROM_1_2, ...UNTIL_1_3],
  '1.3': [...COMMON, ...FROM_1_1, ...FROM_1_2, ...FROM_1_3, ...UNTIL_1_3],
  '1.4': [...COMMON, ...FROM_1_1, ...FROM_1_2, ...FROM_1_3, ...FROM_1_4],
};

function charge(
  amount: string,
  category: ChargeCategory,
  cells: Record<string, string>,
  isKept = true,
): PlantedCharge {
  const at = cells.ChargePeriodStart ?? `${day(3)}T00:00:00Z`;
  return {
    category,
    amount,
    currency: cells.BillingCurrency ?? 'USD',
    isKept,
    cells: {
      BilledCost: amount,
      EffectiveCost: amount,
      ListCost: amount,
      ContractedCost: amount,
      BillingAccountId: 'acct-1',
      BillingCurrency: 'USD',
      ChargeCategory: 'Usage',
      ChargeDescription: 'gpt-6-sol, input',
      ConsumedQuantity: '1000',
      ConsumedUnit: 'Tokens',
      ServiceName: 'OpenAI API',
      ProviderName: 'OpenAI',
      ServiceProviderName: 'OpenAI',
      ChargePeriodStart: at,
      ChargePeriodEnd: `${at.slice(0, 10)}T23:59:59Z`,
      ...cells,
    },
  };
}

function plantedCharges(version: string, digits = 12): PlantedCharge[] {
  const next = numbersFrom(version.charCodeAt(2));
  const amount = () => decimal(next, 1 + next(digits));
  const usage = Array.from({ length: 60 }, (_, at) =>
    charge(amount(), 'usage', { ChargePeriodStart: `${day(at)}T00:00:00Z` }),
  );
  const whole = amount();
  return [
    ...usage,
    ...halves(whole).map((part) => charge(part, 'usage', {})),
    charge('0', 'usage', {}),
    charge('1E-7', 'usage', {}),
    charge(digits === 12 ? '123456789.000000000001' : '1234.5', 'usage', { ChargeDescription: AWKWARD }),
    charge('-3.000000000001', 'adjustment', { ChargeDescription: 'gpt-6-sol, output' }),
    charge(`-${amount()}`, 'credit', {
      ChargeCategory: 'Credit',
      ChargeDescription: 'Grant',
      ConsumedQuantity: '',
    }),
    charge(amount(), 'tax', { ChargeCategory: 'Tax', ChargeDescription: 'VAT', ConsumedQuantity: '' }),
    charge('-2.5', 'refund', { ChargeCategory: 'Adjustment', ChargeDescription: 'Refund' }),
    charge(amount(), 'adjustment', { ChargeCategory: 'Adjustment', ChargeDescription: 'Rounding' }),
    charge(`-${amount()}`, 'adjustment', { ChargeClass: 'Correction' }),
    charge(amount(), 'purchase', { ChargeCategory: 'Purchase', ChargeDescription: 'Prepaid credits' }),
    charge(amount(), 'usage', { BillingCurrency: 'EUR' }),
    charge(amount(), 'usage', { BillingCurrency: 'JPY' }),
    charge(amount(), 'usage', { ProviderName: 'Slack', ServiceProviderName: 'Slack' }, false),
    charge(
      `-${amount()}`,
      'credit',
      { ChargeCategory: 'Credit', ProviderName: 'Slack', ServiceProviderName: 'Slack' },
      false,
    ),
    charge(amount(), 'usage', { ChargePeriodStart: `${LATE_DAY}T00:00:00Z` }),
  ];
}

/** FOCUS in DuckDB: the categories of the columns, and no negative usage. */
const SUM = {
  currency: '"BillingCurrency"',
  amount: '"BilledCost"',
  category: `case when "ChargeCategory" in ('Tax', 'Credit') then lower("ChargeCategory")
    when "ChargeCategory" = 'Purchase' then 'purchase'
    when "ChargeCategory" = 'Adjustment' and "ChargeDescription" = 'Refund' then 'refund'
    when "ChargeCategory" = 'Adjustment' or "ChargeClass" = 'Correction' or "BilledCost" like '-%' then 'adjustment'
    else 'usage' end`,
};

const REQUIRED = new Set([
  ...[
    'BilledCost',
    'BillingAccountId',
    'BillingCurrency',
    'ChargeCategory',
    'ChargeClass',
    'ChargeDescription',
  ],
  ...['ChargePeriodStart', 'ServiceName', 'ProviderName', 'ServiceProviderName'],
]);

function bill(name: string, version: string, columns: readonly string[]): PlantedBill {
  const charges = plantedCharges(version);
  return {
    name,
    filename: `${name.replaceAll(/[^a-z0-9.]+/gi, '-')}.csv`,
    provider: 'openai',
    format: 'focus',
    bytes: csvOf(
      columns,
      charges.map(({ cells }) => cells),
    ),
    charges,
    table: CSV_TABLE,
    sums: [SUM],
  };
}

/** Doubles of up to ten digits after the point name their decimal. */
const ofParquet = plantedCharges('1.2', 10);
const NUMBERS = ['BilledCost', 'EffectiveCost', 'ListCost', 'ContractedCost', 'ConsumedQuantity'];
const TIMES = ['BillingPeriodEnd', 'BillingPeriodStart', 'ChargePeriodEnd', 'ChargePeriodStart'];

const parquetBill: PlantedBill = {
  ...bill('FOCUS 1.2 Parquet', '1.2', []),
  filename: 'FOCUS-1.2.parquet',
  bytes: parquetOf(
    FOCUS_COLUMNS['1.2'] ?? [],
    ofParquet.map(({ cells }) => cells),
    { doubles: new Set(NUMBERS), times: new Set(TIMES) },
  ),
  charges: ofParquet,
  table: parquetTable('BilledCost'),
};

/** An export of each version with all of its columns, and one with those alone that it cannot do without. */
export const FOCUS_BILLS: readonly PlantedBill[] = [
  ...Object.entries(FOCUS_COLUMNS).map(([version, columns]) => bill(`FOCUS ${version}`, version, columns)),
  bill(
    'FOCUS 1.2 without optional columns',
    '1.2',
    (FOCUS_COLUMNS['1.2'] ?? []).filter((column) => REQUIRED.has(column)),
  ),
  parquetBill,
];
