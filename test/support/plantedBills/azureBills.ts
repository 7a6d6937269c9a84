import type { ChargeCategory } from '../../../domain/billing/billedRow.js';
import {
  AWKWARD,
  CSV_TABLE,
  csvOf,
  decimal,
  halves,
  numbersFrom,
  type PlantedBill,
  type PlantedCharge,
} from './planted.js';

/** Microsoft's cost and usage details, Enterprise Agreement: the columns of a real export. */
const EA = [
  ...[
    'InvoiceSectionName',
    'AccountName',
    'AccountOwnerId',
    'SubscriptionId',
    'SubscriptionName',
    'ResourceGroup',
  ],
  ...['ResourceLocation', 'Date', 'ProductName', 'MeterCategory', 'MeterSubCategory', 'MeterId', 'MeterName'],
  ...['MeterRegion', 'UnitOfMeasure', 'Quantity', 'EffectivePrice', 'CostInBillingCurrency', 'CostCenter'],
  ...['ConsumedService', 'ResourceId', 'Tags', 'OfferId', 'AdditionalInfo', 'ServiceInfo1', 'ServiceInfo2'],
  ...[
    'ResourceName',
    'ReservationId',
    'ReservationName',
    'UnitPrice',
    'ProductOrderId',
    'ProductOrderName',
    'Term',
  ],
  ...['PublisherType', 'PublisherName', 'ChargeType', 'Frequency', 'PricingModel', 'AvailabilityZone'],
  ...['BillingAccountId', 'BillingAccountName', 'BillingCurrencyCode', 'BillingPeriodStartDate'],
  ...['BillingPeriodEndDate', 'BillingProfileId', 'BillingProfileName', 'InvoiceSectionId'],
  ...[
    'IsAzureCreditEligible',
    'PartNumber',
    'PayGPrice',
    'PlanName',
    'ServiceFamily',
    'CostAllocationRuleName',
  ],
  ...['benefitId', 'benefitName'],
];
/** Microsoft Customer Agreement, as Microsoft documents it. */
const MCA = [
  ...['invoiceId', 'previousInvoiceId', 'billingAccountId', 'billingAccountName', 'billingProfileId'],
  ...[
    'billingProfileName',
    'invoiceSectionId',
    'invoiceSectionName',
    'resellerName',
    'resellerMpnId',
    'costCenter',
  ],
  ...[
    'billingPeriodEndDate',
    'billingPeriodStartDate',
    'servicePeriodEndDate',
    'servicePeriodStartDate',
    'date',
  ],
  ...['serviceFamily', 'productOrderId', 'productOrderName', 'consumedService', 'meterId', 'meterName'],
  ...['meterCategory', 'meterSubCategory', 'meterRegion', 'productId', 'product', 'subscriptionId'],
  ...['subscriptionName', 'publisherType', 'publisherId', 'publisherName', 'resourceGroupName', 'resourceId'],
  ...['resourceLocation', 'location', 'effectivePrice', 'quantity', 'unitOfMeasure', 'chargeType'],
  ...['billingCurrency', 'pricingCurrency', 'costInBillingCurrency', 'costInPricingCurrency', 'costInUsd'],
  ...['paygCostInBillingCurrency', 'paygCostInUsd', 'exchangeRatePricingToBilling', 'exchangeRateDate'],
  ...[
    'isAzureCreditEligible',
    'serviceInfo1',
    'serviceInfo2',
    'additionalInfo',
    'tags',
    'payGPrice',
    'frequency',
  ],
  ...['term', 'reservationId', 'reservationName', 'pricingModel', 'unitPrice', 'costAllocationRuleName'],
  ...['benefitId', 'benefitName', 'provider'],
];

/** Days as the older schema writes them: M/D/YYYY. */
const usDay = (at: number) => `9/${(at % 30) + 1}/2026`;

function charge(
  amount: string,
  category: ChargeCategory,
  cells: Record<string, string> = {},
  isKept = true,
): PlantedCharge {
  const named: Record<string, string> = {
    SubscriptionId: 'AAAAAAAA-0000-4000-8000-000000000001',
    Date: usDay(4),
    MeterCategory: 'Foundry Models',
    MeterSubCategory: 'Azure OpenAI GPT5',
    MeterName: '5.4 mini cd Inp Gl 1M Tokens',
    UnitOfMeasure: '1M',
    Quantity: '0.5',
    CostInBillingCurrency: amount,
    ChargeType: 'Usage',
    BillingCurrencyCode: 'USD',
    ...cells,
  };
  return { category, amount, currency: named.BillingCurrencyCode ?? 'USD', isKept, cells: named };
}

function plantedCharges(seed: number): PlantedCharge[] {
  const next = numbersFrom(seed);
  const amount = () => decimal(next, 1 + next(12));
  return [
    ...Array.from({ length: 50 }, (_, at) => charge(amount(), 'usage', { Date: usDay(at) })),
    ...halves(amount()).map((part) => charge(part, 'usage')),
    charge('0', 'usage'),
    charge('7.5E-09', 'usage', { AdditionalInfo: '{"a": "b, c"}', Tags: AWKWARD }),
    charge('-0.000000000001', 'adjustment'),
    charge(`-${amount()}`, 'refund', { ChargeType: 'Refund' }),
    charge(amount(), 'purchase', { ChargeType: 'Purchase', ProductName: 'Azure OpenAI PTU' }),
    charge('0.004999', 'adjustment', { ChargeType: 'RoundingAdjustment' }),
    charge(amount(), 'usage', { ChargeType: 'UnusedReservation' }),
    charge(amount(), 'usage', { BillingCurrencyCode: 'CAD' }),
    charge(amount(), 'usage', { MeterName: 'a meter that nobody knows' }),
    charge(
      amount(),
      'usage',
      { MeterCategory: 'Storage', MeterSubCategory: 'Blob', MeterName: 'Hot LRS' },
      false,
    ),
    charge(amount(), 'purchase', { MeterCategory: 'Virtual Machines', ChargeType: 'Purchase' }, false),
    charge(amount(), 'usage', { Date: '8/31/2026' }),
  ];
}

/** The newer schema names the same columns in another case, and some by other names. */
const asCustomerAgreement = (cells: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries({
      ...cells,
      BillingCurrency: cells.BillingCurrencyCode ?? '',
      Product: cells.ProductName ?? '',
    }).map(([name, cell]) => [name.charAt(0).toLowerCase() + name.slice(1), cell]),
  );

/** DuckDB's sums of cost details, by Azure's charge types. */
export const sumOfCostDetails = (currency: string) => ({
  currency,
  amount: 'CostInBillingCurrency',
  category: `case ChargeType when 'Refund' then 'refund' when 'Purchase' then 'purchase' when 'RoundingAdjustment' then 'adjustment'
    else case when CostInBillingCurrency like '-%' then 'adjustment' else 'usage' end end`,
});

function bill(
  name: string,
  columns: readonly string[],
  charges: readonly PlantedCharge[],
  currency: string,
  write: (cells: Record<string, string>) => Record<string, string> = (cells) => cells,
): PlantedBill {
  return {
    name,
    filename: `${name.replaceAll(' ', '-')}.csv`,
    provider: 'azure_openai',
    format: 'azure_cost_details',
    bytes: csvOf(
      columns,
      charges.map(({ cells }) => write(cells)),
    ),
    charges,
    table: CSV_TABLE,
    sums: [sumOfCostDetails(currency)],
  };
}

const NEEDED = ['Date', 'MeterCategory', 'MeterName', 'Quantity', 'CostInBillingCurrency', 'ChargeType'];

export const AZURE_BILLS: readonly PlantedBill[] = [
  bill('Azure cost details EA', EA, plantedCharges(11), 'BillingCurrencyCode'),
  bill('Azure cost details MCA', MCA, plantedCharges(12), 'billingCurrency', asCustomerAgreement),
  bill(
    'Azure cost details without optional columns',
    NEEDED,
    // Nothing names another currency or product there.
    plantedCharges(13).filter(({ currency, cells }) => currency === 'USD' && cells.ProductName === undefined),
    `'USD'`,
  ),
];
