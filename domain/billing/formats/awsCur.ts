import { dayOf, MICROS_PER_DAY, parseInstant } from '../../period.js';
import type { BilledRow, ChargeCategory } from '../billedRow.js';
import { type BedrockAttributes, parseBedrockCharge } from '../grammars/bedrockUsageType.js';
import type { ParsedLabel } from '../grammars/parsedLabel.js';
import { type FxRate, keepText, toPicoOrNull } from '../pageRow.js';
import type { BillingFormat } from '../sources.js';
import {
  CellFault,
  cellOf,
  currencyOf,
  decimalOf,
  type PlainCharge,
  reportOfInvoice,
  requiredDecimal,
  type TableFormat,
  type TableRecord,
  textOf,
} from './tableFormat.js';

/** AWS Cost and Usage Report: CUR 2.0 (snake case, product map) and legacy (AWS user guides, column dictionaries). */
interface CurColumns {
  /** Unique in a time interval of a report (AWS, Data Exports User Guide, "Identity columns"). */
  identity: readonly string[];
  interval: readonly string[];
  period: readonly string[];
  payer: readonly string[];
  account: readonly string[];
  invoice: readonly string[];
  type: readonly string[];
  start: readonly string[];
  end: readonly string[];
  productCode: readonly string[];
  productName: readonly string[];
  usageType: readonly string[];
  description: readonly string[];
  amount: readonly string[];
  unit: readonly string[];
  cost: readonly string[];
  netCost: readonly string[];
  listCost: readonly string[];
  currency: readonly string[];
  /** JSON of all attributes of the product. */
  product: readonly string[];
  model: readonly string[];
  inferenceType: readonly string[];
  feature: readonly string[];
}

const CUR2: CurColumns = {
  identity: ['identity_line_item_id'],
  interval: ['identity_time_interval'],
  period: ['bill_billing_period_start_date'],
  payer: ['bill_payer_account_id'],
  account: ['line_item_usage_account_id'],
  invoice: ['bill_invoice_id'],
  type: ['line_item_line_item_type'],
  start: ['line_item_usage_start_date'],
  end: ['line_item_usage_end_date'],
  productCode: ['line_item_product_code'],
  productName: ['product_product_name', 'product.product_name', 'product_servicename'],
  usageType: ['line_item_usage_type'],
  description: ['line_item_line_item_description'],
  amount: ['line_item_usage_amount'],
  unit: ['pricing_unit'],
  cost: ['line_item_unblended_cost'],
  netCost: ['line_item_net_unblended_cost'],
  listCost: ['pricing_public_on_demand_cost'],
  currency: ['line_item_currency_code'],
  product: ['product'],
  model: ['product.model', 'product_model'],
  inferenceType: ['product.inferencetype', 'product_inference_type', 'product_inferencetype'],
  feature: ['product.feature', 'product_feature'],
};

const LEGACY: CurColumns = {
  identity: ['identity/lineitemid'],
  interval: ['identity/timeinterval'],
  period: ['bill/billingperiodstartdate'],
  payer: ['bill/payeraccountid'],
  account: ['lineitem/usageaccountid'],
  invoice: ['bill/invoiceid'],
  type: ['lineitem/lineitemtype'],
  start: ['lineitem/usagestartdate'],
  end: ['lineitem/usageenddate'],
  productCode: ['lineitem/productcode'],
  productName: ['product/productname', 'product/servicename'],
  usageType: ['lineitem/usagetype'],
  description: ['lineitem/lineitemdescription'],
  amount: ['lineitem/usageamount'],
  unit: ['pricing/unit'],
  cost: ['lineitem/unblendedcost'],
  netCost: ['lineitem/netunblendedcost'],
  listCost: ['pricing/publicondemandcost'],
  currency: ['lineitem/currencycode'],
  product: [],
  model: ['product/model'],
  inferenceType: ['product/inferencetype'],
  feature: ['product/feature'],
};

export const awsCur2 = curFormat('aws_cur2', 'an AWS Cost and Usage Report (CUR 2.0)', CUR2);
export const awsCurLegacy = curFormat('aws_cur_legacy', 'a legacy AWS Cost and Usage Report', LEGACY);

function curFormat(format: BillingFormat, name: string, of: CurColumns): TableFormat {
  const required = [of.type, of.start, of.productCode, of.usageType, of.amount, of.cost].map(
    ([column]) => column as string,
  );
  return {
    format,
    name,
    required,
    reads: new Set(Object.values(of as unknown as Record<string, string[]>).flat()),
    isHeader: (columns) => required.every((column) => columns.has(column)),
    rowsOf: (record, { fxRate }) => rowsOf(record, of, fxRate),
    identityOf: (record) => identityOf(record, of),
    chargeOf: (record): PlainCharge => {
      const amount = requiredDecimal(record, of.cost);
      return {
        chargeCategory: awsCategory(cellOf(record, of.type) ?? '', amount),
        currency: currencyOf(record, of.currency),
        amount,
        // Lines of another month's invoice do not cover the rest of that day.
        ...(reportOf(record, of) === ''
          ? { covers: { account: textOf(record, of.payer), day: dayOf(timeOf(record, of.start)) } }
          : {}),
      };
    },
  };
}

function rowsOf(record: TableRecord, of: CurColumns, fxRate: FxRate): BilledRow[] | null {
  const usageType = cellOf(record, of.usageType) ?? '';
  const attributes = attributesOf(record, of);
  const productName = attributes.productName ?? '';
  if (!isBedrockCharge(cellOf(record, of.productCode) ?? '', productName, usageType)) return null;
  const startMicros = timeOf(record, of.start);
  const end = cellOf(record, of.end);
  const original = requiredDecimal(record, of.cost);
  const currency = currencyOf(record, of.currency);
  const convert = (amount: bigint | null) =>
    amount === null ? null : toPicoOrNull(amount, currency, fxRate);
  const label = parseBedrockCharge(usageType, productName, attributes);
  const type = cellOf(record, of.type) ?? '';
  const category = awsCategory(type, original);
  const isUsage = category === 'usage' || (category === 'adjustment' && awsCategory(type, 0n) === 'usage');
  return [
    {
      feed: 'cost',
      report: reportOf(record, of),
      account: textOf(record, of.payer),
      day: dayOf(startMicros),
      periodStartMicros: startMicros,
      periodEndMicros: end === undefined ? startMicros + MICROS_PER_DAY : timeOf(record, of.end),
      chargeCategory: category,
      lineItem: keepText(isUsage ? usageType : (cellOf(record, of.description) ?? type)),
      observable: label.observable,
      ...(isUsage ? classOf(label) : NO_CLASS),
      region: null,
      project: textOf(record, of.account),
      apiKey: null,
      ...countOf(record, of, isUsage ? label : undefined),
      amountPico: convert(original),
      listPico: convert(decimalOf(record, of.listCost)),
      contractedPico: null,
      netPico: convert(decimalOf(record, of.netCost)),
      currency,
      originalAmount: original,
      isFinal: cellOf(record, of.invoice) !== undefined,
    },
  ];
}

/**
 * Unique together with its time interval (AWS); includes more fields of the line, so that only equal lines count
 * as one.
 */
function identityOf(record: TableRecord, of: CurColumns): string | undefined {
  const id = cellOf(record, of.identity);
  if (id === undefined) return undefined;
  const beside = [of.interval, of.period, of.start, of.type, of.account, of.amount, of.cost];
  return keepText([id, ...beside.map((columns) => cellOf(record, columns) ?? '')].join('|'));
}

const MONTH = /^\d{4}-\d{2}/;

/** AWS's billing periods are months, in UTC. */
function reportOf(record: TableRecord, of: CurColumns): string {
  const month = MONTH.exec(cellOf(record, of.period) ?? '')?.[0];
  const start = cellOf(record, of.start) ?? '';
  return month === undefined || start.startsWith(month) ? '' : reportOfInvoice(month);
}

type ClassFields = Pick<BilledRow, 'model' | 'tokenClass' | 'serviceTier' | 'isBatch' | 'longContext'>;

const NO_CLASS: ClassFields = {
  model: null,
  tokenClass: 'other',
  serviceTier: 'standard',
  isBatch: null,
  longContext: null,
};

function classOf({ model, tokenClass, serviceTier, isBatch, longContext }: ParsedLabel): ClassFields {
  return { model, tokenClass, serviceTier, isBatch, longContext };
}

function countOf(
  record: TableRecord,
  of: CurColumns,
  label: ParsedLabel | undefined,
): Pick<BilledRow, 'quantity' | 'quantityUnit'> {
  const quantity = label ? decimalOf(record, of.amount) : null;
  if (!label || quantity === null || quantity < 0n) return { quantity: null, quantityUnit: null };
  const unitTokens = awsUnitTokens(cellOf(record, of.unit), label);
  return unitTokens === undefined
    ? { quantity, quantityUnit: textOf(record, of.unit) }
    : { quantity: quantity * unitTokens, quantityUnit: 'tokens' };
}

/** Attributes of the product, from their own columns or the map; read only for possible Bedrock lines. */
function attributesOf(
  record: TableRecord,
  of: CurColumns,
): BedrockAttributes & { productName?: string | undefined } {
  const map = mapOf(record, of);
  return {
    productName: cellOf(record, of.productName) ?? map.product_name ?? map.servicename,
    model: cellOf(record, of.model) ?? map.model,
    inferenceType: cellOf(record, of.inferenceType) ?? map.inferencetype,
    feature: cellOf(record, of.feature) ?? map.feature,
  };
}

function mapOf(record: TableRecord, of: CurColumns): Record<string, string | undefined> {
  const text = cellOf(record, of.product);
  const isBedrock = /^AmazonBedrock/i.test(cellOf(record, of.productCode) ?? '');
  if (text === undefined || !(isBedrock || text.includes('Bedrock'))) return {};
  return Object.fromEntries(
    fieldsOf(text).map(([key, value]) => [
      key.toLowerCase().replace(/^inference_type$/, 'inferencetype'),
      typeof value === 'string' ? value : undefined,
    ]),
  );
}

/** A map in a database's notation: `{product_name=Amazon Bedrock, region=us-east-1}`. */
const PRINTED = /(?:^\{|, )(\w+)=(.*?)(?=, \w+=|\}$)/g;

/** Fields of a map in an export's JSON or in a database's notation; empty for any other text. */
function fieldsOf(text: string): [string, unknown][] {
  try {
    return Object.entries(JSON.parse(text) as object);
  } catch {
    return [...text.matchAll(PRINTED)].map(([, key = '', value = '']) => [key, value]);
  }
}

/** A time in the notation of tools that rewrite exports; all of them mean UTC. */
const REWRITTEN = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(?: ?(?:UTC|Z|\+00(?::?00)?))?$/;

/** Reads `2026-09-01T00:00:00Z` and the notations of databases: `2026-09-01 00:00:00`, `2026-09-01 00:00:00+00`. */
function timeOf(record: TableRecord, columns: readonly string[]): bigint {
  const text = cellOf(record, columns) ?? '';
  const [, day, time] = REWRITTEN.exec(text) ?? [];
  const instant = parseInstant(day === undefined ? text : `${day}T${time}Z`);
  if (instant) return instant.micros;
  throw new CellFault(
    columns[0] ?? '',
    `${columns[0]} must be a time such as 2026-09-01T00:00:00Z, not "${text.slice(0, 40)}"`,
  );
}

/** AWS record types (Data Exports User Guide, "Line item columns"), written with and without spaces. */
export const AWS_RECORD_TYPES: Readonly<Record<ChargeCategory, readonly string[]>> = {
  usage: ['Usage', 'DiscountedUsage', 'SavingsPlanCoveredUsage'],
  tax: ['Tax'],
  credit: ['Credit'],
  refund: ['Refund'],
  purchase: ['Fee', 'RIFee', 'Recurring', 'Upfront', 'SavingsPlanUpfrontFee', 'SavingsPlanRecurringFee'],
  adjustment: [
    'Discount',
    'BundledDiscount',
    'EdpDiscount',
    'PrivateRateDiscount',
    'SppDiscount',
    'DistributorDiscount',
    'RiVolumeDiscount',
    'SavingsPlanNegation',
    'Enterprise Discount Program Discount',
    'Solution Provider Program Discount',
    'Other out-of-cycle charges',
    'Support',
    'Support fee',
  ],
};

const CATEGORY_OF = new Map<string, ChargeCategory>(
  Object.entries(AWS_RECORD_TYPES).flatMap(([category, types]) =>
    types.map((type): [string, ChargeCategory] => [compact(type), category as ChargeCategory]),
  ),
);

function compact(type: string): string {
  return type.replace(/[^a-z]/gi, '').toLowerCase();
}

/** A negative amount is never usage; an unknown type is an adjustment, which appears only in the statement. */
export function awsCategory(recordType: string, amount: bigint): ChargeCategory {
  const category = CATEGORY_OF.get(compact(recordType)) ?? 'adjustment';
  return category === 'usage' && amount < 0n ? 'adjustment' : category;
}

const TOKENS_OF_UNIT: readonly [RegExp, bigint][] = [
  [/^(?:1m|1,?000,?000|million) ?(?:input |output )?tokens?$/i, 1_000_000n],
  [/^(?:1k|1,?000|thousand) ?(?:input |output )?tokens?$/i, 1_000n],
  [/^tokens?$/i, 1n],
];

/** Tokens of one unit, by the bill's unit, else by the usage type; undefined: neither counts tokens. */
export function awsUnitTokens(unit: string | undefined, label: ParsedLabel): bigint | undefined {
  if (!label.recognised || !label.observable) return undefined;
  const tokens = TOKENS_OF_UNIT.find(([pattern]) => pattern.test(unit ?? ''))?.[1];
  return tokens ?? label.unitTokens;
}

/**
 * Whether a charge is for Amazon Bedrock: for its own services, or for models that a seller bills through the
 * marketplace.
 */
export function isBedrockCharge(productCode: string, productName: string, usageType: string): boolean {
  return (
    /^AmazonBedrock/i.test(productCode) ||
    /\bBedrock\b/i.test(productName) ||
    /-MP:.*(?:TokenCount|_tokens(?:_|-))/.test(usageType)
  );
}
