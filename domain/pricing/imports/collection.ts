/**
 * What a public price collection says, in the product's own terms: the common ground of the readers of LiteLLM's and
 * models.dev's files. Collections are third parties' facts; what they say is compared and asked about, never taken
 * blindly (docs/decisions/0007).
 */
import { ExactNumber, type PageObject, type PageValue } from '../../billing/exactNumber.js';
import { type Pico, parseScaled } from '../../money.js';
import type { Provider } from '../../providers.js';
import {
  type PriceMode,
  type PriceTier,
  RATE_CLASSES,
  RATE_PER_MTOK_USD_MAX,
  type RateClass,
  type Rates,
} from '../prices.js';

/** The public price collections that can be imported. */
export const PRICE_COLLECTIONS = ['litellm', 'models_dev'] as const;
export type PriceCollection = (typeof PRICE_COLLECTIONS)[number];

/** One model as a collection lists it. */
export interface ListedModel {
  readonly provider: Provider;
  /** The provider's own id. */
  readonly model: string;
  /** The key in the file. */
  readonly key: string;
  /** The place that the price is for, where it is not the ordinary one: looked through, never taken. */
  readonly region: string | null;
  readonly rates: Rates;
  /** Each has an input and an output rate, its own or the standard one's. */
  readonly tiers: readonly PriceTier[];
  readonly mode: PriceMode;
  readonly contextWindow: number | null;
}

/** A file, read. */
export interface ListedCollection {
  readonly source: PriceCollection;
  readonly models: readonly ListedModel[];
  /** Entries that are no token prices of the eight providers. */
  readonly otherEntries: number;
}

const RATE_MAX: Pico = BigInt(RATE_PER_MTOK_USD_MAX) * 10n ** 12n;

/** A rate in dollars per token or per million of them; `digits` shifts its point to pico-dollars per million. */
export function readRate(value: PageValue | undefined, digits: number, place: string): Pico | null {
  if (value === undefined || value === null) return null;
  const text = value instanceof ExactNumber ? value.text : undefined;
  const fine = text === undefined ? undefined : parseScaled(text, digits + 12);
  const rate = fine === undefined ? undefined : parseScaled(text ?? '', digits);
  if (fine === undefined || rate === undefined || fine < 0n || rate > RATE_MAX)
    throw new RangeError(
      `${place} is not a rate: a number from 0 to ${RATE_PER_MTOK_USD_MAX} dollars per million tokens`,
    );
  return rate;
}

export function readTokens(value: PageValue | undefined): number | null {
  const tokens = value instanceof ExactNumber ? Number(value.text) : Number.NaN;
  return Number.isSafeInteger(tokens) && tokens > 0 ? tokens : null;
}

export function readObject(value: PageValue | undefined, place: string): PageObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber))
    return value;
  throw new RangeError(`${place} is not an object`);
}

/** Rates with null for what is not given; a cache or audio rate of zero is no information (data/README.md). */
export function ratesFrom(given: Readonly<Partial<Record<RateClass, Pico | null>>>): Rates {
  return Object.fromEntries(
    RATE_CLASSES.map((name) => {
      const rate = given[name] ?? null;
      return [name, rate === 0n && name !== 'input' && name !== 'output' ? null : rate];
    }),
  ) as Record<RateClass, Pico | null>;
}

/** A tier from the rates that are given for it; classes that it leaves out are billed at the standard rate. */
export function tierFrom(
  place: { serviceTier: string | null; aboveInputTokens: number | null },
  given: Readonly<Partial<Record<RateClass, Pico | null>>>,
  standard: Rates,
): PriceTier {
  const rates = ratesFrom(given);
  return {
    ...place,
    checkedOn: null,
    rates: { ...rates, input: rates.input ?? standard.input, output: rates.output ?? standard.output },
  };
}

/** Models of OpenAI on Azure; others there are not covered (data/README.md). */
export function isOpenAiModel(id: string): boolean {
  return /^(?:gpt-|o\d|chatgpt|codex|text-embedding|computer-use|ft:)/.test(id);
}

/** Keys that hold no model. */
const NO_MODELS = new Set(['sample_spec', 'fallback_generalizations']);
/** Dollars per token → pico-dollars per million. */
const PER_TOKEN_DIGITS = 18;

const PROVIDERS_OF: Readonly<Record<string, Provider>> = {
  openai: 'openai',
  'text-completion-openai': 'openai',
  anthropic: 'anthropic',
  azure: 'azure_openai',
  bedrock: 'aws_bedrock',
  bedrock_converse: 'aws_bedrock',
  gemini: 'google',
  'vertex_ai-language-models': 'google',
  'vertex_ai-anthropic_models': 'google',
  'vertex_ai-embedding-models': 'google',
  mistral: 'mistral',
  cohere: 'cohere',
  cohere_chat: 'cohere',
  xai: 'xai',
};

const MODES: Readonly<Record<string, PriceMode>> = {
  chat: 'chat',
  completion: 'chat',
  responses: 'chat',
  embedding: 'embedding',
};

/** A price field: what it counts, for how long a request, in which tier. */
const FIELD =
  /^(input_cost_per_token|output_cost_per_token|cache_read_input_token_cost|cache_creation_input_token_cost|cache_creation_input_token_cost_above_1hr|input_cost_per_audio_token|output_cost_per_audio_token|cache_read_input_audio_token_cost)(?:_above_(\d+)k_tokens)?(?:_(batches|flex|priority))?$/;
const CLASSES: Readonly<Record<string, RateClass>> = {
  input_cost_per_token: 'input',
  output_cost_per_token: 'output',
  cache_read_input_token_cost: 'cache_read',
  cache_creation_input_token_cost: 'cache_write_5m',
  cache_creation_input_token_cost_above_1hr: 'cache_write_1h',
  input_cost_per_audio_token: 'input_audio',
  output_cost_per_audio_token: 'output_audio',
  cache_read_input_audio_token_cost: 'cache_read_audio',
};
const TIERS: Readonly<Record<string, string>> = { batches: 'batch', flex: 'flex', priority: 'priority' };
/** xAI's boundary is "200k or more". */
const EXCLUSIVE_BOUNDARY: ReadonlySet<Provider> = new Set(['xai']);

/**
 * LiteLLM's `model_prices_and_context_window.json`: an object by model id, dollars per token. Fields that are no token
 * price are passed over, since the file grows new ones. Throws RangeError with the place of the first fault.
 */
export function readLitellm(file: PageObject): ListedCollection {
  const models: ListedModel[] = [];
  let otherEntries = 0;
  for (const [key, value] of Object.entries(file)) {
    if (NO_MODELS.has(key)) continue;
    const model = readModel(key, readObject(value, `"${key}"`));
    if (model) models.push(model);
    else otherEntries += 1;
  }
  return { source: 'litellm', models: withoutVertexCopies(models), otherEntries };
}

function readModel(key: string, entry: PageObject): ListedModel | undefined {
  const provider = named(PROVIDERS_OF, entry.litellm_provider);
  const mode = named(MODES, entry.mode);
  if (!provider || !mode) return undefined;
  const place = placeOf(provider, key);
  if (!place || (provider === 'azure_openai' && !isOpenAiModel(place.model))) return undefined;
  const byTier = new Map<string, Partial<Record<RateClass, bigint | null>>>();
  for (const [field, value] of Object.entries(entry)) {
    const match = FIELD.exec(field);
    if (!match) continue;
    const [, name = '', thousands, tierWord] = match;
    const above =
      thousands === undefined ? 0 : Number(thousands) * 1_000 - Number(EXCLUSIVE_BOUNDARY.has(provider));
    const tier = `${tierWord === undefined ? '' : TIERS[tierWord]}|${above}`;
    const rates = byTier.get(tier) ?? {};
    rates[CLASSES[name] as RateClass] = readRate(value, PER_TOKEN_DIGITS, `"${key}".${field}`);
    byTier.set(tier, rates);
  }
  const rates = ratesFrom(byTier.get('|0') ?? {});
  // Zero for both is "no information", never free.
  if (rates.input === null || (rates.output === null && mode !== 'embedding')) return undefined;
  if (rates.input === 0n && (rates.output ?? 0n) === 0n) return undefined;
  const standard = { ...rates, output: rates.output ?? 0n };
  const tiers = [...byTier].flatMap(([tier, given]) => {
    if (tier === '|0') return [];
    const [serviceTier = '', above = '0'] = tier.split('|');
    return [
      tierFrom(
        {
          serviceTier: serviceTier === '' ? null : serviceTier,
          aboveInputTokens: above === '0' ? null : Number(above),
        },
        given,
        standard,
      ),
    ];
  });
  const contextWindow = readTokens(entry.max_input_tokens) ?? readTokens(entry.max_tokens);
  return { ...place, provider, key, rates: standard, tiers, mode, contextWindow };
}

/** What a table has under a word; words such as `constructor` are in none. */
function named<T>(table: Readonly<Record<string, T>>, word: PageValue | undefined): T | undefined {
  return typeof word === 'string' && Object.hasOwn(table, word) ? table[word] : undefined;
}

/** The provider's own id behind LiteLLM's prefixes, and the region in between. */
function placeOf(provider: Provider, key: string): { model: string; region: string | null } | undefined {
  const parts = key.split('/');
  const model = parts.at(-1) ?? '';
  // Image sizes and the like stand in front where the price is for something else.
  if (model === '' || /^\d|x-\d/.test(parts[0] ?? '')) return undefined;
  if (provider === 'openai' || provider === 'anthropic')
    return parts.length === 1 ? { model, region: null } : undefined;
  if (provider === 'azure_openai') {
    const [, ...middle] = parts.slice(0, -1);
    const region = middle.filter((part) => part !== 'global' && part !== 'global-standard').join('/');
    return { model, region: region === '' ? null : region };
  }
  if (provider === 'aws_bedrock')
    return { model, region: parts.length === 1 ? null : parts.slice(0, -1).join('/') };
  return parts.length <= 2 ? { model, region: null } : undefined;
}

/** Gemini models stand twice, for the Gemini API and for Vertex AI: the first is the list. */
function withoutVertexCopies(models: readonly ListedModel[]): ListedModel[] {
  const chosen = new Map<string, ListedModel>();
  for (const model of models) {
    const id = `${model.provider}\n${model.region ?? ''}\n${model.model}`;
    const before = chosen.get(id);
    if (!before || (model.key.startsWith('gemini/') && !before.key.startsWith('gemini/')))
      chosen.set(id, model);
  }
  return [...chosen.values()];
}
