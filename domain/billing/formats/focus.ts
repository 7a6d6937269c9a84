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

/** A charge as its export names it: the words that stand for it, and what they say. */
export interface FocusLabel extends ParsedLabel {
  lineItem: string;
}

/** Where exports put the provider's own label: in a column of their own, or in the SKU's meter (FOCUS 1.1 and later). */
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

/** What a charge is for. Its own words in SkuPriceDetails go before any grammar. */
export function readFocusLabel(provider: Provider, record: TableRecord): FocusLabel {
  const lineItem = keepText(cellOf(record, LABEL_COLUMNS[provider] ?? ANY_LABEL) ?? '(no label)');
  const details = readDetails(record.get('skupricedetails'));
  const told = details.size > 0 ? toldBy(details, record) : undefined;
  const label = told ?? GRAMMARS[provider]?.(lineItem, record) ?? UNKNOWN_LABEL;
  return { ...label, lineItem };
}

/** SkuPriceDetails: a flat JSON object (FOCUS 1.1), its keys without the prefix x_ and in lower case. */
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
    // A cell that is no JSON says nothing; the label is left.
  }
  return details;
}

/** Words by which a meter tells its class, the narrower first. */
const METERS: readonly (readonly [RegExp, BilledClass])[] = [
  [/\bcach\w* (?:write|creation)\w*.*\b(?:1h|1 ?hour|60 ?min)/i, 'cache_write_1h'],
  [/\bcach\w* (?:write|creation)\w*\b/i, 'cache_write_5m'],
  [/\bcach\w*\b/i, 'cache_read'],
  [/\baudio\b.*\boutput\b|\boutput audio\b/i, 'output_audio'],
  [/\baudio\b.*\binput\b|\binput audio\b/i, 'input_audio'],
  [/\boutput tokens?\b/i, 'output'],
  [/\binput tokens?\b/i, 'input'],
];

/** Model and class as the details tell them; undefined where they name no model, and a grammar has to. */
function toldBy(
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

/** ServiceProviderName from FOCUS 1.3 on, ProviderName before it; 1.3 has both. */
export const FOCUS_PROVIDER_COLUMNS = ['serviceprovidername', 'providername'] as const;

/** Sellers are compared without spaces, points and case: FOCUS leaves the spelling to the writer. */
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

/** Who sells much else: which of their services are those of language models. */
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

/** Whether a charge is one of this provider's models: of its own services, or sold by it alone. */
export function isFocusChargeOf(provider: Provider, record: TableRecord): boolean {
  const seller = (cellOf(record, FOCUS_PROVIDER_COLUMNS) ?? '').toLowerCase().replace(/[^a-z0-9]/g, '');
  if (!SELLERS[provider].test(seller)) return false;
  const isOfService = SERVICES[provider];
  return isOfService?.(record, record.get('servicename') ?? '') ?? true;
}

/** FOCUS Cost and Usage 1.0 to 1.4; only the provider's column changed. SkuMeter since 1.1, PricingCurrency since 1.2. */
const REQUIRED = [
  'billedcost',
  'billingaccountid',
  'billingcurrency',
  'chargecategory',
  'chargeperiodstart',
  'chargedescription',
  'servicename',
] as const;

/** Beside those: columns that not every version or writer has. */
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
    // Use that no bill has, in an export of our own: no charge.
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

/** Date/time as FOCUS has it, or as BigQuery prints it; some writers leave the seconds out, and a day alone is its beginning. */
function instantOf(record: TableRecord, column: string): bigint {
  const text = record.get(column) ?? '';
  const instant = parseInstant(text.replace(/ ?UTC$/, 'Z'));
  // No bill is older than the clock of computers.
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

/** ChargeCategory; money returned for use and corrections (ChargeClass) are no use. Our own exports state it themselves. */
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

/** As the provider's other exports have it: whoever pays; at Azure the subscription. */
function accountOf(provider: Provider, record: TableRecord): string | null {
  const whole = textOf(record, ['billingaccountid']);
  const isOwn = record.has('x_chargecategory');
  return provider === 'azure_openai' && !isOwn
    ? (subscriptionOf(textOf(record, ['subaccountid'])) ?? whole)
    : whole;
}

/** `/subscriptions/<id>` → id, as the cost details have it. */
function subscriptionOf(text: string | null): string | null {
  return text === null ? null : text.toLowerCase().replace(/^\/?subscriptions\//, '');
}

function projectOf(provider: Provider, record: TableRecord): string | null {
  const isOwn = record.has('x_chargecategory');
  return provider === 'azure_openai' && !isOwn
    ? resourceOf(record.get('resourceid'))
    : textOf(record, ['subaccountid']);
}

/** Half-open times, as FOCUS has them. */
function reportOf(record: TableRecord, start: bigint): string {
  if (!record.has('billingperiodstart')) return '';
  const from = instantOf(record, 'billingperiodstart');
  const isLater = record.has('billingperiodend') && start >= instantOf(record, 'billingperiodend');
  return start >= from && !isLater ? '' : reportOfInvoice(dayOf(from));
}

const TOKEN_UNIT = /^(?:(\d+|1k|1m)\s*)?tokens?$/i;
const UNIT_WORDS: Readonly<Record<string, bigint>> = { '1k': 1_000n, '1m': 1_000_000n };

/** Tokens of one unit; undefined where it is another unit. */
function tokensOfUnit(unit: string | undefined): bigint | undefined {
  const match = TOKEN_UNIT.exec((unit ?? '').trim());
  if (!match) return undefined;
  const [, count] = match;
  if (count === undefined) return 1n;
  return UNIT_WORDS[count.toLowerCase()] ?? BigInt(count);
}

/** What was consumed, else what was priced: in tokens wherever one of them is. */
function countOf(
  record: TableRecord,
  label: Pick<FocusLabel, 'tokenClass' | 'observable'>,
  unitTokens: bigint | undefined,
): Pick<BilledRow, 'quantity' | 'quantityUnit'> {
  // An export of our own: one charge, of a quantity that nobody knows.
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

/** Dollars as billed, by the bill's own conversion, by the given rate, or none. */
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

/** Dollars beside what they are dollars of; null where the record does not say. The divisor is positive. */
function rateOf(record: TableRecord, original: bigint): { usd: bigint; original: bigint } | null {
  const told = decimalOf(record, ['x_billedusd', 'x_billedcostinusd']);
  const pair = (usd: bigint | null, amount: bigint | null) => {
    if (usd === null || amount === null || amount === 0n) return null;
    return amount < 0n ? { usd: -usd, original: -amount } : { usd, original: amount };
  };
  const billed = pair(told, original);
  if (billed) return billed;
  if (cellOf(record, ['pricingcurrency'])?.toUpperCase() !== 'USD') return null;
  return pair(decimalOf(record, ['pricingcurrencyeffectivecost']), decimalOf(record, ['effectivecost']));
}
