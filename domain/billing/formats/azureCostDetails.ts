import { divideHalfEven, type Pico } from '../../money.js';
import { type BilledRow, type ChargeCategory, categoryOfLabel } from '../billedRow.js';
import { parseAzureMeter } from '../grammars/azureMeter.js';
import { type ParsedLabel, UNOBSERVABLE_LABEL } from '../grammars/parsedLabel.js';
import { type FxRate, keepText, toPicoOrNull } from '../pageRow.js';
import {
  cellOf,
  currencyOf,
  dayOfCell,
  decimalOf,
  type PlainCharge,
  product,
  reportOfInvoice,
  requiredDecimal,
  type TableFormat,
  type TableRecord,
  textOf,
  timesOfDay,
} from './tableFormat.js';

/**
 * Azure's cost details export. Enterprise Agreement, Customer Agreement and pay-as-you-go exports name columns
 * differently.
 */
const COLUMNS = {
  day: ['date', 'usagedatetime', 'usagedate'],
  periodStart: ['billingperiodstartdate'],
  /** The last day of the period. */
  periodEnd: ['billingperiodenddate'],
  cost: ['costinbillingcurrency', 'cost', 'pretaxcost', 'extendedcost'],
  costUsd: ['costinusd'],
  currency: ['billingcurrencycode', 'billingcurrency', 'currency', 'currencycode'],
  quantity: ['quantity', 'usagequantity', 'consumedquantity'],
  unit: ['unitofmeasure'],
  category: ['metercategory'],
  product: ['metersubcategory'],
  meter: ['metername', 'meter'],
  productName: ['productname', 'product'],
  chargeType: ['chargetype'],
  account: ['subscriptionid', 'subscriptionguid'],
  resource: ['resourceid', 'instanceid', 'instancename'],
  listUsd: ['paygcostinusd'],
  list: ['paygcostinbillingcurrency'],
  listPrice: ['paygprice'],
  priceCurrency: ['pricingcurrency'],
  contractPrice: ['unitprice'],
  invoice: ['invoiceid', 'invoicenumber'],
} as const;

const REQUIRED = ['date', 'metercategory', 'metername', 'quantity', 'costinbillingcurrency'] as const;

const has = (columns: ReadonlySet<string>, names: readonly string[]) =>
  names.some((name) => columns.has(name));

export const azureCostDetails: TableFormat = {
  format: 'azure_cost_details',
  name: 'an Azure cost details export',
  required: REQUIRED,
  reads: new Set<string>(Object.values(COLUMNS).flat()),
  isHeader: (columns) =>
    has(columns, COLUMNS.day) &&
    has(columns, COLUMNS.cost) &&
    has(columns, COLUMNS.quantity) &&
    columns.has('metercategory') &&
    has(columns, COLUMNS.meter) &&
    !columns.has('chargeperiodstart'),
  rowsOf: (record, { fxRate }) => (isModelCharge(record) ? [rowOf(record, fxRate)] : null),
  chargeOf: (record): PlainCharge => ({
    chargeCategory: categoryOf(record, cellOf(record, COLUMNS.meter) ?? '', true),
    currency: currencyOf(record, COLUMNS.currency),
    amount: requiredDecimal(record, COLUMNS.cost),
  }),
};

/** Whether a charge is for Azure's model services; a purchase names its service in the product only. */
function isModelCharge(record: TableRecord): boolean {
  const category = cellOf(record, COLUMNS.category) ?? '';
  if (isAzureModelCategory(category)) return true;
  return /openai|\bfoundry\b/i.test(cellOf(record, COLUMNS.productName) ?? '');
}

function rowOf(record: TableRecord, fxRate: FxRate): BilledRow {
  const day = dayOfCell(record, COLUMNS.day);
  const meter = cellOf(record, COLUMNS.meter) ?? cellOf(record, COLUMNS.productName) ?? '(no meter)';
  const label = labelOf(record, meter);
  const currency = currencyOf(record, COLUMNS.currency);
  const original = requiredDecimal(record, COLUMNS.cost);
  const quantity = decimalOf(record, COLUMNS.quantity);
  const unitTokens = azureUnitTokens(cellOf(record, COLUMNS.unit)) ?? label.unitTokens;
  const isTokens = label.recognised && label.observable && unitTokens !== undefined;
  return {
    feed: 'cost',
    report: reportOf(record, day),
    account: textOf(record, COLUMNS.account)?.toLowerCase() ?? null,
    day,
    ...timesOfDay(day),
    chargeCategory: categoryOf(record, meter, label.recognised),
    lineItem: keepText(meter),
    observable: label.observable,
    model: label.model,
    tokenClass: label.tokenClass,
    serviceTier: label.serviceTier,
    isBatch: label.isBatch,
    longContext: label.longContext,
    region: label.region,
    project: resourceOf(cellOf(record, COLUMNS.resource)),
    apiKey: null,
    ...countOf(quantity, isTokens ? unitTokens : undefined, record),
    ...moneyOf(record, original, quantity, currency, fxRate),
    currency,
    originalAmount: original,
    isFinal: cellOf(record, COLUMNS.invoice) === undefined ? null : true,
  };
}

function reportOf(record: TableRecord, day: string): string {
  const dayIn = (columns: readonly string[]) =>
    cellOf(record, columns) === undefined ? undefined : dayOfCell(record, columns);
  const [from, last] = [dayIn(COLUMNS.periodStart), dayIn(COLUMNS.periodEnd)];
  const isOwn = from === undefined || (day >= from && (last === undefined || day <= last));
  return isOwn ? '' : reportOfInvoice(from);
}

/** Paid but unused capacity has its own lines, which the meter's name marks. */
function labelOf(record: TableRecord, meter: string): ParsedLabel {
  if (/^unused/i.test(cellOf(record, COLUMNS.chargeType) ?? '')) return UNOBSERVABLE_LABEL;
  return parseAzureMeter(meter, cellOf(record, COLUMNS.product) ?? '');
}

function countOf(
  quantity: bigint | null,
  unitTokens: bigint | undefined,
  record: TableRecord,
): Pick<BilledRow, 'quantity' | 'quantityUnit'> {
  if (quantity === null || quantity < 0n) return { quantity: null, quantityUnit: null };
  if (unitTokens !== undefined) return { quantity: quantity * unitTokens, quantityUnit: 'tokens' };
  return { quantity, quantityUnit: textOf(record, COLUMNS.unit) };
}

/** Dollars as billed, as converted by Microsoft, or by the given rate; unit prices are in the pricing currency. */
function moneyOf(
  record: TableRecord,
  original: bigint,
  quantity: bigint | null,
  currency: string,
  fxRate: FxRate,
): Pick<BilledRow, 'amountPico' | 'listPico' | 'contractedPico' | 'netPico'> {
  const costUsd = currency === 'USD' ? null : decimalOf(record, COLUMNS.costUsd);
  const convert = (amount: bigint | null): Pico | null => {
    if (amount === null) return null;
    if (costUsd === null) return toPicoOrNull(amount, currency, fxRate);
    // The rate of this line: Microsoft's dollars for its amount.
    if (original === 0n) return null;
    const sign = original < 0n ? -1n : 1n;
    return divideHalfEven(amount * costUsd * sign, original * sign);
  };
  const priceCurrency =
    cellOf(record, COLUMNS.priceCurrency) === undefined
      ? currency
      : currencyOf(record, COLUMNS.priceCurrency);
  const priced = (columns: readonly string[]): Pico | null => {
    const price = decimalOf(record, columns);
    if (price === null || price === 0n || quantity === null) return null;
    const amount = product(price, quantity);
    if (priceCurrency === 'USD') return amount;
    return priceCurrency === currency ? convert(amount) : null;
  };
  return {
    amountPico: costUsd ?? toPicoOrNull(original, currency, fxRate),
    listPico:
      decimalOf(record, COLUMNS.listUsd) ??
      convert(decimalOf(record, COLUMNS.list)) ??
      priced(COLUMNS.listPrice),
    contractedPico: priced(COLUMNS.contractPrice),
    netPico: null,
  };
}

function categoryOf(record: TableRecord, meter: string, recognised: boolean): ChargeCategory {
  const amount = requiredDecimal(record, COLUMNS.cost);
  return azureCategory(cellOf(record, COLUMNS.chargeType) ?? '', meter, recognised, amount);
}

/** Words that Azure's export and its query API share. */

/** The meter categories under which Azure bills language models: the old name, and the new one since 2025. */
export const AZURE_MODEL_CATEGORIES = ['Cognitive Services', 'Foundry Models'] as const;

const CATEGORIES: ReadonlySet<string> = new Set([
  ...AZURE_MODEL_CATEGORIES.map((name) => name.toLowerCase()),
  'azure openai',
  'azure openai service',
]);

export function isAzureModelCategory(category: string): boolean {
  return CATEGORIES.has(category.trim().toLowerCase());
}

const UNIT = /^(\d{1,9})\s?([km])?(?:\s?tokens?)?$/i;
const FACTORS: Readonly<Record<string, bigint>> = { k: 1_000n, m: 1_000_000n };

/** Tokens of one unit of measure such as `1K`, `1M`, `1000 Tokens`; undefined: the unit is no count. */
export function azureUnitTokens(unit: string | undefined): bigint | undefined {
  const [, count, factor] = UNIT.exec(unit?.trim() ?? '') ?? [];
  if (count === undefined || BigInt(count) === 0n) return undefined;
  return BigInt(count) * (factor === undefined ? 1n : (FACTORS[factor.toLowerCase()] as bigint));
}

const RESOURCE = /\/resourcegroups\/([^/]+)(?:\/.*)?\/([^/]+)$/i;

/** `group/name` of a resource id; null: there is none. Azure writes one id in different cases. */
export function resourceOf(resourceId: string | undefined | null): string | null {
  if (!resourceId) return null;
  const [, group, name] = RESOURCE.exec(resourceId) ?? [];
  const text = (group === undefined ? resourceId : `${group}/${name}`).toLowerCase();
  return keepText(text);
}

/** `ChargeType` of Microsoft's cost and usage details. Reserved capacity, used or unused, is paid usage. */
const CATEGORY_OF_CHARGE: Readonly<Record<string, ChargeCategory>> = {
  usage: 'usage',
  unusedreservation: 'usage',
  unusedsavingsplan: 'usage',
  purchase: 'purchase',
  refund: 'refund',
  roundingadjustment: 'adjustment',
  adjustment: 'adjustment',
  tax: 'tax',
  credit: 'credit',
};

/** The category of an Azure charge by its type or, without a type, by its meter and sign. */
export function azureCategory(
  chargeType: string,
  meter: string,
  recognised: boolean,
  amount: Pico,
): ChargeCategory {
  const type = chargeType.toLowerCase().replace(/[\s_]/g, '');
  const category = CATEGORY_OF_CHARGE[type] ?? categoryOfLabel(type || meter, recognised, amount);
  // A negative usage line is a correction; netted into the day's usage it would make usage look free.
  return category === 'usage' && amount < 0n ? 'adjustment' : category;
}
