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

/** AWS Data Exports, CUR 2.0 (AWS documentation, "Cost and Usage Report (CUR) 2.0" table dictionary). */
const CUR2 = [
  ...[
    'bill_bill_type',
    'bill_billing_entity',
    'bill_billing_period_end_date',
    'bill_billing_period_start_date',
  ],
  ...['bill_invoice_id', 'bill_invoicing_entity', 'bill_payer_account_id', 'bill_payer_account_name'],
  ...['cost_category', 'discount', 'discount_bundled_discount', 'discount_total_discount'],
  ...[
    'identity_line_item_id',
    'identity_time_interval',
    'line_item_availability_zone',
    'line_item_blended_cost',
  ],
  ...['line_item_blended_rate', 'line_item_currency_code', 'line_item_legal_entity'],
  ...['line_item_line_item_description', 'line_item_line_item_type', 'line_item_net_unblended_cost'],
  ...['line_item_net_unblended_rate', 'line_item_normalization_factor', 'line_item_normalized_usage_amount'],
  ...['line_item_operation', 'line_item_product_code', 'line_item_resource_id', 'line_item_tax_type'],
  ...['line_item_unblended_cost', 'line_item_unblended_rate', 'line_item_usage_account_id'],
  ...['line_item_usage_account_name', 'line_item_usage_amount', 'line_item_usage_end_date'],
  ...[
    'line_item_usage_start_date',
    'line_item_usage_type',
    'pricing_currency',
    'pricing_lease_contract_length',
  ],
  ...['pricing_offering_class', 'pricing_public_on_demand_cost', 'pricing_public_on_demand_rate'],
  ...[
    'pricing_purchase_option',
    'pricing_rate_code',
    'pricing_rate_id',
    'pricing_term',
    'pricing_unit',
    'product',
  ],
  ...['product_comment', 'product_fee_code', 'product_fee_description', 'product_from_location'],
  ...['product_from_location_type', 'product_from_region_code', 'product_instance_family'],
  ...['product_instance_type', 'product_instancesku', 'product_location', 'product_location_type'],
  ...['product_operation', 'product_pricing_unit', 'product_product_family', 'product_region_code'],
  ...['product_servicecode', 'product_sku', 'product_to_location', 'product_to_location_type'],
  ...['product_to_region_code', 'product_usagetype', 'reservation_amortized_upfront_cost_for_usage'],
  ...[
    'reservation_effective_cost',
    'reservation_reservation_a_r_n',
    'reservation_subscription_id',
    'resource_tags',
  ],
  ...[
    'savings_plan_savings_plan_a_r_n',
    'savings_plan_savings_plan_effective_cost',
    'savings_plan_used_commitment',
  ],
  ...['split_line_item_actual_usage', 'split_line_item_parent_resource_id', 'split_line_item_split_cost'],
];

/** The legacy report writes each column as section/Name. */
const LEGACY: Readonly<Record<string, string>> = {
  bill_bill_type: 'bill/BillType',
  bill_billing_entity: 'bill/BillingEntity',
  bill_billing_period_end_date: 'bill/BillingPeriodEndDate',
  bill_billing_period_start_date: 'bill/BillingPeriodStartDate',
  bill_invoice_id: 'bill/InvoiceId',
  bill_payer_account_id: 'bill/PayerAccountId',
  identity_line_item_id: 'identity/LineItemId',
  identity_time_interval: 'identity/TimeInterval',
  line_item_blended_cost: 'lineItem/BlendedCost',
  line_item_currency_code: 'lineItem/CurrencyCode',
  line_item_legal_entity: 'lineItem/LegalEntity',
  line_item_line_item_description: 'lineItem/LineItemDescription',
  line_item_line_item_type: 'lineItem/LineItemType',
  line_item_operation: 'lineItem/Operation',
  line_item_product_code: 'lineItem/ProductCode',
  line_item_resource_id: 'lineItem/ResourceId',
  line_item_tax_type: 'lineItem/TaxType',
  line_item_unblended_cost: 'lineItem/UnblendedCost',
  line_item_unblended_rate: 'lineItem/UnblendedRate',
  line_item_usage_account_id: 'lineItem/UsageAccountId',
  line_item_usage_amount: 'lineItem/UsageAmount',
  line_item_usage_end_date: 'lineItem/UsageEndDate',
  line_item_usage_start_date: 'lineItem/UsageStartDate',
  line_item_usage_type: 'lineItem/UsageType',
  pricing_public_on_demand_cost: 'pricing/publicOnDemandCost',
  pricing_unit: 'pricing/unit',
  product: 'product/ProductName',
  product_region_code: 'product/regionCode',
  product_servicecode: 'product/servicecode',
};

function charge(
  amount: string,
  category: ChargeCategory,
  type: string,
  cells: Record<string, string> = {},
  isKept = true,
): PlantedCharge {
  const start = cells.line_item_usage_start_date ?? `${day(6)}T10:00:00Z`;
  const named: Record<string, string> = {
    bill_payer_account_id: '111122223333',
    bill_billing_period_start_date: '2026-09-01T00:00:00Z',
    bill_billing_period_end_date: '2026-10-01T00:00:00Z',
    bill_bill_type: 'Anniversary',
    bill_billing_entity: 'AWS',
    line_item_usage_account_id: '444455556666',
    line_item_line_item_type: type,
    line_item_usage_start_date: start,
    line_item_usage_end_date: `${start.slice(0, 10)}T11:00:00Z`,
    line_item_product_code: 'AmazonBedrock',
    line_item_usage_type: type === 'Usage' ? 'USE1-Nova2.0Lite-input-tokens' : '',
    line_item_usage_amount: type === 'Usage' ? '1234.5' : '',
    line_item_currency_code: 'USD',
    line_item_unblended_cost: amount,
    line_item_line_item_description: '$0.00033 per 1K input tokens',
    pricing_unit: '1K tokens',
    product: '{"product_name":"Amazon Bedrock"}',
    product_servicecode: 'AmazonBedrock',
    ...cells,
  };
  return { category, amount, currency: named.line_item_currency_code ?? 'USD', isKept, cells: named };
}

function plantedCharges(seed: number, digits: number): PlantedCharge[] {
  const next = numbersFrom(seed);
  const amount = () => decimal(next, 1 + next(digits));
  const ec2 = {
    line_item_product_code: 'AmazonEC2',
    product_servicecode: 'AmazonEC2',
    product: '{"product_name":"Amazon EC2"}',
    line_item_usage_type: 'BoxUsage:t3.micro',
  };
  return [
    ...Array.from({ length: 60 }, (_, at) =>
      charge(amount(), 'usage', 'Usage', { line_item_usage_start_date: `${day(at)}T05:00:00Z` }),
    ),
    ...halves(amount()).map((part) => charge(part, 'usage', 'Usage')),
    charge('0', 'usage', 'Usage'),
    charge('3.3E-7', 'usage', 'Usage', { line_item_line_item_description: AWKWARD }),
    charge(amount(), 'usage', 'Usage', { line_item_usage_type: 'USE1-nobody-knows-this' }),
    charge('-0.25', 'adjustment', 'Usage'),
    charge(`-${amount()}`, 'credit', 'Credit'),
    charge(`-${amount()}`, 'refund', 'Refund'),
    charge(amount(), 'tax', 'Tax', { line_item_tax_type: 'VAT' }),
    charge(amount(), 'purchase', 'Fee'),
    charge(amount(), 'usage', 'DiscountedUsage'),
    charge(amount(), 'usage', 'SavingsPlanCoveredUsage'),
    charge(`-${amount()}`, 'adjustment', 'SavingsPlanNegation'),
    charge(amount(), 'purchase', 'SavingsPlanRecurringFee'),
    charge(amount(), 'purchase', 'RIFee'),
    charge(`-${amount()}`, 'adjustment', 'EdpDiscount'),
    charge(`-${amount()}`, 'adjustment', 'BundledDiscount'),
    charge(amount(), 'usage', 'Usage', ec2, false),
    charge(amount(), 'tax', 'Tax', ec2, false),
    charge(`-${amount()}`, 'credit', 'Credit', ec2, false),
    charge(amount(), 'usage', 'Usage', { line_item_usage_start_date: `${LATE_DAY}T23:00:00Z` }),
  ];
}

/** DuckDB's sums of a report, by AWS's types. */
export const sumOfCur = (type: string, cost: string, currency: string) => ({
  currency,
  amount: cost,
  category: `case ${type} when 'Credit' then 'credit' when 'Refund' then 'refund' when 'Tax' then 'tax' when 'Fee' then 'purchase'
    when 'RIFee' then 'purchase' when 'SavingsPlanRecurringFee' then 'purchase'
    else case when cast(${cost} as varchar) like '-%' then 'adjustment' else 'usage' end end`,
});
const CUR2_SUM = sumOfCur('line_item_line_item_type', 'line_item_unblended_cost', 'line_item_currency_code');

const bill = (
  name: string,
  filename: string,
  format: PlantedBill['format'],
  charges: readonly PlantedCharge[],
  rest: Pick<PlantedBill, 'bytes' | 'table' | 'sums'>,
): PlantedBill => ({ name, filename, provider: 'aws_bedrock', format, charges, ...rest });

const ofCur2 = plantedCharges(31, 12);
const ofLegacy = plantedCharges(32, 12);
const withoutOptional = plantedCharges(33, 12);
/** Doubles of up to ten digits after the point name their decimal. */
const ofParquet = plantedCharges(34, 10);

const legacyOf = (cells: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(LEGACY).map(([name, legacy]) => [
      legacy,
      name === 'product'
        ? (/"product_name":"([^"]*)"/.exec(cells.product ?? '')?.[1] ?? '')
        : (cells[name] ?? ''),
    ]),
  );

const NEEDED = [
  ...[
    'line_item_line_item_type',
    'line_item_product_code',
    'line_item_usage_account_id',
    'line_item_usage_type',
  ],
  ...['line_item_unblended_cost', 'line_item_currency_code', 'line_item_usage_amount', 'pricing_unit'],
  ...['line_item_usage_start_date', 'line_item_usage_end_date', 'line_item_line_item_description'],
];

export const AWS_BILLS: readonly PlantedBill[] = [
  bill('AWS CUR 2.0 CSV', 'aws-cur2.csv', 'aws_cur2', ofCur2, {
    bytes: csvOf(
      CUR2,
      ofCur2.map(({ cells }) => cells),
    ),
    table: CSV_TABLE,
    sums: [CUR2_SUM],
  }),
  bill('AWS CUR 2.0 Parquet', 'aws-cur2.parquet', 'aws_cur2', ofParquet, {
    bytes: parquetOf(
      CUR2,
      ofParquet.map(({ cells }) => cells),
      {
        doubles: new Set(['line_item_unblended_cost', 'line_item_usage_amount']),
        times: new Set(CUR2.filter((name) => name.endsWith('_date'))),
      },
    ),
    table: parquetTable('line_item_unblended_cost'),
    sums: [CUR2_SUM],
  }),
  bill('AWS legacy CUR', 'aws-cur-legacy.csv', 'aws_cur_legacy', ofLegacy, {
    bytes: csvOf(
      Object.values(LEGACY),
      ofLegacy.map(({ cells }) => legacyOf(cells)),
    ),
    table: CSV_TABLE,
    sums: [sumOfCur('"lineItem/LineItemType"', '"lineItem/UnblendedCost"', '"lineItem/CurrencyCode"')],
  }),
  bill('AWS CUR 2.0 without optional columns', 'aws-cur2-needed.csv', 'aws_cur2', withoutOptional, {
    bytes: csvOf(
      NEEDED,
      withoutOptional.map(({ cells }) => cells),
    ),
    table: CSV_TABLE,
    sums: [CUR2_SUM],
  }),
];
