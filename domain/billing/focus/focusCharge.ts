import { decimalFromPico, type Pico } from '../../money.js';
import { isoFromMicros, shiftDay } from '../../period.js';
import type { Provider } from '../../providers.js';
import type { ClassLine, Grade, MatchStatus } from '../../reconciliation/matching/cells.js';
import type { BilledClass, ChargeCategory } from '../billedRow.js';
import { timesOfBillingDay } from '../billingDay.js';
import { nextMonth } from '../periods.js';

/** The sum of one day's cost rows with equal fields; the unit of an export's rows. */
export interface FocusCharge {
  accountId: string;
  /** A monthly invoice line, stored on the month's first day; it is compared with no day's calls. */
  isOfMonth: boolean;
  chargeCategory: ChargeCategory;
  lineItem: string;
  model: string | null;
  tokenClass: BilledClass;
  serviceTier: string;
  isBatch: boolean | null;
  longContext: boolean | null;
  region: string | null;
  observable: boolean;
  project: string | null;
  apiKey: string | null;
  /** The team to which the key is assigned. */
  teamId: string | null;
  /** In 1e-12 units; null: a row has none. */
  quantity: bigint | null;
  quantityUnit: string | null;
  /** In US dollars; null: the currency has no exchange rate. */
  amountPico: Pico | null;
  /** The bill's own list and contract price; null: not every row has one. */
  listPico: Pico | null;
  contractedPico: Pico | null;
  /** Upper-case ISO 4217 code, and the amount in it, 1e-12 units. */
  currency: string;
  originalAmount: bigint;
}

/** The published comparison of a model's day whose bill has not changed since. */
export interface ComparedDay {
  /** '': calls of unknown account were compared with the sum over all accounts. */
  accountId: string;
  model: string;
  matchStatus: MatchStatus;
  grade: Grade;
  reason: string | null;
  provisional: boolean;
  ourCostPico: Pico;
  lines: readonly ClassLine[];
  /** The finding of the day with the largest impact. */
  finding: { id: string; kind: string } | null;
  disputeId: string | null;
}

/** The prices of an exported row, exact, so that price × quantity equals the cost to the last digit. */
export interface FocusPricing {
  /** Decimal texts; null: the category has none. */
  quantity: string | null;
  unit: string | null;
  listUnitPrice: string | null;
  listCost: string;
  contractedUnitPrice: string | null;
  contractedCost: string;
  /** The source of the list price; none: unknown, and ListCost repeats the billed amount as FOCUS requires. */
  listSource: 'price_list' | 'bill' | 'none' | null;
  /** The currency of the prices: US dollars, or the bill's currency if it has no exchange rate. */
  currency: string;
  currencyListUnitPrice: string | null;
  currencyContractedUnitPrice: string | null;
  /** The billed amount in `currency`. */
  currencyBilled: string;
}

export const RECON_STATUSES = ['matched', 'partial', 'unmatched', 'unbilled', 'not_compared'] as const;
export type ReconStatus = (typeof RECON_STATUSES)[number];

/** The comparison of a charge with observed calls. */
export interface FocusMatch {
  status: ReconStatus;
  reason: string | null;
  grade: Grade | null;
  provisional: boolean | null;
  /** The charge's share of the computed cost of the model's day; null: nothing was compared. */
  observedPico: Pico | null;
  gapPico: Pico | null;
  finding: ComparedDay['finding'];
  disputeId: string | null;
}

/** One row of an export in any version. Decimals are exact texts; null: an empty cell. */
export interface FocusRecord {
  provider: Provider;
  day: string;
  category: FocusCategory;
  charge: FocusCharge;
  description: string;
  consumedQuantity: string | null;
  consumedUnit: string | null;
  quantitySource: 'bill' | 'usage_report' | 'observed' | 'none' | null;
  billedCost: string;
  effectiveCost: string;
  pricing: FocusPricing;
  match: FocusMatch | null;
}

/** The seller of a model and the sold service, by their FOCUS names. */
export interface FocusSeller {
  /** ProviderName until 1.2, ServiceProviderName from 1.3; it also issues the invoice. */
  provider: string;
  service: string;
}

export const FOCUS_SELLERS: Readonly<Record<Provider, FocusSeller>> = {
  openai: { provider: 'OpenAI', service: 'OpenAI API' },
  anthropic: { provider: 'Anthropic', service: 'Claude API' },
  google: { provider: 'Google Cloud', service: 'Gemini and Vertex AI' },
  azure_openai: { provider: 'Microsoft', service: 'Azure OpenAI' },
  aws_bedrock: { provider: 'AWS', service: 'Amazon Bedrock' },
  mistral: { provider: 'Mistral AI', service: 'Mistral API' },
  cohere: { provider: 'Cohere', service: 'Cohere API' },
  xai: { provider: 'xAI', service: 'xAI API' },
};

/** Makers by the part of a Bedrock model id before the first dot. */
const BEDROCK_MAKERS: Readonly<Record<string, string>> = {
  ai21: 'AI21 Labs',
  amazon: 'AWS',
  anthropic: 'Anthropic',
  cohere: 'Cohere',
  deepseek: 'DeepSeek',
  meta: 'Meta',
  mistral: 'Mistral AI',
  openai: 'OpenAI',
  qwen: 'Alibaba Cloud',
  stability: 'Stability AI',
};

/** PublisherName: the maker of the model if its id contains it, else the seller. */
export function publisherOf(provider: Provider, model: string | null): string {
  if (provider === 'azure_openai') return FOCUS_SELLERS.openai.provider;
  const words = provider === 'aws_bedrock' ? (model ?? '').split('.') : [];
  const maker = words.map((word) => BEDROCK_MAKERS[word]).find((name) => name !== undefined);
  return maker ?? FOCUS_SELLERS[provider].provider;
}

/** SkuMeter of each class. Thirty-minute and five-minute cache writes are both the ordinary cache write. */
export const FOCUS_METERS: Readonly<Record<BilledClass, string>> = {
  input: 'Input Tokens',
  cache_read: 'Cache Read Tokens',
  cache_write_5m: 'Cache Write Tokens',
  cache_write_1h: 'Cache Write Tokens, 1 Hour',
  output: 'Output Tokens',
  input_audio: 'Audio Input Tokens',
  output_audio: 'Audio Output Tokens',
  requests: 'Requests',
  other: 'Other',
};

/** A cell: a text, a number to write out, or empty. */
export type FocusCell = string | { number: string } | null;

export interface FocusColumn {
  name: string;
  of(record: FocusRecord): FocusCell;
}

/** Decimal columns always contain a point, so that tools that infer types do not read them as integers. */
const number = (text: string | null): FocusCell =>
  text === null ? null : { number: text.includes('.') ? text : `${text}.0` };
const usd = (pico: Pico | null | undefined): FocusCell =>
  pico === null || pico === undefined ? null : { number: decimalFromPico(pico) };
const yesOrNo = (value: boolean | null | undefined): FocusCell =>
  value === null || value === undefined ? null : String(value);
/** Date/time in FOCUS notation: the start of the day by the provider's billing clock. */
const startOf = ({ provider }: FocusRecord, day: string) =>
  `${isoFromMicros(timesOfBillingDay(provider, day, 0).startMicros).slice(0, 19)}Z`;
const monthOf = (record: FocusRecord) => `${record.day.slice(0, 7)}-01`;
const endOf = (record: FocusRecord) =>
  startOf(record, record.charge.isOfMonth ? nextMonth(monthOf(record)) : shiftDay(record.day, 1));
/** Only usage and purchases have a unit, a rate and a product. */
const hasSku = ({ category }: FocusRecord) => category === 'Usage' || category === 'Purchase';

/** Contains the provider, so that no two providers share a SKU id. */
const skuId = (record: FocusRecord) =>
  hasSku(record) ? `${record.provider}/${record.charge.lineItem}` : null;

/** A SKU at one price: all billed fields on which the price depends. */
function skuPriceId(record: FocusRecord): string | null {
  if (!hasSku(record)) return null;
  const { serviceTier, isBatch, longContext, region, tokenClass, model } = record.charge;
  const terms = [
    tokenClass,
    serviceTier,
    ...(isBatch ? ['batch'] : []),
    ...(longContext ? ['long'] : []),
    ...(region === null ? [] : [region]),
  ];
  return `${skuId(record)}/${model ?? ''}/${terms.join('+')}`;
}

/** FOCUS 1.2, SkuPriceDetails: our own keys begin with x_, and values are not objects. */
function skuPriceDetails(record: FocusRecord): string | null {
  if (!hasSku(record)) return null;
  const { model, tokenClass, serviceTier, isBatch, longContext, region, observable } = record.charge;
  return JSON.stringify({
    ...(model === null ? {} : { x_Model: model }),
    x_TokenClass: tokenClass,
    x_Tier: serviceTier,
    ...(isBatch === null ? {} : { x_Batch: isBatch }),
    ...(longContext === null ? {} : { x_ContextBand: longContext ? 'long' : 'ordinary' }),
    ...(tokenClass === 'cache_write_5m' ? { x_CacheTtl: '5m' } : {}),
    ...(tokenClass === 'cache_write_1h' ? { x_CacheTtl: '1h' } : {}),
    ...(region === null ? {} : { x_Region: region }),
    ...(observable ? {} : { x_Observable: false }),
  });
}

const providerOf = (record: FocusRecord) => FOCUS_SELLERS[record.provider].provider;

/** Columns of all exported versions; some exist in one version only. */
const FOCUS_COLUMNS: readonly (FocusColumn & { versions?: readonly FocusExportVersion[] })[] = [
  { name: 'BilledCost', of: (record) => number(record.billedCost) },
  { name: 'BillingAccountId', of: ({ charge }) => charge.accountId },
  { name: 'BillingAccountName', of: ({ charge }) => charge.accountId },
  { name: 'BillingCurrency', of: ({ charge }) => charge.currency },
  { name: 'BillingPeriodEnd', of: (record) => startOf(record, nextMonth(monthOf(record))) },
  { name: 'BillingPeriodStart', of: (record) => startOf(record, monthOf(record)) },
  { name: 'ChargeCategory', of: (record) => record.category },
  // A bill does not show which month an adjustment corrects, and only corrections of earlier months have a class.
  { name: 'ChargeClass', of: () => null },
  { name: 'ChargeDescription', of: (record) => record.description },
  { name: 'ChargeFrequency', of: ({ category }) => (category === 'Usage' ? 'Usage-Based' : 'One-Time') },
  { name: 'ChargePeriodEnd', of: endOf },
  { name: 'ChargePeriodStart', of: (record) => startOf(record, record.day) },
  // No bill has it yet, but rules of other columns require it.
  { name: 'CommitmentDiscountStatus', of: () => null },
  { name: 'ConsumedQuantity', of: (record) => number(record.consumedQuantity) },
  { name: 'ConsumedUnit', of: (record) => record.consumedUnit },
  { name: 'ContractedCost', of: ({ pricing }) => number(pricing.contractedCost) },
  { name: 'ContractedUnitPrice', of: ({ pricing }) => number(pricing.contractedUnitPrice) },
  { name: 'EffectiveCost', of: (record) => number(record.effectiveCost) },
  { name: 'HostProviderName', of: providerOf, versions: ['1.4'] },
  { name: 'InvoiceDetailId', of: () => null, versions: ['1.4'] },
  { name: 'InvoiceId', of: () => null },
  { name: 'InvoiceIssuerName', of: providerOf },
  { name: 'ListCost', of: ({ pricing }) => number(pricing.listCost) },
  { name: 'ListUnitPrice', of: ({ pricing }) => number(pricing.listUnitPrice) },
  { name: 'PricingCategory', of: (record) => (hasSku(record) ? 'Standard' : null) },
  { name: 'PricingCurrency', of: ({ pricing }) => pricing.currency },
  {
    name: 'PricingCurrencyContractedUnitPrice',
    of: ({ pricing }) => number(pricing.currencyContractedUnitPrice),
  },
  {
    name: 'PricingCurrencyEffectiveCost',
    of: ({ category, pricing }) => number(category === 'Purchase' ? '0' : pricing.currencyBilled),
  },
  { name: 'PricingCurrencyListUnitPrice', of: ({ pricing }) => number(pricing.currencyListUnitPrice) },
  { name: 'PricingQuantity', of: ({ pricing }) => number(pricing.quantity) },
  { name: 'PricingUnit', of: ({ pricing }) => pricing.unit },
  { name: 'ProviderName', of: providerOf, versions: ['1.2'] },
  {
    name: 'PublisherName',
    of: ({ provider, charge }) => publisherOf(provider, charge.model),
    versions: ['1.2'],
  },
  { name: 'RegionId', of: ({ charge }) => charge.region },
  { name: 'RegionName', of: ({ charge }) => charge.region },
  { name: 'ServiceCategory', of: () => FOCUS_SERVICE_CATEGORY },
  { name: 'ServiceName', of: ({ provider }) => FOCUS_SELLERS[provider].service },
  { name: 'ServiceProviderName', of: providerOf, versions: ['1.4'] },
  { name: 'ServiceSubcategory', of: () => FOCUS_SERVICE_SUBCATEGORY },
  { name: 'SkuId', of: skuId },
  { name: 'SkuMeter', of: (record) => (hasSku(record) ? FOCUS_METERS[record.charge.tokenClass] : null) },
  { name: 'SkuPriceDetails', of: skuPriceDetails },
  { name: 'SkuPriceId', of: skuPriceId },
  { name: 'SubAccountId', of: ({ charge }) => charge.project },
  { name: 'SubAccountName', of: ({ charge }) => charge.project },
  {
    name: 'Tags',
    of: ({ charge }) => (charge.teamId === null ? null : JSON.stringify({ team_id: charge.teamId })),
  },
];

/** Columns of our own, after those of FOCUS (FOCUS 1.2, column handling). */
const OWN_COLUMNS: readonly FocusColumn[] = [
  { name: 'x_ChargeCategory', of: ({ charge }) => charge.chargeCategory },
  { name: 'x_Model', of: ({ charge }) => charge.model },
  { name: 'x_TokenClass', of: ({ charge }) => charge.tokenClass },
  { name: 'x_IsBatch', of: ({ charge }) => yesOrNo(charge.isBatch) },
  { name: 'x_TeamId', of: ({ charge }) => charge.teamId },
  { name: 'x_ProviderKeyId', of: ({ charge }) => charge.apiKey },
  { name: 'x_BilledUsd', of: ({ charge }) => usd(charge.amountPico) },
  { name: 'x_QuantitySource', of: (record) => record.quantitySource },
  { name: 'x_ListPriceSource', of: ({ pricing }) => pricing.listSource },
  { name: 'x_ReconStatus', of: ({ match }) => match?.status ?? null },
  { name: 'x_ReconReason', of: ({ match }) => match?.reason ?? null },
  { name: 'x_MatchGrade', of: ({ match }) => match?.grade ?? null },
  { name: 'x_IsProvisional', of: ({ match }) => yesOrNo(match?.provisional) },
  { name: 'x_ObservedCostUsd', of: ({ match }) => usd(match?.observedPico) },
  { name: 'x_GapUsd', of: ({ match }) => usd(match?.gapPico) },
  { name: 'x_ViolationType', of: ({ match }) => match?.finding?.kind ?? null },
  { name: 'x_FindingId', of: ({ match }) => match?.finding?.id ?? null },
  { name: 'x_DisputeId', of: ({ match }) => match?.disputeId ?? null },
];

/** The columns of a version in order: FOCUS columns by name, then ours. */
export function focusColumnsOf(version: FocusExportVersion): readonly FocusColumn[] {
  return [
    ...FOCUS_COLUMNS.filter(({ versions }) => versions === undefined || versions.includes(version)),
    ...OWN_COLUMNS,
  ];
}

/** The exported versions of FOCUS (FinOps Open Cost and Usage Specification). */
export const FOCUS_EXPORT_VERSIONS = ['1.2', '1.4'] as const;
export type FocusExportVersion = (typeof FOCUS_EXPORT_VERSIONS)[number];

/** ChargeCategory as FOCUS allows it since 1.0. */
export const FOCUS_CATEGORIES = ['Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment'] as const;
export type FocusCategory = (typeof FOCUS_CATEGORIES)[number];

/** FOCUS 1.2: the ServiceCategory, and below the subcategory, of language models. */
export const FOCUS_SERVICE_CATEGORY = 'AI and Machine Learning';
export const FOCUS_SERVICE_SUBCATEGORY = 'Generative AI';
