import { ExactNumber, type PageObject, type PageValue } from '../../billing/pageRow.js';
import { type Pico, parseScaled } from '../../money.js';
import type { Provider } from '../../providers.js';
import {
  type PriceMode,
  type PriceTier,
  RATE_CLASSES,
  RATE_PER_MTOK_USD_MAX,
  type RateClass,
  type Rates,
} from '../pricedModel.js';

/**
 * The common part of LiteLLM's and models.dev's files. Their prices are compared, not trusted
 * (docs/decisions/0007).
 */

/** The public price collections that can be imported. */
export const PRICE_COLLECTIONS = ['litellm', 'models_dev'] as const;
export type PriceCollection = (typeof PRICE_COLLECTIONS)[number];

export interface ListedModel {
  readonly provider: Provider;
  readonly model: string;
  /** The key in the file. */
  readonly key: string;
  /** The place of the price, unless it is the ordinary one: such prices are checked but never imported. */
  readonly region: string | null;
  readonly rates: Rates;
  /** Each has an input and an output rate, its own or the standard one. */
  readonly tiers: readonly PriceTier[];
  readonly mode: PriceMode;
  readonly contextWindow: number | null;
}

export interface ListedCollection {
  readonly source: PriceCollection;
  readonly models: readonly ListedModel[];
  /** Number of entries that are not token prices of the eight providers. */
  readonly otherEntries: number;
}

const RATE_MAX: Pico = BigInt(RATE_PER_MTOK_USD_MAX) * 10n ** 12n;

/** A rate in dollars per token or per million tokens; `digits` is the shift to pico-dollars per million. */
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

/** Rates, with null for absent ones. A cache or audio rate of zero means unknown (data/README.md). */
export function ratesFrom(given: Readonly<Partial<Record<RateClass, Pico | null>>>): Rates {
  return Object.fromEntries(
    RATE_CLASSES.map((name) => {
      const rate = given[name] ?? null;
      return [name, rate === 0n && name !== 'input' && name !== 'output' ? null : rate];
    }),
  ) as Record<RateClass, Pico | null>;
}

/** A tier from its listed rates; classes without one are billed at the standard rate. */
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

/** OpenAI models on Azure; the other models there are not covered (data/README.md). */
export function isOpenAiModel(id: string): boolean {
  return /^(?:gpt-|o\d|chatgpt|codex|text-embedding|computer-use|ft:)/.test(id);
}

/** Keys that are not models. */
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

/** The parts of a price field's name: what it counts, the request length and the tier. */
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
/** xAI's boundary is "200k or more", not above 200k. */
const EXCLUSIVE_BOUNDARY: ReadonlySet<Provider> = new Set(['xai']);

/**
 * Reads LiteLLM's `model_prices_and_context_window.json`, dollars per token; other fields are skipped. @throws
 * RangeError.
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
  // Zero for both rates means unknown, never free.
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

/** An own property of the table; inherited names such as `constructor` return undefined. */
function named<T>(table: Readonly<Record<string, T>>, word: PageValue | undefined): T | undefined {
  return typeof word === 'string' && Object.hasOwn(table, word) ? table[word] : undefined;
}

/** The provider's own id after LiteLLM's prefixes, and the region between them. */
function placeOf(provider: Provider, key: string): { model: string; region: string | null } | undefined {
  const parts = key.split('/');
  const model = parts.at(-1) ?? '';
  // Prices of other things have a prefix such as an image size.
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

/** Gemini models are listed twice, for the Gemini API and for Vertex AI; the first one is the list price. */
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

/** Dollars per million tokens → pico-dollars per million. */
const PER_MTOK_DIGITS = 12;
/** The length in `context_over_200k`. */
const OVER_200K = 200_000;

/** Order of preference for a model that several of these list. */
const MODELS_DEV_PROVIDERS: readonly (readonly [string, Provider])[] = [
  ['openai', 'openai'],
  ['anthropic', 'anthropic'],
  ['google', 'google'],
  ['google-vertex', 'google'],
  ['google-vertex-anthropic', 'google'],
  ['azure', 'azure_openai'],
  ['amazon-bedrock', 'aws_bedrock'],
  ['mistral', 'mistral'],
  ['cohere', 'cohere'],
  ['xai', 'xai'],
];

const MODELS_DEV_CLASSES: readonly (readonly [string, RateClass])[] = [
  ['input', 'input'],
  ['output', 'output'],
  ['cache_read', 'cache_read'],
  ['cache_write', 'cache_write_5m'],
  ['input_audio', 'input_audio'],
  ['output_audio', 'output_audio'],
];

/** Reads models.dev's `api.json`, dollars per million tokens. @throws RangeError with the place of the first fault. */
export function readModelsDev(file: PageObject): ListedCollection {
  const models = new Map<string, ListedModel>();
  const known = new Set(MODELS_DEV_PROVIDERS.map(([name]) => name));
  let otherEntries = 0;
  for (const [name, value] of Object.entries(file)) {
    if (!known.has(name))
      otherEntries += Object.keys(readObject(readObject(value, name).models, `${name}.models`)).length;
  }
  for (const [name, provider] of MODELS_DEV_PROVIDERS) {
    if (file[name] === undefined) continue;
    const listed = readObject(readObject(file[name], name).models, `${name}.models`);
    for (const [id, value] of Object.entries(listed)) {
      const model = readModelsDevEntry(
        provider,
        `${name}/${id}`,
        id,
        readObject(value, `${name}.models.${id}`),
      );
      if (!model) otherEntries += 1;
      else if (!models.has(`${provider}\n${id}`)) models.set(`${provider}\n${id}`, model);
    }
  }
  return { source: 'models_dev', models: [...models.values()], otherEntries };
}

function readModelsDevEntry(
  provider: Provider,
  key: string,
  model: string,
  entry: PageObject,
): ListedModel | undefined {
  if (entry.cost === undefined || entry.cost === null) return undefined;
  if (provider === 'azure_openai' && !isOpenAiModel(model)) return undefined;
  const cost = readObject(entry.cost, `${key}.cost`);
  const rates = ratesFrom(readRates(cost, `${key}.cost`));
  if (rates.input === null || rates.output === null) return undefined;
  // Zero for both rates means unknown, never free.
  if (rates.input === 0n && rates.output === 0n) return undefined;
  const limit = entry.limit === undefined ? {} : readObject(entry.limit, `${key}.limit`);
  return {
    provider,
    model,
    key,
    region: null,
    rates,
    tiers: readTiers(cost, key, rates),
    mode: rates.output === 0n && /embed/.test(model) ? 'embedding' : 'chat',
    contextWindow: readTokens(limit.context),
  };
}

function readRates(cost: PageObject, place: string): Partial<Record<RateClass, bigint | null>> {
  return Object.fromEntries(
    MODELS_DEV_CLASSES.map(([field, name]) => [
      name,
      readRate(cost[field], PER_MTOK_DIGITS, `${place}.${field}`),
    ]),
  );
}

function readTiers(cost: PageObject, key: string, standard: Rates): PriceTier[] {
  const tiers = new Map<number, PriceTier>();
  const add = (above: number, given: PageValue, place: string): void => {
    const rates = readRates(readObject(given, place), place);
    tiers.set(above, tierFrom({ serviceTier: null, aboveInputTokens: above }, rates, standard));
  };
  if (cost.context_over_200k !== undefined)
    add(OVER_200K, cost.context_over_200k, `${key}.cost.context_over_200k`);
  const listed = Array.isArray(cost.tiers) ? cost.tiers : [];
  listed.forEach((item, index) => {
    const place = `${key}.cost.tiers.${index}`;
    const tier = readObject(readObject(item, place).tier, `${place}.tier`);
    const size = tier.size instanceof ExactNumber ? readTokens(tier.size) : null;
    if (tier.type === 'context' && size !== null) add(size, item, place);
  });
  return [...tiers.values()];
}
