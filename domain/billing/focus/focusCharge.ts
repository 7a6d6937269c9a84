import type { Pico } from '../../money.js';
import type { Provider } from '../../providers.js';
import type { ClassLine, Grade, MatchStatus } from '../../reconciliation/matching/cells.js';
import type { BilledClass, ChargeCategory } from '../billedRow.js';
import type { FocusCategory } from './focusColumns.js';

/** Cost rows of one day that say the same of everything, added up: what a row of an export is about. */
export interface FocusCharge {
  accountId: string;
  /** An invoice's line, told of the month that begins on the day: it is compared with no day. */
  isOfMonth: boolean;
  chargeCategory: ChargeCategory;
  /** The provider's own label, verbatim. */
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
  /** The team that the key is entered for. */
  teamId: string | null;
  /** In 1e-12 units; null where a row has none. */
  quantity: bigint | null;
  quantityUnit: string | null;
  /** In US dollars; null where nobody can convert the currency. */
  amountPico: Pico | null;
  /** What the bill itself calls the list and the contracted price; null where not every row says so. */
  listPico: Pico | null;
  contractedPico: Pico | null;
  /** Upper-case ISO 4217 code, and the amount in it, 1e-12 units. */
  currency: string;
  originalAmount: bigint;
}

/** A model's day as a run has published it, of a day whose bill has not changed since. */
export interface ComparedDay {
  /** '' where calls of unknown account were compared with the sum over all accounts. */
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

/** What an export says of prices: exact, so that price × quantity is the cost to the last digit. */
export interface FocusPricing {
  /** Decimal texts; null where the category has none. */
  quantity: string | null;
  unit: string | null;
  listUnitPrice: string | null;
  listCost: string;
  contractedUnitPrice: string | null;
  contractedCost: string;
  /** Whose the list price is; none: unknown, and ListCost repeats the billed amount as FOCUS asks for. */
  listSource: 'price_list' | 'bill' | 'none' | null;
  /** What the prices are given in: US dollars, or the bill's own currency where nobody can convert it. */
  currency: string;
  currencyListUnitPrice: string | null;
  currencyContractedUnitPrice: string | null;
  /** The billed amount in it. */
  currencyBilled: string;
}

export const RECON_STATUSES = ['matched', 'partial', 'unmatched', 'unbilled', 'not_compared'] as const;
export type ReconStatus = (typeof RECON_STATUSES)[number];

/** How a charge compares with what was observed. */
export interface FocusMatch {
  status: ReconStatus;
  reason: string | null;
  grade: Grade | null;
  provisional: boolean | null;
  /** Its part of the computed cost of the model's day; null where nothing was compared. */
  observedPico: Pico | null;
  gapPico: Pico | null;
  finding: ComparedDay['finding'];
  disputeId: string | null;
}

/** One row of an export, whatever its version. Decimals are exact texts; null is an empty cell. */
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
  /** Null on charges that are not usage. */
  match: FocusMatch | null;
}

/** How FOCUS names who sells a model, and the service that is sold. */
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

/** Makers as Amazon Bedrock writes them before the first dot of a model id. */
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

/** PublisherName: who makes the model, where its id says so; else whoever sells it. */
export function publisherOf(provider: Provider, model: string | null): string {
  if (provider === 'azure_openai') return FOCUS_SELLERS.openai.provider;
  const words = provider === 'aws_bedrock' ? (model ?? '').split('.') : [];
  const maker = words.map((word) => BEDROCK_MAKERS[word]).find((name) => name !== undefined);
  return maker ?? FOCUS_SELLERS[provider].provider;
}

/** SkuMeter of each class. Thirty minutes and five minutes are both the ordinary cache write. */
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
