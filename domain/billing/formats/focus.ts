import { divideHalfEven, type Pico } from '../../money.js';
import { dayOf, parseInstant } from '../../period.js';
import type { Provider } from '../../providers.js';
import {
  type BilledClass,
  type BilledRow,
  CHARGE_CATEGORIES,
  type ChargeCategory,
  categoryOfLabel,
  findBilledClass,
} from '../billedRow.js';
import { pacificDayOf } from '../billingDay.js';
import { parseAzureMeter } from '../grammars/azureMeter.js';
import { parseBedrockUsageType } from '../grammars/bedrockUsageType.js';
import { parseGoogleSku } from '../grammars/googleSku.js';
import { type ParsedLabel, UNKNOWN_LABEL } from '../grammars/parsedLabel.js';
import { parseOpenaiLineItem } from '../openaiRows.js';
import { type FxRate, keepText, toPicoOrNull } from '../pageRow.js';
import { isAzureModelCategory, resourceOf } from './azureCostDetails.js';
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
  timesOfDay,
} from './tableFormat.js';

/** The label of a charge in an export: its words, and their parsed meaning. */
export interface FocusLabel extends ParsedLabel {
  lineItem: string;
}

/** Columns with the provider's own label; otherwise it is in the SKU's meter (FOCUS 1.1 and later). */
const LABEL_COLUMNS: Partial<Record<Provider, readonly string[]>> = {
  aws_bedrock: ['x_usagetype', 'skumeter', 'chargedescription'],
  azure_openai: ['x_skumetername', 'skumeter', 'chargedescription'],
  google: ['x_skudescription', 'chargedescription', 'skumeter'],
};
const ANY_LABEL = ['chargedescription', 'skuid', 'skumeter'] as const;

const GRAMMARS: Partial<Record<Provider, (label: string, record: TableRecord) => ParsedLabel>> = {
  openai: (label) => ({ ...parseOpenaiLineItem(label), region: null }),
  aws_bedrock: (label, record) => parseBedrockUsageType(label, record.get('servicename') ?? ''),
  azure_openai: (label, record) =>
    parseAzureMeter(label, cellOf(record, ['x_skumetersubcategory', 'servicename']) ?? ''),
  google: parseGoogleSku,
};

/** Parses a charge's label. Keys of SkuPriceDetails count before any grammar. */
export function readFocusLabel(provider: Provider, record: TableRecord): FocusLabel {
  const lineItem = keepText(cellOf(record, LABEL_COLUMNS[provider] ?? ANY_LABEL) ?? '(no label)');
  const details = readDetails(record.get('skupricedetails'));
  const detailed = details.size > 0 ? labelFromDetails(details, record) : undefined;
  const label = detailed ?? GRAMMARS[provider]?.(lineItem, record) ?? UNKNOWN_LABEL;
  return { ...label, lineItem };
}

/** SkuPriceDetails: a flat JSON object (FOCUS 1.1); keys in lower case and without the prefix x_. */
function readDetails(text: string | undefined): ReadonlyMap<string, string | boolean> {
  const details = new Map<string, string | boolean>();
  if (text === undefined) return details;
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== 'object' || parsed === null) return details;
    for (const [key, value] of Object.entries(parsed))
      if (typeof value === 'string' || typeof value === 'boolean')
        details.set(key.replace(/^x_/, '').toLowerCase(), value);
  } catch {
    // A cell that is not JSON is ignored; the label remains.
  }
  return details;
}

/** Words of meters by class, narrower ones first. */
const METERS: readonly (readonly [RegExp, BilledClass])[] = [
  [/\bcach\w* (?:write|creation)\w*.*\b(?:1h|1 ?hour|60 ?min)/i, 'cache_write_1h'],
  [/\bcach\w* (?:write|creation)\w*\b/i, 'cache_write_5m'],
  [/\bcach\w*\b/i, 'cache_read'],
  [/\baudio\b.*\boutput\b|\boutput audio\b/i, 'output_audio'],
  [/\baudio\b.*\binput\b|\binput audio\b/i, 'input_audio'],
  [/\boutput tokens?\b/i, 'output'],
  [/\binput tokens?\b/i, 'input'],
];

/** Model and class from the details; undefined: they name no model, so a grammar must parse the label. */
function labelFromDetails(
  details: ReadonlyMap<string, string | boolean>,
  record: TableRecord,
): ParsedLabel | undefined {
  const word = (name: string) => {
    const value = details.get(name);
    return typeof value === 'string' && value !== '' ? keepText(value) : undefined;
  };
  const named = word('tokenclass');
  const tokenClass =
    (named === undefined ? undefined : findBilledClass(named)) ??
    METERS.find(([pattern]) => pattern.test(record.get('skumeter') ?? ''))?.[1];
  const model = word('model') ?? word('modelid') ?? null;
  if (tokenClass === undefined || (model === null && named === undefined)) return undefined;
  const tier = word('tier')?.toLowerCase();
  const batch = details.get('batch') ?? (tier === 'batch' ? true : undefined);
  const band = word('contextband');
  return {
    recognised: model !== null && tokenClass !== 'other',
    model,
    tokenClass,
    serviceTier: tier === undefined || tier === 'batch' ? 'standard' : tier,
    isBatch: typeof batch === 'boolean' ? batch : null,
    longContext: band === undefined ? null : band === 'long',
    region: word('region') ?? null,
    observable: details.get('observable') !== false,
  };
}

/** ServiceProviderName from FOCUS 1.3 on, ProviderName before; 1.3 has both. */
export const FOCUS_PROVIDER_COLUMNS = ['serviceprovidername', 'providername'] as const;

/** Sellers compare without spaces, points and case, since FOCUS does not fix the spelling. */
const SELLERS: Readonly<Record<Provider, RegExp>> = {
  openai: /^openai/,
  anthropic: /^anthropic/,
  google: /^google/,
  azure_openai: /^(?:microsoft|azure)/,
  aws_bedrock: /^(?:aws|amazon)/,
  mistral: /^mistral/,
  cohere: /^cohere/,
  xai: /^xai/,
};

/** The language model services of sellers that sell other services too. */
const SERVICES: Partial<Record<Provider, (record: TableRecord, service: string) => boolean>> = {
  aws_bedrock: (record, service) =>
    /bedrock/i.test(service) ||
    /bedrock/i.test(record.get('x_servicecode') ?? '') ||
    /^(?:[A-Z0-9]+-)?MP:/.test(record.get('x_usagetype') ?? ''),
  azure_openai: (record, service) =>
    isAzureModelCategory(service) ||
    isAzureModelCategory(record.get('x_skumetercategory') ?? '') ||
    /openai|\bfoundry\b/i.test(service),
  google: (_record, service) => /vertex ai|gemini|generative language/i.test(service),
};

/** Whether a charge is for this provider's models: by its service, or because the provider sells nothing else. */
export function isFocusChargeOf(provider: Provider, record: TableRecord): boolean {
  const seller = (cellOf(record, FOCUS_PROVIDER_COLUMNS) ?? '').toLowerCase().replace(/[^a-z0-9]/g, '');
  if (!SELLERS[provider].test(seller)) return false;
  const isOfService = SERVICES[provider];
  return isOfService?.(record, record.get('servicename') ?? '') ?? true;
}

/**
 * FOCUS Cost and Usage 1.0 to 1.4, which differ only in the provider's column. SkuMeter exists since 1.1,
 * PricingCurrency since 1.2.
 */
const REQUIRED = [
  'billedcost',
  'billingaccountid',
  'billingcurrency',
  'chargecategory',
  'chargeperiodstart',
  'chargedescription',
  'servicename',
] as const;

/** Optional columns, which some versions or writers lack. */
const READ_TOO = [
  ...['billingperiodend', 'billingperiodstart'],
  ...[
    'billingaccountid',
    'chargeclass',
    'chargeperiodend',
    'consumedquantity',
    'consumedunit',
    'contractedcost',
  ],
  ...['effectivecost', 'listcost', 'pricingcurrency', 'pricingcurrencyeffectivecost', 'pricingquantity'],
  ...['pricingunit', 'resourceid', 'skuid', 'skumeter', 'skupricedetails', 'subaccountid'],
  ...['x_billedcostinusd', 'x_billedusd', 'x_chargecategory', 'x_providerkeyid', 'x_quantitysource'],
  ...['x_reconstatus', 'x_servicecode', 'x_skudescription', 'x_skumetercategory', 'x_skumetername'],
  ...['x_skumetersubcategory', 'x_usagetype'],
] as const;

export const focus: TableFormat = {
  format: 'focus',
  name: 'a FOCUS export',
  required: REQUIRED,
  reads: new Set([...REQUIRED, ...READ_TOO, ...FOCUS_PROVIDER_COLUMNS]),
  isHeader: (columns) =>
    REQUIRED.every((column) => columns.has(column)) &&
    FOCUS_PROVIDER_COLUMNS.some((column) => columns.has(column)),
  rowsOf: (record, { provider, fxRate }) => {
    if (!isFocusChargeOf(provider, record)) return null;
    // Unbilled usage in an export of our own is no charge.
    if (record.get('x_reconstatus') === 'unbilled') return [];
    return [rowOf(provider, record, fxRate)];
  },
  chargeOf: (record): PlainCharge => ({
    chargeCategory: categoryOf(record, record.get('chargedescription') ?? '', true),
    currency: currencyOf(record, ['billingcurrency']),
    amount: requiredDecimal(record, ['billedcost']),
  }),
};

function rowOf(provider: Provider, record: TableRecord, fxRate: FxRate): BilledRow {
  const { lineItem, recognised, unitTokens, ...label } = readFocusLabel(provider, record);
  const currency = currencyOf(record, ['billingcurrency']);
  const original = requiredDecimal(record, ['billedcost']);
  const start = instantOf(record, 'chargeperiodstart');
  const day = provider === 'google' ? pacificDayOf(start) : dayOf(start);
  const hasEnd = record.has('chargeperiodend');
  return {
    feed: 'cost',
    report: reportOf(record, start),
    account: accountOf(provider, record),
    day,
    ...timesOfDay(day),
    ...(hasEnd ? { periodStartMicros: start, periodEndMicros: instantOf(record, 'chargeperiodend') } : {}),
    chargeCategory: categoryOf(record, lineItem, recognised),
    lineItem,
    ...label,
    project: projectOf(provider, record),
    apiKey: textOf(record, ['x_providerkeyid']),
    ...countOf(record, label, unitTokens),
    ...moneyOf(record, original, currency, fxRate),
    currency,
    originalAmount: original,
    isFinal: null,
  };
}

/** Date/time in FOCUS or BigQuery notation. Some writers omit the seconds; a date alone is the start of the day. */
function instantOf(record: TableRecord, column: string): bigint {
  const text = record.get(column) ?? '';
  const instant = parseInstant(text.replace(/ ?UTC$/, 'Z'));
  // Times before 1970 are errors.
  if (instant && instant.micros > 0n) return instant.micros;
  throw new CellFault(
    column,
    `${column} must be a time such as 2026-01-31T00:00:00Z, not "${text.slice(0, 40)}"`,
  );
}

const CATEGORIES: Readonly<Record<string, ChargeCategory>> = {
  usage: 'usage',
  purchase: 'purchase',
  tax: 'tax',
  credit: 'credit',
  adjustment: 'adjustment',
};

/**
 * The category by ChargeCategory. Returned money and corrections (ChargeClass) are not usage. Our own exports
 * state the category themselves.
 */
function categoryOf(record: TableRecord, label: string, recognised: boolean): ChargeCategory {
  const own = record.get('x_chargecategory');
  const known = CHARGE_CATEGORIES.find((category) => category === own);
  if (known !== undefined) return known;
  const word = record.get('chargecategory') ?? '';
  const category = CATEGORIES[word.toLowerCase()];
  if (category === undefined) {
    throw new CellFault(
      'chargecategory',
      `chargecategory must be Usage, Purchase, Tax, Credit or Adjustment, not "${word.slice(0, 40)}"`,
    );
  }
  if (category === 'tax' || category === 'credit') return category;
  const described = categoryOfLabel(`${label} ${record.get('chargedescription') ?? ''}`, false, 0n);
  const isRefund = described === 'refund';
  if (category === 'adjustment' || record.get('chargeclass')?.toLowerCase() === 'correction')
    return isRefund ? 'refund' : 'adjustment';
  if (category === 'purchase') return isRefund ? 'refund' : 'purchase';
  return isRefund && !recognised
    ? 'refund'
    : categoryOfLabel(label, true, requiredDecimal(record, ['billedcost']));
}

/** The account as in the provider's other exports: the payer, or for Azure the subscription. */
function accountOf(provider: Provider, record: TableRecord): string | null {
  const whole = textOf(record, ['billingaccountid']);
  const isOwn = record.has('x_chargecategory');
  return provider === 'azure_openai' && !isOwn
    ? (subscriptionOf(textOf(record, ['subaccountid'])) ?? whole)
    : whole;
}

/** `/subscriptions/<id>` → id, as in the cost details export. */
function subscriptionOf(text: string | null): string | null {
  return text === null ? null : text.toLowerCase().replace(/^\/?subscriptions\//, '');
}

function projectOf(provider: Provider, record: TableRecord): string | null {
  const isOwn = record.has('x_chargecategory');
  return provider === 'azure_openai' && !isOwn
    ? resourceOf(record.get('resourceid'))
    : textOf(record, ['subaccountid']);
}

/** The report name of a charge; FOCUS billing periods are half-open. */
function reportOf(record: TableRecord, start: bigint): string {
  if (!record.has('billingperiodstart')) return '';
  const from = instantOf(record, 'billingperiodstart');
  const isLater = record.has('billingperiodend') && start >= instantOf(record, 'billingperiodend');
  return start >= from && !isLater ? '' : reportOfInvoice(dayOf(from));
}

const TOKEN_UNIT = /^(?:(\d+|1k|1m)\s*)?tokens?$/i;
const UNIT_WORDS: Readonly<Record<string, bigint>> = { '1k': 1_000n, '1m': 1_000_000n };

/** Tokens of one unit; undefined: the unit does not count tokens. */
function tokensOfUnit(unit: string | undefined): bigint | undefined {
  const match = TOKEN_UNIT.exec((unit ?? '').trim());
  if (!match) return undefined;
  const [, count] = match;
  if (count === undefined) return 1n;
  return UNIT_WORDS[count.toLowerCase()] ?? BigInt(count);
}

/** The consumed quantity, else the pricing quantity; the one in tokens counts first. */
function countOf(
  record: TableRecord,
  label: Pick<FocusLabel, 'tokenClass' | 'observable'>,
  unitTokens: bigint | undefined,
): Pick<BilledRow, 'quantity' | 'quantityUnit'> {
  // A charge of unknown quantity in an export of our own.
  if (record.get('x_quantitysource') === 'none') return { quantity: null, quantityUnit: null };
  const counts = (
    [
      ['consumedquantity', 'consumedunit'],
      ['pricingquantity', 'pricingunit'],
    ] as const
  ).map(([column, unit]) => ({ count: decimalOf(record, [column]), unit: record.get(unit) }));
  const isTokens = label.tokenClass !== 'other' && label.tokenClass !== 'requests';
  if (isTokens) {
    for (const { count, unit } of counts) {
      const tokens = tokensOfUnit(unit);
      if (count !== null && count >= 0n && tokens !== undefined)
        return { quantity: count * tokens, quantityUnit: 'tokens' };
    }
    const [{ count } = { count: null }] = counts;
    return count !== null && count >= 0n && unitTokens !== undefined
      ? { quantity: count * unitTokens, quantityUnit: 'tokens' }
      : { quantity: null, quantityUnit: null };
  }
  const known = counts.find(({ count }) => count !== null && count >= 0n);
  return known
    ? { quantity: known.count, quantityUnit: known.unit === undefined ? null : keepText(known.unit) }
    : { quantity: null, quantityUnit: null };
}

/** Dollars as billed, by the bill's own conversion, or by the given rate; null: no conversion is known. */
function moneyOf(
  record: TableRecord,
  original: bigint,
  currency: string,
  fxRate: FxRate,
): Pick<BilledRow, 'amountPico' | 'listPico' | 'contractedPico' | 'netPico'> {
  const rate = currency === 'USD' ? null : rateOf(record, original);
  const convert = (amount: bigint | null): Pico | null => {
    if (amount === null) return null;
    if (rate === null) return toPicoOrNull(amount, currency, fxRate);
    return divideHalfEven(amount * rate.usd, rate.original);
  };
  return {
    amountPico: convert(original),
    listPico: convert(decimalOf(record, ['listcost'])),
    contractedPico: convert(decimalOf(record, ['contractedcost'])),
    netPico: convert(decimalOf(record, ['effectivecost'])),
  };
}

/** A dollar amount and the original amount that it equals; null: the record has none. The divisor is positive. */
function rateOf(record: TableRecord, original: bigint): { usd: bigint; original: bigint } | null {
  const billedUsd = decimalOf(record, ['x_billedusd', 'x_billedcostinusd']);
  const pair = (usd: bigint | null, amount: bigint | null) => {
    if (usd === null || amount === null || amount === 0n) return null;
    return amount < 0n ? { usd: -usd, original: -amount } : { usd, original: amount };
  };
  const billed = pair(billedUsd, original);
  if (billed) return billed;
  if (cellOf(record, ['pricingcurrency'])?.toUpperCase() !== 'USD') return null;
  return pair(decimalOf(record, ['pricingcurrencyeffectivecost']), decimalOf(record, ['effectivecost']));
}
